# SPDX-License-Identifier: Apache-2.0
# Debian's generic kernel for the rig: found and checked by apt, unpacked into the cache, never installed. Sourced, never run.

newest_kernel() {
    apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }'
}

# download_kernel PACKAGE FOLDER. Not through _apt: it could not write there.
download_kernel() {
    (cd "$2" && apt-get -o Acquire::Retries=5 -o APT::Sandbox::User=root download "$1" >apt.log 2>&1)
}

# ensure_kernel CACHE: sets KERNEL_DIR, a folder with vmlinuz, and layer/usr/lib/modules/VERSION as an installed one has it.
ensure_kernel() {
    local cache=$1 package deb
    package=$(newest_kernel)
    if [ -z "$package" ]; then
        # Without package lists an older kernel does as well.
        package=$(find "$cache" -maxdepth 1 -name 'linux-image-*' -printf '%T@ %f\n' 2>/dev/null | sort -rn | awk 'NR == 1 { print $2 }')
    fi
    if [ -z "$package" ]; then
        apt-get -o Acquire::Retries=5 update >/dev/null 2>&1 || true
        package=$(newest_kernel)
        [ -n "$package" ] || fail "apt does not know linux-image-amd64"
    fi
    KERNEL_DIR=$cache/$package
    if [ -f "$KERNEL_DIR/complete" ]; then
        return 0
    fi
    mkdir -p "$cache"
    local work
    work=$(mktemp -d "$cache/.new.XXXXXX")
    # The lists may be older than what the mirror still has.
    if ! download_kernel "$package" "$work" && ! { apt-get -o Acquire::Retries=5 update >/dev/null 2>&1; download_kernel "$package" "$work"; }; then
        tail -n 5 "$work/apt.log" >&2
        rm -rf "$work"
        fail "the kernel $package cannot be downloaded"
    fi
    deb=$(echo "$work"/*.deb)
    dpkg-deb --extract "$deb" "$work/unpacked"
    local version
    version=$(basename "$(echo "$work"/unpacked/lib/modules/*)")
    mkdir -p "$work/layer/usr/lib/modules"
    mv "$work/unpacked/lib/modules/$version" "$work/layer/usr/lib/modules/"
    mv "$work/unpacked/boot/vmlinuz-$version" "$work/vmlinuz"
    # depmod looks below lib, which is a link on an installed system.
    ln -s usr/lib "$work/layer/lib"
    depmod --basedir "$work/layer" "$version"
    rm "$work/layer/lib"
    printf '%s\n' "$version" >"$work/version"
    rm -rf "$deb" "$work/unpacked" "$work/apt.log"
    touch "$work/complete"
    chmod 755 "$work"
    rm -rf "$KERNEL_DIR"
    # Somebody else may have been quicker.
    mv -T "$work" "$KERNEL_DIR" 2>/dev/null || rm -rf "$work"
}

# make_initramfs FILE: just enough to mount the root; everything else is loaded by udev from the root.
make_initramfs() {
    local file=$1 tree version path
    version=$(cat "$KERNEL_DIR/version")
    tree=$(mktemp -d "$(dirname "$file")/initramfs.XXXXXX")
    mkdir -p "$tree/bin" "$tree/modules"
    cp /bin/busybox "$tree/bin/"
    install -m 755 "$here/initramfs_init" "$tree/init"
    ln -s usr/lib "$tree/lib"
    ln -s "$KERNEL_DIR/layer/usr" "$tree/usr"
    modprobe --dirname "$tree" --set-version "$version" --show-depends --all virtio_pci 9pnet_virtio 9p overlay virtio_blk virtio_console |
        awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$tree/paths"
    while read -r path; do
        cp "$path" "$tree/modules/"
        basename "$path" >>"$tree/modules/order"
    done <"$tree/paths"
    rm "$tree/lib" "$tree/usr" "$tree/paths"
    (cd "$tree" && find . -print0 | cpio --null --create --format=newc --quiet) | gzip -1 >"$file"
    rm -rf "$tree"
}
