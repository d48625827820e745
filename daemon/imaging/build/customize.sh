#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs as mmdebstrap's customize hook, as root of an unprivileged user namespace; $1 is the new system's root. All
# values come in the environment and are data: BULKHEAD_KERNEL (a checked package name), BULKHEAD_OVERLAY (a folder
# whose files are laid over the system).
set -eu
root="$1"
fail() { echo "bulkhead-build: $*" >&2; exit 1; }

# Files from the builder: apt sources, the host's local certificates.
tar -C "$BULKHEAD_OVERLAY" --owner=0 --group=0 -cf - . | tar -C "$root" --no-overwrite-dir -xf -

progress() { echo "PHASE $*" >&3; }

# The kernel is unpacked, not installed: its scripts want an initramfs generator, and the domain is booted with a
# kernel and an initramfs that the host hands over. Only its modules are wanted in the system.
progress kernel 0.60 Downloading the kernel
work="$root/var/tmp/bulkhead-kernel"
mkdir "$work"
cd "$work"
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
package="$BULKHEAD_KERNEL"
# A metapackage names the real one in its dependencies.
case "$package" in
    linux-image-[0-9]*) ;;
    *)
        real="$(apt-cache depends --no-recommends --no-suggests "$package" |
            sed -n 's/^ *|\{0,1\}Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)"
        [ -n "$real" ] || fail "$package is no kernel package: it depends on no linux-image-VERSION"
        package="$real"
        ;;
esac
# apt checks the archive's signature for a download as it does for an installation. _apt cannot write here.
apt-get -qq -o APT::Sandbox::User=root download "$package"
mkdir tree
dpkg-deb --extract ./*.deb tree
dpkg-deb --show --showformat='${Package} ${Version} ${Architecture}\n' ./*.deb > "$root/var/tmp/bulkhead-kernel.txt"
set -- tree/boot/vmlinuz-*
[ -f "$1" ] || fail "$package holds no boot/vmlinuz-*"
version="${1#tree/boot/vmlinuz-}"
mkdir -p "$root/usr/lib/modules"
for modules in tree/lib/modules/* tree/usr/lib/modules/*; do
    [ -d "$modules" ] && mv "$modules" "$root/usr/lib/modules/"
done
[ -d "$root/usr/lib/modules/$version" ] || fail "$package holds no modules for $version"
chroot "$root" depmod "$version"
# Kept beside the system until the builder has taken it out; see take_out in the builder.
mv "$1" "$root/var/tmp/bulkhead-vmlinuz"
echo "$version" > "$root/var/tmp/bulkhead-kernel-version"
cd /
rm -rf "$work"
progress finish 0.70 Packing the system

if [ -x "$root/usr/sbin/update-ca-certificates" ]; then
    chroot "$root" update-ca-certificates > /dev/null
fi

chroot "$root" useradd --uid 1000 --user-group --no-create-home --home-dir /home/user --shell /bin/bash \
    --groups sudo --comment 'Domain user' user
# mmdebstrap put the host's own name there, and its options for apt (proxies among them); the builder the passwords of
# the mirrors.
rm -f "$root/etc/hostname" "$root/etc/apt/apt.conf.d/99mmdebstrap" "$root/etc/apt/auth.conf"
sed -i '/unsafe-io/d' "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
echo domain > "$root/etc/hostname"
printf '127.0.0.1\tlocalhost\n127.0.1.1\tdomain\n::1\tlocalhost ip6-localhost ip6-loopback\n' > "$root/etc/hosts"
echo 'LANG=C.UTF-8' > "$root/etc/default/locale"
: > "$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_*
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb
rm -f "$root/etc/resolv.conf"
: > "$root/etc/resolv.conf"

dpkg-query --admindir="$root/var/lib/dpkg" --show --showformat='${Package} ${Version} ${Architecture}\n' \
    > "$root/var/tmp/bulkhead-packages.txt"
cat "$root/var/tmp/bulkhead-kernel.txt" >> "$root/var/tmp/bulkhead-packages.txt"
rm -f "$root/var/tmp/bulkhead-kernel.txt"
