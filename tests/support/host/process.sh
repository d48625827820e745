# SPDX-License-Identifier: Apache-2.0
# Sourced by the ph-* commands.

# running PIDFILE: whether the process in it lives (a zombie does not).
running() {
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 1
    [ -n "$pid" ] && [ -e "/proc/$pid/stat" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null
}

# end_process PIDFILE SIGNAL: sends it and returns when the process has ended; SIGKILL after 20 s. Gone already: fine.
end_process() {
    local pid
    if ! running "$1"; then
        return 0
    fi
    pid=$(cat "$1")
    python3 - "$pid" "$2" <<'PY'
import os, select, signal, sys
pid, name = int(sys.argv[1]), sys.argv[2]
try:
    fd = os.pidfd_open(pid)
    signal.pidfd_send_signal(fd, signal.Signals["SIG" + name])
    if not select.select([fd], [], [], 20)[0]:
        print(f"process {pid} did not heed SIG{name} in 20 s; killed", file=sys.stderr)
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        select.select([fd], [], [])
except ProcessLookupError:
    pass
PY
}
