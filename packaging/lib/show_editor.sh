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

# in_background COMMAND…: as the invoking user; sets pid to the command's own.
in_background() {
    if [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ]; then
        setpriv --reuid "$SUDO_UID" --regid "${SUDO_GID:-$SUDO_UID}" --init-groups -- "$@" </dev/null >/dev/null 2>&1 &
    else
        "$@" </dev/null >/dev/null 2>&1 &
    fi
    pid=$!
}

# A screen in memory: sets screen to it, and screen_pids to what end_virtual_screen ends.
begin_virtual_screen() {
    local number report pid
    ensure_packages demo || return
    report=$(mktemp -u)
    # Theirs alone: who writes here says on which screen their windows appear.
    mkfifo -m 0600 "$report" && chown "${SUDO_UID:-0}" "$report" || return
    # Opened both ways: neither side waits for the other.
    exec {screen_report}<>"$report"
    in_background sh -c 'exec Xvfb -displayfd 9 -screen 0 1280x900x24 -nolisten tcp 9>"$0"' "$report"
    screen_pids=("$pid")
    read -rt 20 number <&"$screen_report" || { echo "Xvfb does not start" >&2; rm -f "$report"; return 1; }
    rm -f "$report"
    screen=("DISPLAY=:$number" QT_QPA_PLATFORM=xcb)
    in_background env "${screen[@]}" openbox
    screen_pids+=("$pid")
}

# The viewer goes with its screen.
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

# window_is_shown: the editor's window is on the screen (the viewer shows one of its own before, without a title of the guest).
window_is_shown() {
    as_invoking_user env "${screen[@]}" xdotool search --onlyvisible --name "^\\[$QUICKSTART_DOMAIN\\] ." >/dev/null 2>&1
}

take_picture() {
    local deadline=$((SECONDS + 240))
    until window_is_shown; do
        [ "$SECONDS" -lt "$deadline" ] || { echo "the editor's window did not appear" >&2; return 1; }
        sleep 1
    done
    # The program draws a moment after its window is there.
    sleep 5
    # Written by root, made by the user: nothing of theirs is opened by root.
    as_invoking_user env "${screen[@]}" maim >"$QUICKSTART_PICTURE"
}

# launch_editor: by the user's own command line, with the screen's variables.
launch_editor() {
    as_invoking_user env "${screen[@]}" bulkhead domain launch "$QUICKSTART_DOMAIN" "$QUICKSTART_EDITOR" </dev/null
}

show_editor() {
    local started=$SECONDS status=0
    local -a screen screen_pids=()
    echo
    echo "As $(as_invoking_user id -un):  bulkhead domain launch $QUICKSTART_DOMAIN $QUICKSTART_EDITOR"
    find_screen
    if [ "${#screen[@]}" -gt 0 ]; then
        launch_editor || return
        echo "Its window appears on your screen, in the colour of the domain $QUICKSTART_DOMAIN ($((SECONDS - started)) s)."
        return 0
    fi
    begin_virtual_screen && launch_editor && take_picture || status=$?
    end_virtual_screen
    [ "$status" -eq 0 ] || return "$status"
    echo "There is no screen here, so this is a picture of it ($((SECONDS - started)) s): $QUICKSTART_PICTURE"
}
