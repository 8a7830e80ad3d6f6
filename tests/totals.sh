#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Counts what passed, to be sourced after cmake/steps.sh. Every check, every ctest test and every
# end-to-end case counts as one; the cases that a test which ran left out are named beside.

jobs=$(nproc)
passed=0
failed=0
skipped=()
left_out=()
failures=()

check() { # title command…
    if try "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        failures+=("$1")
    fi
}

# Those that run, each the leader of a group with all that it began: what ends this ends them.
ctests=()
stop_ctests() {
    ((${#ctests[@]} == 0)) || kill "${ctests[@]}" 2>/dev/null || true
}
trap 'stop_tick; stop_ctests' EXIT

run_ctest() { # folder labels
    # Most of them wait for deadlines rather than for the processor: six slots for each, of which
    # tests/CMakeLists.txt says what a test takes. The limits end what hangs, on a
    # machine however busy: a test; and ctest, which waits for whatever a test left behind.
    rm -f "$1/junit.xml"
    exec timeout --kill-after=10 3000 ctest --test-dir "$1" -j $((6 * jobs)) -L "$2" \
        --output-on-failure --timeout 1200 --no-tests=error --output-junit "$1/junit.xml"
}

# Beside each other: some wait while others compute. What they print is shown one after the other.
run_ctests() { # folder labels [folder labels]…
    local folders=() i status=0
    while [ $# -gt 0 ]; do
        run_ctest "$1" "$2" >"$1/ctest.log" 2>&1 &
        ctests+=($!) folders+=("$1")
        shift 2
    done
    for i in "${!folders[@]}"; do
        wait "${ctests[i]}" || status=1
        cat "${folders[i]}/ctest.log"
    done
    ctests=()
    return "$status"
}

# Of what each failed test of a log of ctest printed: the end, and what says why anywhere.
show_failures() { # log
    awk '
        function show(i) {
            for (i = 0; i < n; i++)
                if (i == 0 || i >= n - 30 || lines[i] ~ /^\[ +(ERROR|LINE|FAILED) +\]|Sanitizer/)
                    print "    " lines[i]
            n = 0
        }
        /^ *[0-9]+\/[0-9]+ Test +#/ { show(); failed = /\*\*\*/ }
        / tests passed, / { failed = 0 }
        failed && NF && !/^ +Start +[0-9]+: / { lines[n++] = $0 }
        END { show() }' "$1" >&2
}

# The cases that tests of cmocka skipped, each of which it says again at its end.
list_left_out() { # log of ctest
    awk '
        /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
        /^\[ +SKIPPED +\] [^ ]+$/ && !said[test, $NF]++ { print test ": " $NF }' "$1"
}

# Adds what the JUnit file of a folder says to the totals; the suite itself is not one more.
count_ctest() { # title folder
    local file=$2/junit.xml tests failures_here skips name
    if [ ! -s "$file" ]; then
        failed=$((failed + 1))
        failures+=("$1")
        return
    fi
    tests=$(sed -n 's/^.* tests="\([0-9]*\)".*$/\1/p;s/^[[:space:]]*tests="\([0-9]*\)".*$/\1/p' "$file" | head -n 1)
    failures_here=$(grep -c '<failure' "$file" || true)
    skips=$(grep -c '<skipped' "$file" || true)
    passed=$((passed + tests - failures_here - skips))
    failed=$((failed + failures_here))
    while read -r name; do
        skipped+=("$name ($1)")
    done < <(grep -B 1 '<skipped' "$file" | sed -n 's/^.*<testcase name="\([^"]*\)".*$/\1/p')
    while read -r name; do
        failures+=("$name ($1)")
    done < <(grep -B 1 '<failure' "$file" | sed -n 's/^.*<testcase name="\([^"]*\)".*$/\1/p')
    while read -r name; do
        left_out+=("$name ($1)")
    done < <(list_left_out "$2/Testing/Temporary/LastTest.log")
}

check_ctest() { # title folder labels [folder labels]…
    local title=$1
    shift
    # shellcheck disable=SC2154 # try sets it
    try "$title" run_ctests "$@" || show_failures "$step_log"
    while [ $# -gt 0 ]; do
        count_ctest "$title, ${1##*/}" "$1"
        shift 2
    done
}

# A suite that prints `ok`, `FAIL` and `skip` lines and a closing line of its own.
check_cases() { # title command…
    local title=$1 status=0 totals name
    try "$@" || status=$?
    # shellcheck disable=SC2154 # try sets it
    totals=$(grep -E '^[0-9]+ passed' "$step_log" | tail -n 1 || true)
    if [[ $totals =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        [ "$status" = 0 ] || [ "${BASH_REMATCH[2]}" != 0 ] || failed=$((failed + 1))
    else
        failed=$((failed + 1))
        failures+=("$title: no totals")
    fi
    while read -r name; do
        skipped+=("$title: $name")
    done < <(sed -n 's/^skip //p' "$step_log")
    while read -r name; do
        failures+=("$title: $name")
    done < <(sed -n 's/^FAIL //p' "$step_log")
    sed -n 's/^again /  begun again: /p' "$step_log"
}

print_totals() {
    local line
    for line in "${failures[@]}"; do
        echo "failed: $line"
    done
    for line in "${skipped[@]}"; do
        echo "skipped: $line"
    done
    for line in "${left_out[@]}"; do
        echo "skipped within: $line"
    done
    if [ ${#skipped[@]} -gt 0 ]; then
        echo "$passed passed, $failed failed, ${#skipped[@]} skipped"
    else
        echo "$passed passed, $failed failed"
    fi
    [ "$failed" = 0 ]
}
