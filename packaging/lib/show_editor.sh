# SPDX-License-Identifier: Apache-2.0
# The end of packaging/quickstart: an editor in a domain, its window on the invoking user's screen, or in a picture when
# there is none. Sourced, never run.

QUICKSTART_DOMAIN=work
QUICKSTART_EDITOR=org.xfce.mousepad
QUICKSTART_PICTURE=/var/log/bulkhead/quickstart.png

# The invoking user owns the domains, not root.
as_invoking_user() {
    if [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ]; then
        setpriv --reuid "$SUDO_UID" --regid "${SUDO_GID:-$SUDO_UID}" --init-groups -- \
            env HOME="$(getent passwd "$SUDO_UID" | cut -d: -f6)" "$@"
    else
        "$@"
    fi
}

# find_screen: sets screen to the variables with which a program of the invoking user finds their screen; empty: none.
find_screen() {
    local runtime=/run/user/${SUDO_UID:-0} socket
    screen=()
    for socket in "$runtime"/wayland-[0-9]; do
        [ -S "$socket" ] && screen=("XDG_RUNTIME_DIR=$runtime" "WAYLAND_DISPLAY=${socket##*/}") && return
    done
    if [ -n "${DISPLAY:-}" ]; then
        screen=("DISPLAY=$DISPLAY" "XAUTHORITY=${XAUTHORITY:-$(getent passwd "${SUDO_UID:-0}" | cut -d: -f6)/.Xauthority}")
        if [ -S "$runtime/bus" ]; then
            screen+=("DBUS_SESSION_BUS_ADDRESS=unix:path=$runtime/bus")
        fi
    fi
}

# A screen in memory: sets screen to it, and screen_pids to what end_virtual_screen ends.
begin_virtual_screen() {
    local number
    ensure_packages demo
    exec {screen_report}<> <(:)
    as_invoking_user Xvfb -displayfd 9 -screen 0 1280x900x24 -nolisten tcp 9>&"$screen_report" >/dev/null 2>&1 &
    screen_pids=($!)
    read -rt 20 number <&"$screen_report" || { echo "Xvfb does not start" >&2; return 1; }
    screen=("DISPLAY=:$number" QT_QPA_PLATFORM=xcb)
    as_invoking_user env "${screen[@]}" openbox >/dev/null 2>&1 &
    screen_pids+=($!)
}

end_virtual_screen() {
    kill "${screen_pids[@]}" 2>/dev/null || true
}

ensure_quickstart_domain() {
    if as_invoking_user bulkhead domain show "$QUICKSTART_DOMAIN" >/dev/null 2>&1; then
        note "already done: the domain $QUICKSTART_DOMAIN is there"
    else
        as_invoking_user bulkhead domain create "$QUICKSTART_DOMAIN" --template desktop --label blue
        note "domain $QUICKSTART_DOMAIN is created"
    fi
}

# window_is_shown: the viewer has put the editor's window on the screen.
window_is_shown() {
    as_invoking_user env "${screen[@]}" xdotool search --onlyvisible --class "bulkhead-$QUICKSTART_DOMAIN" >/dev/null 2>&1
}

take_picture() {
    local deadline=$((SECONDS + 240)) picture
    until window_is_shown; do
        [ "$SECONDS" -lt "$deadline" ] || { echo "the editor's window did not appear" >&2; return 1; }
        sleep 1
    done
    # The program draws a moment after its window is there.
    sleep 5
    picture=$(mktemp -d)
    chown "${SUDO_UID:-0}" "$picture"
    as_invoking_user env "${screen[@]}" maim "$picture/picture.png"
    install -m 0644 "$picture/picture.png" "$QUICKSTART_PICTURE"
    rm -rf "$picture"
}

show_editor() {
    local started=$SECONDS is_virtual=0
    local -a screen screen_pids=()
    echo
    echo "As $(as_invoking_user id -un):  bulkhead domain launch $QUICKSTART_DOMAIN $QUICKSTART_EDITOR"
    find_screen
    if [ "${#screen[@]}" -eq 0 ]; then
        is_virtual=1
        begin_virtual_screen || return
    fi
    as_invoking_user env "${screen[@]}" bulkhead domain launch "$QUICKSTART_DOMAIN" "$QUICKSTART_EDITOR" </dev/null || return
    if [ "$is_virtual" = 1 ]; then
        take_picture || { end_virtual_screen; return 1; }
        end_virtual_screen
        echo "There is no screen here, so this is a picture of it ($((SECONDS - started)) s): $QUICKSTART_PICTURE"
    else
        echo "Its window is on your screen, in the colour of the domain $QUICKSTART_DOMAIN ($((SECONDS - started)) s)."
    fi
}
