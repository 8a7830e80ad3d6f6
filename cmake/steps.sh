#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# For scripts that run others, to be sourced: each step has a log in $logs, and what takes over two
# seconds says how long it took.

logs=${logs:?the folder of the logs}
step_log=
tick_pid=

now_ms() {
    local t=${EPOCHREALTIME/[.,]/}
    echo $((t / 1000))
}

seconds() { # milliseconds
    printf '%d.%d s' $(($1 / 1000)) $(($1 % 1000 / 100))
}

tick() { # title
    local waited=0
    while sleep 1; do
        waited=$((waited + 1))
        if [ -t 2 ]; then
            printf '\r  %s … %d s' "$1" $((waited)) >&2
        elif [ $((waited % 60)) = 0 ]; then
            printf '  %s … %d s\n' "$1" $((waited)) >&2
        fi
    done
}

stop_tick() {
    if [ -n "$tick_pid" ]; then
        kill "$tick_pid" 2>/dev/null || true
        wait "$tick_pid" 2>/dev/null || true
        tick_pid=
    fi
}
trap stop_tick EXIT

# try TITLE COMMAND…: runs it with its output in a log. Passes on its status.
try() {
    local title=$1 start status=0 took
    shift
    mkdir -p "$logs"
    step_log=$logs/$(tr -cs 'a-zA-Z0-9\n' - <<<"$title").log
    start=$(now_ms)
    tick "$title" &
    tick_pid=$!
    "$@" >"$step_log" 2>&1 </dev/null || status=$?
    stop_tick
    took=$(($(now_ms) - start))
    [ ! -t 2 ] || printf '\r\033[K' >&2
    if [ "$status" != 0 ]; then
        echo "  $title: failed after $(seconds "$took") (status $status)" >&2
        tail -n 60 "$step_log" | sed 's/^/    /' >&2
        echo "    log: $step_log" >&2
    elif [ "$took" -ge 2000 ]; then
        echo "  $title: $(seconds "$took")" >&2
    fi
    return "$status"
}

# step TITLE COMMAND…: the same, and nothing after a failure.
step() {
    try "$@" || exit 1
}
