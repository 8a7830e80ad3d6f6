#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures the whole cycle of a hello skill, and peers in the same run:
#   bench/run.sh [--build DIR] [--runs N] [--native | --soft | --counting]… [--json FILE]
#
# --native    on this machine (needs usable KVM and root)
# --soft      in the software host
# --counting  in the software host whose clock counts one nanosecond per instruction
# Without any of them: --soft and --counting. Prints a table; --json also writes everything.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build runs=30 modes='' json=''
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2; shift 2 ;;
    --runs) runs=$2; shift 2 ;;
    --native | --soft | --counting) modes="$modes ${1#--}"; shift ;;
    --json) json=$2; shift 2 ;;
    *) sed -n '/^# *Measures/,/^# Without/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
build=$(cd "$build" && pwd)
share=${SKILLVM_SHARE:-$build/share/skillvm}
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# shellcheck disable=SC2016 # the inner shell expands it
soft() {
    "$here/../images/softhost/run.sh" --share "$share" --timeout $((300 + runs * 20)) "$@" \
        --mount "$here:/mnt/source" --mount "$build/bench:/mnt/bench" \
        --env BIN=/opt/skillvm/bin --env SHARE=/opt/skillvm/share/skillvm \
        --env HELLO=/mnt/source/hello --env COLDSTART=/run/scratch/coldstart \
        -- bash -c 'cp /mnt/bench/coldstart /run/scratch/ && bash /mnt/source/inside.sh "$1"' \
        inside "$runs"
}

for mode in ${modes:-soft counting}; do
    echo "measuring: $mode, $runs runs" >&2
    case $mode in
    soft) out=$(soft) ;;
    counting) out=$(soft --counting) ;;
    native) out=$(SCRATCH=${TMPDIR:-/tmp} BIN=$build/bin SHARE=$share HELLO=$here/hello \
        COLDSTART=$build/bench/coldstart bash "$here/inside.sh" "$runs") ;;
    esac
    printf '{"mode":"%s","result":%s}\n' "$mode" "$(tail -n 1 <<<"$out")" >>"$results"
done
[ -z "$json" ] || cp "$results" "$json"
python3 "$here/report.py" <"$results"
