#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the word-counter skill in a microVM and shows the result, with a daemon of its own: a skillvm
# that is up already is left alone.
#   examples/demo.sh --build DIR
set -euo pipefail

cd "$(dirname "$0")/.."
if [ $# != 2 ] || [ "$1" != --build ]; then
    sed -n '6p' "$0" | cut -c3- >&2
    exit 2
fi
build=$2
logs=$build/logs
export PATH=$build/bin:$PATH
# Kept for the next demo, but not for that of another version, which might refuse it.
data=${XDG_CACHE_HOME:-~/.cache}/skillvm/demo-$(skillvm version | tr -dc 'a-zA-Z0-9.-')
out=$build/demo
. cmake/steps.sh

rm -rf "$out"
mkdir -p "$out" "$data"
export SKILLVM_DATA=$data SKILLVM_SOCKET=$data/skillvm.sock
unset SKILLVM_SHARE
trap 'stop_tick; skillvm down >/dev/null 2>&1 || true' EXIT
# One that an interrupted demo left behind may be of an older build.
skillvm down >/dev/null 2>&1 || true
step "skillvm up" skillvm up

jq -Rs '{text: .}' examples/texts/the-lighthouse.txt >"$build/demo-input.json"
echo "$ skillvm run examples/word-counter --input @… --output-dir build/demo --json"
status=0
skillvm run examples/word-counter --input @"$build/demo-input.json" --output-dir "$out" \
    --json >"$build/demo-result.json" || status=$?
jq . "$build/demo-result.json" || cat "$build/demo-result.json"
if [ "$status" != 0 ]; then
    echo "demo: the run ended with status $status" >&2
    exit 1
fi
artifacts=$(find "$out" -type f | sort)
if [ -z "$artifacts" ]; then
    echo "demo: the run left no artifact in $out" >&2
    exit 1
fi
while read -r artifact; do
    echo "artifact: $artifact"
done <<<"$artifacts"
step "skillvm down" skillvm down
trap stop_tick EXIT
echo "Your turn: eval \"\$(./dev shell-env)\" && skillvm up && skillvm run examples/…"
