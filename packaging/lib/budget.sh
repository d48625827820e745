# SPDX-License-Identifier: Apache-2.0
# Where the minutes of a test run went, against what each part may take. Sourced, never run.

# split_summary FILE: passes ctest's output through and keeps its summary (from "N% tests passed" on) in FILE.
split_summary() {
    : >"$1"
    awk -v file="$1" '
        /^[0-9]+% tests passed/ { held = 1 }
        held { print > file; next }
        { print; fflush() }'
}

# label_seconds SUMMARY LABEL…: from ctest's "Label Time Summary".
label_seconds() {
    local summary=$1
    shift
    awk -v labels=" $* " '
        /^[a-z0-9_-]+ += +[0-9.]+ sec/ && index(labels, " " $1 " ") { seconds += $3 }
        END { printf "%d", seconds + 0.5 }' "$summary"
}

budget_row() {
    local mark=""
    [ "$2" -le $(($3 * 60)) ] || mark="  OVER"
    printf '%-34s %4d:%02d %6d min%s\n' "$1" $(($2 / 60)) $(($2 % 60)) "$3" "$mark"
}

# print_figures LOG: what the benchmarks measured, from ctest's own log of passed tests.
print_figures() {
    [ -f "$1" ] || return 0
    printf '\nFigures\n'
    sed -n 's/^\([a-z][^:]*: [0-9.]\{1,\} [^ ]\{1,\}\( (.*)\)\{0,1\}\)$/    \1/p' "$1"
}

# print_failures LOG SUMMARY: of each failed test what it said itself, for a reader who sees only the end of all this.
print_failures() {
    local names name
    names=$(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (\(Failed\|Timeout\|SEGFAULT\|Subprocess aborted\|Not Run\).*$/\1/p' "$2")
    [ -n "$names" ] && [ -f "$1" ] || return 0
    printf '\nFailures\n'
    while read -r name; do
        printf '%s\n' "$name"
        awk -v name="$name" '
            / Testing: / { inside = ($NF == name); left = 0 }
            !inside { next }
            /^(FAIL|XPASS|QFATAL|ASSERT|==[0-9]+==ERROR|Received signal)|runtime error:|: FAIL/ { left = 8 }
            /^PASS/ { left = 0 }
            left > 0 && shown < 60 { print "    " substr($0, 1, 300); left--; shown++ }' "$1"
    done <<<"$names"
}

# print_budget SUMMARY BUILD_SECONDS TEMPLATE_SECONDS TOTAL_SECONDS
print_budget() {
    local summary=$1
    printf '\n%-34s %7s %10s\n' "Time budget" "spent" "budget"
    budget_row "packages and builds" "$2" 22
    budget_row "templates" "$3" 6
    budget_row "unit, dbus, libvirt, lint" "$(label_seconds "$summary" unit dbus libvirt lint gui)" 6
    budget_row "sanitizer run of unit and dbus" "$(label_seconds "$summary" sanitizers)" 6
    budget_row "e2e" "$(label_seconds "$summary" e2e)" 15
    budget_row "rig" "$(label_seconds "$summary" rig)" 10
    budget_row "fuzz" "$(label_seconds "$summary" fuzz)" 5
    budget_row "analysis and benchmarks" "$(label_seconds "$summary" slow bench)" 10
    budget_row "all (of 90 that CI has)" "$4" 80
    printf '\n'
}
