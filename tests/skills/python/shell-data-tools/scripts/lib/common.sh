#!/bin/bash
# What the tools share.

die() {
    echo "tools.sh: $*" >&2
    exit 2
}

first_line() { # command…
    "$@" 2>&1 | head -n 1
}
