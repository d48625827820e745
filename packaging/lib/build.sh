# SPDX-License-Identifier: Apache-2.0
# Configures and builds a preset. Sourced, never run.

# One compilation serves every preset with the same flags and every checkout: paths are hashed relative to this one.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# The whole machine, but never more than its memory stands: a C++ compiler here takes up to 1 GiB.
build_jobs() {
    local processors memory
    processors=$(nproc)
    memory=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' "${1:-/proc/meminfo}")
    [ "$memory" -ge 1 ] || memory=1
    echo $((memory < processors ? memory : processors))
}

# build_preset PRESET [TARGET…]: cmake's own files are made when they are missing; ninja knows when they are stale.
build_preset() {
    local preset=$1 output
    shift
    if [ ! -f "build/$preset/build.ninja" ]; then
        cmake --preset "$preset"
    fi
    output=$(mktemp)
    local -a targets=()
    [ $# -eq 0 ] || targets=(--target "$@")
    cmake --build "build/$preset" -j "$(build_jobs)" "${targets[@]}" 2>&1 | tee "$output"
    if grep -q '^ninja: no work to do' "$output"; then
        note "already done: build/$preset is up to date"
    else
        note "built $preset"
    fi
    rm -f "$output"
}
