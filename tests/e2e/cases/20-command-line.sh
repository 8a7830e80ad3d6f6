# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# `skillvm run`: what it prints, where it writes, and how it ends.
#
# shellcheck disable=SC2016 # what skills and assertions hold is not for this shell

case_exit_codes() {
    skill ok main.py <<<'print("fine")'
    expect 0 skillvm run ok
    equal "$OUT" fine stdout
    skill seven main.sh <<<'echo out; echo err >&2; exit 7'
    expect 7 skillvm run seven
    equal "$OUT" out stdout
    contains "$ERR" err stderr
    skill killed main.py <<<'import os; os.kill(os.getpid(), 9)'
    expect 137 skillvm run killed
    skill slow main.py <<<'print("partial", flush=True); import time; time.sleep(600)'
    expect 124 skillvm run slow --timeout 60s
    contains "$OUT" partial stdout
}

case_own_failures_are_125() {
    skill fine main.py <<<'print(1)'
    expect 125 skillvm run ./none-such
    contains "$ERR" none-such message
    expect 125 skillvm run unregistered-skill
    contains "$ERR" unregistered-skill message
    mkdir empty
    expect 125 skillvm run ./empty
    contains "$ERR" SKILL.md message
    echo "no zip" >broken.zip
    expect 125 skillvm run ./broken.zip
    [[ -n $ERR ]] || fail "a broken zip: nothing was said"
    expect 125 skillvm run fine --script none-such.py
    contains "$ERR" none-such.py message
    expect 125 skillvm --socket "$PWD/no.sock" run fine --host native --data /proc/none ||
        expect 125 skillvm run fine --socket "$PWD/no.sock" --data /proc/none
}

case_wrong_usage_is_2() {
    skill fine main.sh <<<'echo ran'
    expect 2 skillvm run fine --input '{"open": '
    contains "$ERR" JSON message
    expect 2 skillvm run fine --input @none-such.json
    contains "$ERR" none-such.json message
    touch file
    expect 2 skillvm run fine --output-dir file/below
    contains "$ERR" file/below message
}

case_unreadable_folder() {
    skill private main.py <<<'print(1)'
    chmod 000 private
    if ((EUID == 0)); then
        chmod 755 . .. ../..
        capture setpriv --reuid 65534 --regid 65534 --clear-groups skillvm run private
    else
        capture skillvm run private
    fi
    equal "$RC" 125 "exit status"
    contains "$ERR" private message
    grep -qi "permission" <<<"$ERR" || fail "it does not say why: $ERR"
}

case_unwritable_output_folder() {
    skill writes main.sh <<<'echo x >"$SANDBOX_FILES_DIR/x"'
    mkdir closed
    # Root may write anywhere, but not in /proc, where that shows when a folder is made.
    local folder=closed/out
    if ((EUID == 0)); then
        folder=/proc/skillvm-out
    else
        chmod 555 closed
    fi
    expect 2 skillvm run writes --output-dir "$folder"
    contains "$ERR" "$folder" message
}

case_output_folder() {
    skill writes main.sh <<'S'
mkdir -p "$SANDBOX_FILES_DIR/a/b"
echo one >"$SANDBOX_FILES_DIR/one.txt"
echo two >"$SANDBOX_FILES_DIR/a/b/two.txt"
ln -s /etc/passwd "$SANDBOX_FILES_DIR/link"
S
    expect 0 skillvm run writes --output-dir new/folder
    equal "$(<new/folder/one.txt)" one one.txt
    equal "$(<new/folder/a/b/two.txt)" two two.txt
    [[ ! -e new/folder/link ]] || fail "a link came along"
    # Again into the same folder, with a link laid in the way: it must not be followed.
    rm new/folder/one.txt
    echo precious >precious
    ln -s "$PWD/precious" new/folder/one.txt
    capture skillvm run writes --output-dir new/folder
    equal "$(<precious)" precious "the target of a link in the output folder"
}

