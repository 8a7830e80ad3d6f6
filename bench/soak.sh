#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Many executions through one daemon in the software host:
#   bench/soak.sh [--build DIR] [--native] [--mixed CLIENTS] [N]     (default 2000)
#
# Prints a line for every hundred, then what failed, what grew and what was left behind. Exit 0
# when nothing did. --native runs on this machine instead (needs usable KVM and root). --mixed
# lets so many clients ask for executions of every outcome at once, and accounts for each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build n=2000 native='' mixed=''
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    --native) native=1; shift ;;
    --mixed) mixed=$2; shift 2 ;;
    [0-9]*) n=$1; shift ;;
    *) sed -n '/^# *Many/,/^# lets/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
build=$(cd "$build" && pwd)
share=${SKILLVM_SHARE:-$build/share/skillvm}
client=$here/../api/clients/python
if [ -n "$mixed" ] && [ -n "$native" ]; then
    data=$(mktemp -d)
    PYTHONPATH=$client exec python3 -B "$here/mixed.py" "$build/bin" "$share" "$data" "$n" "$mixed"
elif [ -n "$mixed" ]; then
    exec "$here/../images/softhost/run.sh" --share "$share" --timeout $((600 + n * 15)) \
        --mount "$here:/mnt/source" --mount "$client:/mnt/client" --env PYTHONPATH=/mnt/client \
        -- python3 -B /mnt/source/mixed.py /opt/skillvm/bin /opt/skillvm/share/skillvm \
        /run/scratch "$n" "$mixed"
elif [ -n "$native" ]; then
    SCRATCH=${TMPDIR:-/tmp} BIN=$build/bin SHARE=$share HELLO=$here/hello SOAK=$n \
        COLDSTART=$build/bench/coldstart exec bash "$here/inside.sh" 100
fi
# shellcheck disable=SC2016 # the inner shell expands it
exec "$here/../images/softhost/run.sh" --share "$share" --timeout $((600 + n * 15)) \
    --mount "$here:/mnt/source" --mount "$build/bench:/mnt/bench" \
    --env BIN=/opt/skillvm/bin --env SHARE=/opt/skillvm/share/skillvm --env SOAK="$n" \
    --env HELLO=/mnt/source/hello --env COLDSTART=/run/scratch/coldstart \
    -- bash -c 'cp /mnt/bench/coldstart /run/scratch/ && bash /mnt/source/inside.sh 100'
