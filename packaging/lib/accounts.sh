# SPDX-License-Identifier: Apache-2.0
# The builder's account and the folders, with or without systemd. Sourced, never run.
# Which numbers and why: resources/doc/decisions/001-uids.md.

BULKHEAD_BUILD_USER=bulkhead-build
BULKHEAD_SUBID_FIRST=2000000000
BULKHEAD_SUBID_COUNT=65536

packaging_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# add_subordinate_range FILE: the builder needs a whole range of ids of its own to unpack a template without root.
add_subordinate_range() {
    touch "$1"
    if ! grep -q "^$BULKHEAD_BUILD_USER:" "$1"; then
        printf '%s:%d:%d\n' "$BULKHEAD_BUILD_USER" "$BULKHEAD_SUBID_FIRST" "$BULKHEAD_SUBID_COUNT" >>"$1"
    fi
}

make_build_user() {
    if command -v systemd-sysusers >/dev/null; then
        systemd-sysusers "$packaging_dir/sysusers/bulkhead.conf"
    else
        # The same as sysusers/bulkhead.conf says.
        useradd --system --user-group --no-create-home --home-dir /nonexistent \
            --shell /usr/sbin/nologin --comment "Bulkhead template builder" "$BULKHEAD_BUILD_USER"
    fi
}

accounts_are_there() {
    getent passwd "$BULKHEAD_BUILD_USER" >/dev/null && getent group kvm >/dev/null &&
        grep -qs "^$BULKHEAD_BUILD_USER:" /etc/subuid && grep -qs "^$BULKHEAD_BUILD_USER:" /etc/subgid
}

# ensure_accounts [quiet]
ensure_accounts() {
    if accounts_are_there; then
        [ "${1:-}" = quiet ] || note "already done: account $BULKHEAD_BUILD_USER and its id ranges"
        return 0
    fi
    getent group kvm >/dev/null || groupadd --system kvm
    getent passwd "$BULKHEAD_BUILD_USER" >/dev/null || make_build_user
    add_subordinate_range /etc/subuid
    add_subordinate_range /etc/subgid
    [ "${1:-}" = quiet ] || note "made the account $BULKHEAD_BUILD_USER and its id ranges"
}

# ensure_folders: what tmpfiles/bulkhead.conf says, also where there is no systemd-tmpfiles.
ensure_folders() {
    if command -v systemd-tmpfiles >/dev/null && have_systemd; then
        systemd-tmpfiles --create "$packaging_dir/tmpfiles/bulkhead.conf"
        return 0
    fi
    local type path mode user group rest
    while read -r type path mode user group rest; do
        case $type in
            d) install -d -m "$mode" -o "$user" -g "$group" "$path" ;;
            z) [ ! -e "$path" ] || chmod "$mode" "$path" ;;
            '#'* | '') ;;
            *) echo "tmpfiles/bulkhead.conf: the type $type is not known here" >&2; return 1 ;;
        esac
    done <"$packaging_dir/tmpfiles/bulkhead.conf"
}