case_inputs() {
    skill echo main.sh <<<'cat'
    expect 0 skillvm run echo --input '{"a": [1, 2]}'
    equal "$(jq -c . <<<"$OUT")" '{"a":[1,2]}' "input as text"
    echo '{"from": "file"}' >input.json
    expect 0 skillvm run echo --input @input.json
    equal "$(jq -r .from <<<"$OUT")" file "input from a file"
    RC=0
    OUT=$(echo '{"from": "stdin"}' | skillvm run echo --input -) || RC=$?
    equal "$RC" 0 "exit status with --input -"
    equal "$(jq -r .from <<<"$OUT")" stdin "input from standard input"
    expect 0 skillvm run echo
    equal "$(jq -c . <<<"$OUT")" '{}' "no input"
    jq -n '("x" * 1000000)' >big.json
    expect 0 skillvm run echo --input @big.json
    equal "${#OUT}" 1000002 "bytes of a big input"
    head -c 20M /dev/zero | tr '\0' x | jq -Rs . >huge.json
    expect 2 skillvm run echo --input @huge.json
    grep -Eqi 'too.large|16 MiB|limit' <<<"$ERR" || fail "20 MiB of input: $ERR"
}

# As many input files as an execution may have, counted and summed by a guest; and one more.
count_files() {
    mkdir -p in/{10..99}
    (cd in && for n in $(seq 10000); do echo "$n" >"$((n % 90 + 10))/$n.txt"; done)
    cat >count.py <<'S'
import os
paths = [os.path.join(folder, name) for folder, _, names in os.walk("/sandbox/in") for name in names]
print(len(paths), sum(int(open(path).read()) for path in paths), len({os.path.dirname(path) for path in paths}))
S
}
counted="10000 50005000 90" # files, their sum, folders

# limit ten_thousand_input_files 300
# long ten_thousand_input_files
case_ten_thousand_input_files() {
    count_files
    (cd in && grep -r '') | jq -Rn --rawfile code count.py '{$code, lang: "python",
        files: [inputs / ":" | {name: ("in/" + .[0]), text: .[1]}]}' >request
    http_expect 200 /v1/executions -H 'Content-Type: application/json' --data-binary @request
    equal "$(jq -r .stdout <<<"$BODY")" "$counted" "what was counted"
    jq -c '.files += [{name: "in/10/more.txt", text: "0"}]' request >more.json
    http_expect 413 /v1/executions -H 'Content-Type: application/json' --data-binary @more.json
    error_is too_large '"files" has more than 10000 entries; put them into an archive'
    echo 0 >in/10/more.txt
    expect 2 skillvm run count.py --file in
    contains "$ERR" "there are more than 10000 input files; put them into an archive" "one too many"
}

# They come with the request, and one that is too large for that is uploaded.
# limit ten_thousand_files_of_a_folder 300
# long ten_thousand_files_of_a_folder
case_ten_thousand_files_of_a_folder() {
    count_files
    { head -c 100000 /dev/zero | tr '\0' ' ' && cat in/10/90.txt; } >in/10/large
    mv in/10/large in/10/90.txt
    expect 0 skillvm run count.py --file in
    equal "$OUT" "$counted" "what was counted"
    http_expect 200 /v1/files
    equal "$BODY" "[]" "uploads that are left"
}

case_script_module_and_arguments() {
    skill tools scripts/tool.py <<'S'
import sys, os
print(os.path.basename(sys.argv[0]), sys.argv[1:], os.path.basename(os.getcwd()))
S
    touch tools/scripts/__init__.py
    echo 'echo "$@"' >tools/scripts/other.sh
    expect 125 skillvm run tools
    contains "$ERR" "scripts/tool.py" "what it asks"
    expect 0 skillvm run tools --script scripts/tool.py -- a 'b c' --json
    equal "$OUT" "tool.py ['a', 'b c', '--json'] skill" "script"
    expect 0 skillvm run tools --module scripts.tool -- -x
    equal "$OUT" "tool.py ['-x'] skill" "module"
    expect 0 skillvm run tools --script scripts/other.sh -- "*" '$HOME'
    equal "$OUT" '* $HOME' "bash"
    # Without an extension, by its first line.
    printf '#!/usr/bin/env python3\nimport sys\nprint(sys.version_info[0], sys.argv[1:])\n' >tools/scripts/bare
    expect 0 skillvm run tools --script bare -- x
    equal "$OUT" "3 ['x']" "a first line"
}

