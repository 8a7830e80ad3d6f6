#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `./dev shell-env` prints names a socket that the programs can open, from any folder; a long run
# that is none is refused before anything is built for it; and ./dev only begins work: what does it
# lies elsewhere.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
unset SKILLVM_SOCKET XDG_STATE_HOME

is() { # what it is for, the socket that is wanted
    eval "$("$root/dev" shell-env)"
    [[ $SKILLVM_SOCKET == "$2" ]] || {
        echo "./dev shell-env, $1: SKILLVM_SOCKET is $SKILLVM_SOCKET, not $2" >&2
        exit 1
    }
}

export HOME="/home/somebody else"
is "by HOME" "/home/somebody else/.local/state/skillvm/skillvm.sock"
is "again" "/home/somebody else/.local/state/skillvm/skillvm.sock"
unset SKILLVM_SOCKET
export XDG_STATE_HOME=/state
is "by XDG_STATE_HOME" /state/skillvm/skillvm.sock

(($(wc -l <"$root/dev") <= 150)) || {
    echo "./dev has over 150 lines: what does the work belongs to cmake/, tests/ or bench/" >&2
    exit 1
}

status=0
said=$(timeout 60 "$root/dev" test --long siege nothing-has-this-name 2>&1) || status=$?
[[ $status == 2 && $said == "run.sh: no long run is called nothing-has-this-name (--long --list)" ]] || {
    echo "./dev test --long siege nothing-has-this-name ends with $status: $said" >&2
    exit 1
}
