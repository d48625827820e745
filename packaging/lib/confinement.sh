# SPDX-License-Identifier: Apache-2.0
# AppArmor, where the host has it. Sourced, never run.

# include_abstraction ROOT: has libvirt's rules for emulators include ours, below ROOT (empty: this machine). A domain's
# profile is made when it starts, so nothing needs to be loaded again.
include_abstraction() {
    local folder=$1/etc/apparmor.d local_rules
    local_rules=$folder/local/abstractions/libvirt-qemu
    [ -f "$folder/abstractions/libvirt-qemu" ] || return 0
    mkdir -p "${local_rules%/*}"
    grep -qs 'abstractions/bulkhead-emulator' "$local_rules" ||
        printf '%s\n' '#include <abstractions/bulkhead-emulator>' >>"$local_rules"
}