case_streams_are_bytes() {
    skill bytes main.sh <<<"printf 'a\\tb\\r\\n\\033[1mx'; printf 'e\\n' >&2"
    skillvm run bytes >out 2>err || fail "exit status $?"
    printf 'a\tb\r\n\033[1mx' >want
    cmp out want || fail "stdout differs"
    contains "$(<err)" e stderr
}

case_output_is_live() {
    skill live main.py <<'S'
import time
print("first", flush=True)
time.sleep(15)
print("last", flush=True)
S
    local first=''
    skillvm run live >out 2>err &
    local pid=$!
    for _ in $(seq 900); do
        grep -q first out && first=1 && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    [[ -n $first ]] || fail "the first line did not come: $(<err)"
    kill -0 "$pid" 2>/dev/null || fail "the first line came only at the end"
    ! grep -q last out || fail "both lines came together"
    wait "$pid" || fail "exit status $?"
    equal "$(<out)" $'first\nlast' stdout
}

case_json_is_one_document() {
    skill noisy main.sh <<<'echo noise; echo \"value\"; echo more >&2; exit 3'
    RC=0
    skillvm run noisy --json >out 2>err || RC=$?
    equal "$RC" 3 "exit status"
    equal "$(jq -s length out)" 1 "documents on standard output"
    equal "$(jq -r '.status, .exit_code' out | tr '\n' ' ')" "failed 3 " "status, exit_code"
    equal "$(jq -r .stdout out)" $'noise\n"value"' stdout
}

case_zips_and_names() {
    skill by-zip main.py "version: 4.5.6" <<<'print("zipped")'
    zip_of by-zip
    expect 0 skillvm run by-zip.zip
    equal "$OUT" zipped "a zip"
    (mkdir wrap && cp -r by-zip wrap/ && cd wrap && zip -qr ../wrapped.zip by-zip)
    expect 0 skillvm run wrapped.zip
    equal "$OUT" zipped "a zip with a wrapping folder"
    http_expect 201 /v1/skills -H 'Content-Type: application/zip' --data-binary @by-zip.zip
    cd ..
    expect 0 skillvm run by-zip
    equal "$OUT" zipped "a registered name"
    expect 0 skillvm run by-zip@4.5.6
    equal "$OUT" zipped "a name and version"
    capture skillvm run by-zip@9.9.9
    ((RC == 1 || RC == 125)) || fail "an unknown version: exit status $RC"
    contains "$ERR" 9.9.9 message
}

case_two_at_once() {
    skill twice main.py <<'S'
import json, os, time
time.sleep(0.5)
print(json.loads(os.environ["SANDBOX_INPUT"])["n"])
S
    local n
    local -a pids=()
    for n in 1 2 3; do
        skillvm run twice --input "{\"n\": $n}" >"out$n" 2>"err$n" &
        pids+=($!)
    done
    for n in 1 2 3; do
        wait "${pids[n - 1]}" || fail "number $n: exit status $?: $(<"err$n")"
        equal "$(<"out$n")" "$n" "stdout of number $n"
    done
}

case_interrupt() {
    skill forever main.py <<<'print("on", flush=True); import time; time.sleep(600)'
    local pid
    # A job's own group, so that the signal is for it alone.
    setsid -w skillvm run forever >out 2>err &
    pid=$!
    until grep -q on out; do
        kill -0 "$pid" 2>/dev/null || fail "it ended: $(<err)"
        sleep 0.1
    done
    pid=$(pgrep -P "$pid" -x skillvm || echo "$pid")
    kill -INT "$pid"
    for _ in $(seq 600); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    ! kill -0 "$pid" 2>/dev/null || fail "it still runs 60 s after SIGINT"
    wait || true
    expect 0 skillvm run "$E2E_ROOT/examples/word-counter" --input '{"text": "x"}'
}

case_half_a_character() {
    skill half main.py <<<'import json, os; print(json.dumps(os.fsdecode(b"a\xffb")))'
    expect 0 skillvm run half --json
    jq -e '.status == "success"' <<<"$OUT" >/dev/null || fail "the result: ${OUT:0:300}"
}
