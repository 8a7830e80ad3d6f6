# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What a new user does first.

# limit up 240
case_up() {
    expect 0 skillvm up --host "$E2E_HOST"
    [[ -S $SKILLVM_SOCKET ]] || fail "there is no socket at $SKILLVM_SOCKET"
    if [[ $E2E_HOST == soft ]]; then
        contains "$OUT$ERR" "oftware host" "what up says"
    fi
    for _ in $(seq 200); do
        http /ready
        [[ $STATUS == 200 ]] && break
        sleep 0.5
    done
    equal "$STATUS" 200 "/ready"
}

case_up_again_says_so() {
    expect 0 skillvm up --host "$E2E_HOST"
    http_expect 200 /health
}

# limit demo 60
case_demo() {
    local text=$E2E_ROOT/examples/texts/the-lighthouse.txt
    jq -Rs '{text: .}' "$text" >input.json
    expect 0 skillvm run "$E2E_ROOT/examples/word-counter" --input @input.json --output-dir out --json
    equal "$(jq -r .status <<<"$OUT")" success status
    equal "$(jq -S .output <<<"$OUT")" "$(jq -S . "${text%.txt}.counts.json")" output
    # The same figures by other means.
    equal "$(jq .output.words <<<"$OUT")" "$(LC_ALL=C.UTF-8 wc -w <"$text")" words
    equal "$(jq .output.bytes <<<"$OUT")" "$(wc -c <"$text")" bytes
    equal "$(jq .output.lines <<<"$OUT")" "$(wc -l <"$text")" lines
    jq -e '.phases_ms | .take > 0 and .run > 0 and (has("boot") | not)' <<<"$OUT" >/dev/null ||
        fail "phases_ms: $(jq -c .phases_ms <<<"$OUT")"
    jq -e '.snapshot | length > 0' <<<"$OUT" >/dev/null || fail "no snapshot was named"
    python3 - "$text" >want.csv <<'P'
import collections, sys
words = open(sys.argv[1], encoding="utf-8").read().lower().split()
strip = "".join(c for c in set("".join(words)) if not c.isalnum())
table = collections.Counter(w.strip(strip) for w in words)
print("word,count")
for word, count in sorted(table.items(), key=lambda item: (-item[1], item[0])):
    print(f"{word},{count}")
P
    cmp want.csv out/counts.csv || fail "out/counts.csv differs"
    contains "$(<out/report.md)" "| words | 851 |" report.md
}

case_second_run_is_quick() {
    local before=$EPOCHREALTIME seconds
    expect 0 skillvm run "$E2E_ROOT/examples/word-counter" --input '{"text": "a b"}' --json
    equal "$(jq .output.words <<<"$OUT")" 2 words
    seconds=$(awk -v a="$before" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    awk -v s="$seconds" 'BEGIN { exit !(s < 60) }' || fail "it took $seconds s"
}

case_examples() {
    expect 0 skillvm run "$E2E_ROOT/examples/data-analysis" --output-dir out
    contains "$OUT" "upper_mill: mean 1.4722" stdout
    python3 -c 'import xml.dom.minidom as x; x.parse("out/chart.svg")' || fail "chart.svg is no XML"
    contains "$(<out/summary.csv)" "estuary,35,3.0163" summary.csv
    expect 0 skillvm run "$E2E_ROOT/examples/text-stats-bash" --timeout 300s --input '"one two\nthree"' --json
    equal "$(jq -c .output <<<"$OUT")" '{"bytes":13,"lines":1,"words":3,"longest_line":7}' output
    expect 42 skillvm run "$E2E_ROOT/examples/failing" --output-dir failed
    contains "$OUT" "half of the work is done" stdout
    contains "$ERR" "the other half is not possible" stderr
    equal "$(<failed/partial.txt)" "as far as it came" partial.txt
}

case_version_and_help() {
    expect 0 skillvm version
    contains "$OUT" "skillvm 0." version
    expect 0 skillvm --help
    for word in up down status run doctor version; do
        contains "$OUT" "$word" "help"
    done
    expect 0 skillvm run --help
    for word in --input --output-dir --timeout --script --module --json; do
        contains "$OUT" "$word" "help of run"
    done
    for arguments in "" "none-such" "run" "run --none-such x" "up --host moon"; do
        # shellcheck disable=SC2086 # words
        capture skillvm $arguments
        ((RC == 2 || RC == 125)) || fail "skillvm $arguments: exit status $RC"
        [[ -n $ERR ]] || fail "skillvm $arguments: nothing was said"
    done
}

case_status() {
    expect 0 skillvm status
    [[ -n $OUT ]] || fail "status says nothing"
    expect 0 skillvm status --json
    jq -e 'type == "object"' <<<"$OUT" >/dev/null || fail "status --json: $OUT"
    contains "$OUT" "$SKILLVM_SOCKET" "status --json"
}

case_doctor() {
    capture skillvm doctor --json
    jq -e 'type == "object"' <<<"$OUT" >/dev/null || fail "doctor --json: ${OUT:0:300}"
    local json_status=$RC
    # What takes it too long does so each time; this machine may stand still for a while.
    local begin quick=''
    for _ in 1 2 3; do
        begin=$EPOCHREALTIME
        capture skillvm doctor
        equal "$RC" "$json_status" "exit status with and without --json"
        awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { exit !(b - a < 6) }' && quick=1 && break
    done
    [[ -n $quick ]] || fail "it took too long"
    if [[ $E2E_HOST == native ]]; then
        equal "$RC" 0 "exit status where KVM is usable"
    elif [[ ! -e /dev/kvm ]]; then
        contains "$OUT" "/dev/kvm" doctor
        ((RC != 0)) || fail "exit status 0 without /dev/kvm"
    else
        # The device opens and cannot run a kernel, and that is what it has to say.
        ((RC != 0)) || fail "exit status 0 where no guest runs"
        contains "$OUT" "/dev/kvm" doctor
        grep -Eiq 'opens?,? but .*cannot run' <<<"$OUT" || fail "doctor does not say it: ${OUT:0:600}"
    fi
    for word in kernel cgroup; do
        grep -qi "$word" <<<"$OUT" || fail "doctor says nothing of $word"
    done
}
