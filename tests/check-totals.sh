#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Whoever interrupts ./dev test is left with none of its tests, and it names what they skipped.
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

# A test whose case is skipped has passed.
mkdir -p "$work/one/Testing/Temporary"
cat >"$work/one/junit.xml" <<'XML'
<testsuite name="(empty)"
	tests="2"
	>
	<testcase name="unit_one" classname="unit_one" time="1" status="run">
	</testcase>
	<testcase name="unit_other" classname="unit_other" time="1" status="run">
	</testcase>
</testsuite>
XML
cat >"$work/one/Testing/Temporary/LastTest.log" <<'LOG'
1/2 Testing: unit_one
[  SKIPPED ] test_a
[       OK ] test_b
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] test_a
2/2 Testing: unit_other
[       OK ] test_a
LOG
# shellcheck disable=SC2016 # the inner shell expands it
said=$(WORK=$work bash -c '
    logs=$WORK/logs
    . cmake/steps.sh
    . tests/totals.sh
    count_ctest units "$WORK/one"
    print_totals')
[ "$said" = 'skipped within: unit_one: test_a (units)
2 passed, 0 failed' ] || { echo "a skipped case is told so: $said" >&2 && exit 1; }
