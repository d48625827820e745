# SPDX-License-Identifier: Apache-2.0
# The services Bulkhead stands on. With systemd its units do it; without, we start the daemons ourselves.
# Sourced, never run.

BULKHEADD_PID_FILE=/run/bulkhead/bulkheadd.pid
BULKHEADD_LOG=/var/log/bulkhead/bulkheadd.log

# as_service COMMAND…: what an init system would give it: no folder of ours, and nothing of our environment.
as_service() {
    env --chdir=/ -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"
}

bus_answers() {
    timeout 5 dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.GetId >/dev/null 2>&1
}

libvirt_answers() {
    timeout 60 virsh --connect qemu:///system --quiet version >/dev/null 2>&1
}

ensure_bus() {
    if bus_answers; then
        # A policy file installed a moment ago has to count.
        dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ReloadConfig >/dev/null
        note "already done: the system bus runs"
        return 0
    fi
    if have_systemd; then
        systemctl start dbus.socket dbus.service
    else
        install -d -m 755 -o messagebus -g messagebus /run/dbus
        rm -f /run/dbus/pid
        as_service dbus-daemon --system --fork
    fi
    wait_until 10 bus_answers
    note "started the system bus"
}

polkit_is_on_the_bus() {
    timeout 5 dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
        string:org.freedesktop.PolicyKit1 2>/dev/null | grep -q 'boolean true'
}

ensure_polkit() {
    if polkit_is_on_the_bus; then
        note "already done: polkitd runs"
        return 0
    fi
    if have_systemd; then
        systemctl start polkit.service
    elif ! pgrep -x polkitd >/dev/null; then
        as_service setsid /usr/lib/polkit-1/polkitd --no-debug </dev/null >/dev/null 2>&1 &
    fi
    if ! wait_until 20 polkit_is_on_the_bus; then
        echo "polkitd does not take its name org.freedesktop.PolicyKit1 on the system bus"
        return 1
    fi
    note "started polkitd"
}

# fix_kvm_node: with root-only permission libvirt probes QEMU again for seconds in every call.
fix_kvm_node() {
    if [ ! -e /dev/kvm ]; then
        note "no /dev/kvm here: guests will be emulated"
    elif [ "$(stat -c '%G %a' /dev/kvm)" = "kvm 660" ]; then
        note "already done: /dev/kvm belongs to the group kvm"
    else
        local before
        before=$(stat -c '%U:%G %a' /dev/kvm)
        chgrp kvm /dev/kvm
        chmod 660 /dev/kvm
        note "/dev/kvm was $before, now root:kvm 660 (QEMU's user has to open it)"
    fi
}

# ensure_libvirt REAPER: below the reaper, so that a destroyed guest is gone at once where PID 1 collects late.
ensure_libvirt() {
    if have_systemd; then
        if systemctl --quiet is-active libvirtd.service && libvirt_answers; then
            note "already done: libvirtd runs"
            return 0
        fi
        systemctl start virtlogd.socket libvirtd.socket libvirtd.service
    else
        if libvirt_answers; then
            note "already done: libvirtd runs"
            return 0
        fi
        pgrep -x virtlogd >/dev/null || as_service virtlogd --daemon
        rm -f /run/libvirtd.pid
        as_service setsid "$1" libvirtd --pid-file /run/libvirtd.pid </dev/null >>/var/log/libvirt/libvirtd.out 2>&1 &
    fi
    if ! wait_until 60 libvirt_answers; then
        echo "libvirtd does not answer on qemu:///system"
        virsh --connect qemu:///system version || true
        tail -n 20 /var/log/libvirt/libvirtd.out 2>/dev/null || journalctl --no-pager -n 20 -u libvirtd 2>/dev/null || true
        return 1
    fi
    note "started libvirtd"
}

# daemon_is_current PROGRAM: it runs, and the program was not replaced since.
daemon_is_current() {
    local pid
    pid=$(cat "$BULKHEADD_PID_FILE" 2>/dev/null) && [ -n "$pid" ] &&
        [ "$(readlink "/proc/$pid/exe" 2>/dev/null)" = "$1" ]
}

stop_own_daemon() {
    local pid
    pid=$(cat "$BULKHEADD_PID_FILE" 2>/dev/null) || return 0
    # The file may be old and its number somebody else's by now.
    [[ "$(readlink "/proc/$pid/exe" 2>/dev/null)" = */bulkheadd* ]] || return 0
    kill -TERM "$pid"
    wait_until 20 not_running "$pid"
}

not_running() {
    ! kill -0 "$1" 2>/dev/null
}

# ensure_daemon PROGRAM. Domains that run are not disturbed by a restart: their channel processes live on.
ensure_daemon() {
    if have_systemd; then
        systemctl daemon-reload
        local pid
        pid=$(systemctl show --property MainPID --value bulkheadd.service)
        if [ "$pid" != 0 ] && [ "$(readlink "/proc/$pid/exe")" = "$1" ]; then
            note "already done: bulkheadd runs"
            return 0
        fi
        systemctl enable bulkheadd.service
        systemctl restart bulkheadd.service
        note "started bulkheadd (log: journalctl -u bulkheadd)"
        return 0
    fi
    if daemon_is_current "$1"; then
        note "already done: bulkheadd runs"
        return 0
    fi
    stop_own_daemon
    "$packaging_dir/lib/run_daemon.py" --log "$BULKHEADD_LOG" --pid-file "$BULKHEADD_PID_FILE" -- "$1"
    note "started bulkheadd (log: $BULKHEADD_LOG)"
}
