#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /usr/local/bin/apt and apt-get of a template. apt refuses those who are not root before any of its hooks runs:
# here they still learn what to do. Root gets the notice from apt's own hook.
if [ "$(id -u)" != 0 ]; then
    for word in "$@"; do
        case "$word" in
            install | reinstall | remove | purge | autoremove | update | upgrade | full-upgrade | dist-upgrade)
                /usr/lib/bulkhead/apt-notice || :
                break
                ;;
        esac
    done
fi
exec "/usr/bin/${0##*/}" "$@"
