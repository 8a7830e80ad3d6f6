#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Many executions through one daemon in the software host:
#   bench/soak.sh [--build DIR] [--native] [--mixed CLIENTS] [N]     (default 2000)
#                 [--kernel VERSION] [--vmx] [--kvm OPTION=VALUE]…   (images/softhost/run.sh)
#
# Prints a line for every hundred, then what failed, what grew and what was left behind. Exit 0
# when nothing did. --native runs on this machine instead (needs usable KVM and root). --mixed
# lets so many clients ask for executions of every outcome at once, and accounts for each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build n=2000 native='' mixed='' host=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    --native) native=1; shift ;;
    --mixed) mixed=$2; shift 2 ;;
    --kernel | --kvm) host+=("$1" "$2"); shift 2 ;;
    --vmx) host+=("$1"); shift ;;
    [0-9]*) n=$1; shift ;;
    *) sed -n '/^# *Many/,/^# lets/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
build=$(cd "$build" && pwd)
share=${SKILLVM_SHARE:-$build/share/skillvm}
client=$here/../api/clients/python

# The command, for a machine where things are in the given places.
arguments=()
command_for() { # programs share bench lane scratch
    if [ -n "$mixed" ]; then
        arguments=("$3/mixed.py" "$1" "$2" "$5" "$n" "$mixed")
    else
        arguments=("$3/soak.py" "$(printf '{"kind":"soak","runs":100,"peers":[],"programs":"%s","share":"%s","bench":"%s","lane":"%s","scratch":"%s"}' "$@")" "$n")
    fi
}
if [ -n "$native" ]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    command_for "$build/bin" "$share" "$here" "$build/bench/lane" "$scratch"
    PYTHONPATH=$client python3 -B "${arguments[@]}"
    exit
fi
command_for /opt/skillvm/bin /opt/skillvm/share/skillvm /mnt/bench /mnt/build/lane /run/scratch
exec "$here/../images/softhost/run.sh" --share "$share" --timeout $((600 + n * 15)) \
    "${host[@]+"${host[@]}"}" --mount "$here:/mnt/bench" --mount "$build/bench:/mnt/build" --mount "$client:/mnt/client" \
    --env PYTHONPATH=/mnt/client -- python3 -B "${arguments[@]}"
