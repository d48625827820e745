# SPDX-License-Identifier: Apache-2.0
# The Debian packages that Bulkhead needs, each with its kind and its reason. Sourced, never run.

package_table() {
    cat <<'TABLE'
build build-essential        compiler, linker, libc headers, make
build cmake                  build description
build ninja-build            build runner
build ccache                 a second build is quick
build pkg-config             finds libvirt, systemd, sodium and others
build libsdbus-c++-dev       D-Bus in the daemon
build libsdbus-c++-bin       generates bindings from the D-Bus contract
build libsystemd-dev         sd-event, sd_notify, journal
build libvirt-dev            talks to libvirt
build libsqlite3-dev         state of the daemon
build libtomlplusplus-dev    domain and template definitions
build libprotobuf-dev        messages between host and guest
build protobuf-compiler      the same
build libcli11-dev           command line parsing
build libfmt-dev             text formatting (GCC 12 has no <format>)
build libexpected-dev        tl::expected, the Result type
build libsodium-dev          token challenge, hashes
build libzstd-dev            compressed artefacts
build libseccomp-dev         bulkhead-channel's filter
build libcap-ng-dev          bulkhead-channel drops its capabilities
build nlohmann-json3-dev     --json output
build qt6-base-dev           D-Bus in the command line; Qt Test
build qt6-base-dev-tools     moc, bindings from the D-Bus contract
build libgl-dev              Qt's CMake files ask for it
build libspice-client-glib-2.0-dev  bulkhead-viewer: screens and input of a domain
build libpulse-dev           the same: the user's sound server
build libxcb1-dev            bulkhead-session in the guest: the X protocol
build libxcb-randr0-dev      the same: heads and their sizes
build libxcb-icccm4-dev      the same: titles and classes of windows
build libxcb-ewmh-dev        the same: kinds of windows
build libxcb-xkb-dev         the same: the keyboard's layout
build libxau-dev             the same, for a static link
build libxdmcp-dev           the same
run   libvirt-daemon-system  libvirtd with its system set-up
run   libvirt-daemon         libvirtd and virtlogd
run   libvirt-clients        virsh, for people and for the checks of the scripts
run   qemu-system-x86        the emulator
run   qemu-utils             qemu-img: overlays and disks
run   dbus                   the system bus
run   polkitd                asks the administrator
run   uidmap                 builds templates without root
run   mmdebstrap             builds templates
run   gpg                    mmdebstrap finds the archive's key where the apt sources do not name it
run   e2fsprogs              makes their file systems
run   cpio                   makes their initial RAM disks
run   zstd                   compresses artefacts
run   python3                starts daemons where there is no systemd
run   util-linux             setpriv, unshare, flock
run   mount                  private hosts of the tests, template builds
run   iproute2               looks at the host's networks
run   procps                 finds running daemons
demo  xvfb                   quickstart without a screen: one in memory
demo  openbox                the same: puts windows on it
demo  xdotool                the same: sees when a window is there
demo  maim                   the same: takes the picture
test  clang                  fuzz targets
test  libclang-rt-14-dev     libFuzzer and the sanitizers of clang
test  clang-format           format test
test  clang-tidy             analysis test
test  git                    the lint tests look at tracked files
test  desktop-file-utils     checks the entries of the host's menu
test  tmux                   a terminal for `bulkhead run -t`
test  systemd                busctl, for the tests of the bus (need not run as PID 1)
test  strace                 looks at what a sandboxed process may do
test  xvfb                   a screen for the tests of windows
test  xserver-xorg-core      a screen with many heads, for the tests of bulkhead-session
test  xserver-xorg-video-dummy  the same
test  libglib2.0-bin         gio: starts apps, as in a domain
test  openbox                a window manager of the host, for them
test  at-spi2-core           reads them as a screen reader does
test  xdotool                types and clicks as a user does
test  x11-utils              looks at windows
test  x11-xserver-utils      looks at screens and sizes
test  x11-xkb-utils          sets a keyboard layout
test  xauth                  access to that screen
test  xterm                  an X program that is not ours
test  fonts-dejavu-core      letters for screenshots
test  weston                 the same on Wayland
run   qt6-wayland            windows on Wayland desktops
test  apparmor               the rig: profiles in force around emulators
test  busybox-static         the rig: its first program
test  kmod                   the rig: finds and loads modules of its kernel
test  udev                   the rig: devices as on a desktop host
TABLE
}

# package_names KIND…
package_names() {
    package_table | awk -v kinds=" $* " 'index(kinds, " " $1 " ") { print $2 }'
}

package_is_installed() {
    [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages() {
    local package
    for package in $(package_names "$@"); do
        package_is_installed "$package" || printf '%s\n' "$package"
    done
}

# dpkg was cut off (a power cut, a killed installation): apt-get refuses everything until that has been finished.
dpkg_is_interrupted() {
    [ -n "$(ls -A /var/lib/dpkg/updates 2>/dev/null)" ] || [ -n "$(dpkg --audit 2>/dev/null)" ]
}

# ensure_packages KIND…: installs what is missing and nothing else.
ensure_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    if [ "${#missing[@]}" -eq 0 ]; then
        note "already done: all $(package_names "$@" | wc -l) packages are there"
        return 0
    fi
    local -a options=(-o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold
        -o Dpkg::Options::=--force-confdef)
    export DEBIAN_FRONTEND=noninteractive
    if dpkg_is_interrupted; then
        # What it cannot finish (a dependency is missing) is apt-get's to finish below.
        dpkg --force-confold --force-confdef --configure -a || true
    fi
    apt-get "${options[@]}" update
    apt-get "${options[@]}" install --yes --no-install-recommends "${missing[@]}"
    note "installed ${#missing[@]} packages"
}
