# SPDX-License-Identifier: Apache-2.0
# Puts staged files into place. Sourced, never run.

# copy_changed STAGE ROOT: copies what is below STAGE to the same place below ROOT (empty: /), but only files that differ
# from what is there, and prints those. Each is replaced in one step, so that no program is seen half written, and one
# that did not change keeps its inode: who runs it can tell that there is nothing to restart for.
copy_changed() {
    local stage=$1 root=$2 path name target
    find "$stage" -mindepth 1 -type d -printf '%P\0' | sort -z | while IFS= read -r -d '' name; do
        [ -d "$root/$name" ] || install -d -m "$(stat -c %a "$stage/$name")" -o root -g root "$root/$name"
    done
    find "$stage" \( -type f -o -type l \) -printf '%P\0' | sort -z | while IFS= read -r -d '' name; do
        path=$stage/$name
        target=$root/$name
        if is_same_file "$path" "$target"; then
            continue
        fi
        cp -dp "$path" "$target.new"
        chown -h root:root "$target.new"
        mv -fT "$target.new" "$target"
        printf '%s\n' "$target"
    done
}

# is_same_file STAGED INSTALLED: same kind, contents, mode and owner.
is_same_file() {
    if [ -L "$1" ] || [ -L "$2" ]; then
        [ -L "$1" ] && [ -L "$2" ] && [ "$(readlink "$1")" = "$(readlink "$2")" ]
        return
    fi
    [ -f "$2" ] && [ "$(stat -c '%a' "$1") root root" = "$(stat -c '%a %U %G' "$2")" ] && cmp -s "$1" "$2"
}
