# SPDX-License-Identifier: Apache-2.0
# Steps with a log, shared by packaging/quickstart and packaging/test. Sourced, never run.

# begin_steps TITLE LOG: everything a step prints goes to LOG; the terminal gets one line for each step.
begin_steps() {
    STEPS_TITLE=$1
    STEPS_LOG=$2
    STEPS_STARTED=$SECONDS
    STEP_NUMBER=0
    mkdir -p "$(dirname "$STEPS_LOG")"
    : >"$STEPS_LOG"
    STEP_NOTE_FILE=$(mktemp)
}

end_steps() {
    rm -f "${STEP_NOTE_FILE:-}"
}

# note TEXT: what a step has to say in its line ("already done: …").
note() {
    if [ -n "${STEP_NOTE_FILE:-}" ]; then
        printf '%s\n' "$*" >"$STEP_NOTE_FILE"
    fi
    printf '%s\n' "$*"
}

# step TITLE COMMAND…: runs it with `set -e` in a subshell. Never call it in a condition: that would switch `set -e` off.
step() {
    local title=$1 started=$SECONDS status first_line
    shift
    STEP_NUMBER=$((STEP_NUMBER + 1))
    printf '[%d] %-34s ' "$STEP_NUMBER" "$title"
    : >"$STEP_NOTE_FILE"
    printf '\n==== %s ====\n' "$title" >>"$STEPS_LOG"
    first_line=$(wc -l <"$STEPS_LOG")
    set +e
    (
        set -e
        "$@"
    ) >>"$STEPS_LOG" 2>&1 </dev/null
    status=$?
    set -e
    if [ "$status" -ne 0 ]; then
        printf 'FAILED after %d s\n\n' $((SECONDS - started))
        printf '%s: the step "%s" failed with status %d. The end of its log:\n\n' "$STEPS_TITLE" "$title" "$status"
        tail -n "+$((first_line + 1))" "$STEPS_LOG" | tail -n 40 | sed 's/^/    /'
        printf '\nThe whole log: %s\n' "$STEPS_LOG"
        exit 1
    fi
    STEP_SECONDS=$((SECONDS - started))
    printf '%s (%d s)\n' "$(head -n 1 "$STEP_NOTE_FILE" | grep . || echo done)" "$STEP_SECONDS"
}

require_root() {
    if [ "$(id -u)" != 0 ]; then
        echo "$1 needs root: it installs packages and starts system services. Run: sudo $1" >&2
        exit 1
    fi
}

have_systemd() {
    [ -d /run/systemd/system ]
}

# wait_until SECONDS COMMAND…: asks four times a second.
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$deadline" ]; then
            return 1
        fi
        sleep 0.25
    done
}
