#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Which lines of the devices are reached without a guest: by their unit tests and by the corpora of their
# fuzz targets, built by clang to count. Prints each that is not, and llvm-cov's report.
#   coverage.sh    builds in build-coverage
# The last line is the totals. Exit status: 0; 1 more lines are missed than there is a reason for
# (CONTRIBUTING.md); 77 nothing could run.
set -euo pipefail
cd "$(dirname "$0")/.."
build='build-coverage'
missed_max=37

for tool in clang llvm-profdata llvm-cov; do
    if ! command -v "$tool" >/dev/null; then
        echo "skip coverage: $tool is not installed"
        echo "0 passed, 0 failed, 1 skipped"
        exit 77
    fi
done
fuzzed=(devices mmio virtqueue vsock state)
units=()
for file in tests/unit/{virtio_*,vmm_devices,vmm_serial}.c; do units+=("unit_$(basename "$file" .c)"); done

CC=clang CFLAGS='-fprofile-instr-generate -fcoverage-mapping' cmake -G Ninja -B "$build" >/dev/null
cmake --build "$build" --target "${fuzzed[@]/#/fuzz_}" "${units[@]}" >/dev/null

rm -f "$build"/*.profraw
count() { # program argument…
    LLVM_PROFILE_FILE=$build/$1.profraw SKILLVM_TEST_SOURCE=$PWD "$build/tests/$1" "${@:2}" >"$build/log" 2>&1 ||
        { tail -n 20 "$build/log" >&2; return 1; }
}
objects=()
for name in "${fuzzed[@]}"; do count "fuzz_$name" "tests/fuzz/corpus/$name"; done
for name in "${units[@]}"; do count "$name"; done
for name in "${fuzzed[@]/#/fuzz_}" "${units[@]}"; do objects+=(-object "$build/tests/$name"); done
llvm-profdata merge -o "$build/all.profdata" "$build"/*.profraw

look() { # report|show
    llvm-cov "$1" "${objects[@]:1}" -instr-profile "$build/all.profdata" vmm/virtio vmm/memory.c vmm/serial.c
}
look show | sed -n 's/^ *\([0-9]*\)| *0|/\1: /p; /^\/.*\.c:$/p' | sed "s#^$PWD/##"
look report
missed=$(look report | awk '$1 == "TOTAL" { print $9 }')
if ((missed > missed_max)); then
    echo "FAIL coverage: $missed lines are not reached, $missed_max have a reason"
    echo "0 passed, 1 failed"
    exit 1
fi
echo "ok coverage: $missed lines are not reached"
echo "1 passed, 0 failed"
