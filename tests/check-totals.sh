#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whoever interrupts ./dev test is left with none of its tests.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/one" "$work/other"
mkfifo "$work/begun"
exec 3<>"$work/begun"
cat >"$work/bin/ctest" <<'CTEST'
#!/bin/sh
sleep 1000 &
echo $! >"$WORK/begun"
wait
CTEST
chmod +x "$work/bin/ctest"

# A shell ignores interruptions in what it leaves running: a terminal's programs do not.
# shellcheck disable=SC2016 # the inner shell expands them
WORK=$work PATH=$work/bin:$PATH env --default-signal=INT bash -c '
    logs=$WORK/logs
    . cmake/steps.sh
    . tests/totals.sh
    try units run_ctests "$WORK/one" unit "$WORK/other" unit' &
run=$!
read -r -t 60 one <&3
read -r -t 60 other <&3
kill -INT "$run"
wait "$run" && status=0 || status=$?
((status == 130)) || { echo "interrupted, it ended with $status" >&2 && exit 1; }
for test in "$one" "$other"; do
    timeout 60 tail --pid="$test" -f /dev/null || {
        echo 'interrupted, it left a test behind' >&2
        kill "$one" "$other" 2>/dev/null
        exit 1
    }
done
