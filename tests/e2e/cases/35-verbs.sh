# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The verbs of the command line: registered skills, executions, tenants and their keys.

case_registered_skills() {
    skill greeter main.py 'version: "1.0"' <<<'print("hello", flush=True)'
    expect 0 skillvm health -o json
    equal "$(jq -c . <<<"$OUT")" '{"ready":true}' health
    expect 0 skillvm skill push greeter -o json
    equal "$(jq -r .name,.version <<<"$OUT" | xargs)" "greeter 1.0" "what was pushed"
    expect 0 skillvm skill list
    grep -Eq '^greeter +1\.0 ' <<<"$OUT" || fail "the list has no greeter: $OUT"
    expect 0 skillvm skill show greeter@1.0
    contains "$OUT" "A skill." instructions
    expect 0 skillvm run greeter@1.0
    equal "$OUT" hello stdout
    echo more >greeter/more.txt
    expect 125 skillvm skill push greeter
    contains "$ERR" conflict "other content for a version"
    expect 0 skillvm skill rm greeter@1.0
    expect 125 skillvm run greeter@1.0
    contains "$ERR" greeter "a removed skill"
}

case_skills_are_begun_and_tested() {
    local lang
    for lang in python bash; do
        expect 0 skillvm skill init "own-$lang" --lang "$lang"
        expect 0 skillvm run "./own-$lang" --input '{"name": "Ada"}'
        equal "$OUT" "Hello, Ada!" "what the $lang template prints"
        expect 0 skillvm run "./own-$lang" --input '{"name": "Ada"}' --json
        equal "$(jq -c .output <<<"$OUT")" '{"greeting":"Hello, Ada!"}' "output of the $lang template"
        expect 0 skillvm run "./own-$lang" --json
        equal "$(jq -c .output <<<"$OUT")" '{"greeting":"Hello, world!"}' "the same without an input"
        expect 0 skillvm skill test "own-$lang"
        contains "$OUT" "1 passed, 0 failed" "the template's own test"
    done
    echo 7 >own-python/tests/seven.txt
    cat >own-python/main.py <<'S'
import json, os, sys
n = int(open("/sandbox/in/n").read()) * json.load(sys.stdin)["by"]
print(f"n is {n}", file=sys.stderr)
open(os.environ["SANDBOX_FILES_DIR"] + "/n.txt", "w").write(str(n))
json.dump({"n": n, "args": sys.argv[1:]}, open(os.environ["SANDBOX_OUTPUT"], "w"))
sys.exit(n > 30)
S
    cat >own-python/tests/greeting.json <<'S'
{"input": {"by": 3}, "files": {"n": "tests/seven.txt"}, "args": ["-v"],
 "expect": {"output": {"n": 21, "args": ["-v"]}, "files": ["n.txt"]}}
S
    expect 0 skillvm skill test own-python
    contains "$OUT" "1 passed, 0 failed" "a test of files and arguments"
    sed 's/"by": 3/"by": 5/' own-python/tests/greeting.json >own-python/tests/more.json
    expect 1 skillvm skill test own-python
    contains "$OUT" "ok    greeting" "the test that goes well"
    contains "$OUT" "output.n: expected 21, got 35" "what differs"
    contains "$OUT" "status: expected success, got failed" "how it ended"
    contains "$OUT" "| n is 35" "what it said"
    contains "$OUT" "1 passed, 1 failed" "the end"
    expect 1 skillvm skill test own-python -o json
    equal "$(jq -c '[.passed, .failed, .tests[].passed]' <<<"$OUT")" '[1,1,true,false]' "as JSON"
}

# A script that writes where it is started fails, and the answer says where to write.
case_writes_that_are_denied() {
    local warning='the folders of a skill are read-only; files for the caller go to /sandbox/out/files (SANDBOX_FILES_DIR), others to /tmp'
    skill writer main.py <<<'open("report.csv", "w")'
    mkdir writer/scripts
    echo 'import os; os.mkdir("/sandbox/skill/cache")' >writer/scripts/cache.py
    echo 'echo 1 >report.csv' >writer/scripts/report.sh
    echo 'touch report.csv' >writer/scripts/touch.sh
    echo 'import json; json.dump(1, open("output.json", "w"))' >writer/scripts/result.py
    expect 1 skillvm run writer --json
    contains "$ERR$OUT" PermissionError "the traceback"
    equal "$(jq -r '.warnings[]' <<<"$OUT")" "it could not write \"report.csv\": $warning" "Python's open"
    expect 1 skillvm run writer --script scripts/cache.py
    contains "$ERR" "it could not write \"/sandbox/skill/cache\": $warning" "Python's mkdir"
    expect 1 skillvm run writer --script scripts/report.sh
    contains "$ERR" "it could not write \"report.csv\": $warning" "a shell's redirection"
    expect 1 skillvm run writer --script scripts/touch.sh
    contains "$ERR" "it could not write \"report.csv\": $warning" "a program of a shell"
    expect 1 skillvm run writer --script scripts/result.py
    contains "$ERR" "the result goes to /sandbox/out/output.json (SANDBOX_OUTPUT)" "the result"
    # What may be written is, and what may not be read is another thing.
    echo 'open("/tmp/x", "w"); open("/sandbox/in/x", "w"); open("/proc/1/environ")' >writer/scripts/reads.py
    expect 1 skillvm run writer --script scripts/reads.py --json
    contains "$OUT" "/proc/1/environ" "what failed"
    equal "$(jq -c .warnings <<<"$OUT")" '[]' "a file that may not be read"
}

# What the image does not have is told before anything runs, and again when that is why a run failed.
case_needs_of_skills() {
    local warning='the image python has no module "pandas": it has compiled code'
    skill charts main.py 'version: "1.0"' <<'S'
import json, subprocess, sys, yaml
import helpers
if len(sys.argv) > 1:
    print(subprocess.run(["git", "--version"], capture_output=True, text=True).stdout)
else:
    import pandas
S
    echo "import bs4, requests" >charts/helpers.py
    expect 0 skillvm skill lint charts
    contains "$ERR" "main.py line 6: $warning" "the warning of lint"
    expect 0 skillvm skill inspect charts
    grep -Eq '^import +requests +image +helpers.py:1$' <<<"$OUT" || fail "no requests: $OUT"
    grep -Eq '^program +git +image +main.py:4$' <<<"$OUT" || fail "no git: $OUT"
    expect 0 skillvm skill push charts
    contains "$ERR" "main.py line 6: $warning" "the warning of a push"
    contains "$ERR" "which is not installed here: \`skillvm image build data\` makes it" "the remedy, from the daemon"
    expect 0 skillvm skill inspect charts@1.0 -o json
    equal "$(jq -r '.imports[] | select(.from == "missing") | .module, .line' <<<"$OUT" | xargs)" \
        "pandas 6" "what is missing"
    expect 125 skillvm skill inspect charts@2.0
    contains "$ERR" "no version 2.0" "another version"
    expect 1 skillvm run charts --json
    contains "$(jq -r '.warnings[]' <<<"$OUT")" "$warning" "the warning of a result"
    # What the list says is there is there.
    expect 0 skillvm run charts --script main.py -- there
    contains "$OUT" "git version" "a program of the image"
    skill tools main.sh <<<'gnuplot --version'
    expect 127 skillvm run tools --json
    contains "$(jq -r '.warnings[]' <<<"$OUT")" 'the image python has no program "gnuplot"' "a program"
}

case_executions_by_verbs() {
    local id
    skill chatty main.sh 'version: "1.0"' <<'S'
echo first; echo note >&2; echo data >"$SANDBOX_FILES_DIR/a.txt"
[ -z "${STAY:-}" ] || sleep 900
S
    skillvm skill push chatty >/dev/null
    expect 0 skillvm run chatty --json
    id=$(jq -r .execution_id <<<"$OUT")
    expect 0 skillvm exec list --skill chatty --status success -o json
    equal "$(jq -r '.executions[0].execution_id' <<<"$OUT")" "$id" "the newest one"
    expect 0 skillvm exec show "$id"
    contains "$OUT" "status     success" show
    expect 0 skillvm exec logs "$id"
    contains "$OUT" first log
    expect 0 skillvm exec logs -f "$id"
    equal "$OUT" first "followed stdout"
    equal "$ERR" note "followed stderr"
    expect 0 skillvm exec files "$id"
    equal "$OUT" a.txt "its files"
    expect 0 skillvm exec files "$id" a.txt
    equal "$OUT" data "one file"

    # One that goes on: followed while it runs, and ended by another command.
    http_expect 202 /v1/executions -H 'Content-Type: application/json' \
        -d '{"skill": "chatty", "env": {"STAY": "1"}, "async": true, "timeout": 900}'
    id=$(jq -r .execution_id <<<"$BODY")
    skillvm exec logs -f "$id" >followed 2>&1 &
    until grep -q first followed; do
        kill -0 $! 2>/dev/null || fail "nothing is followed while it runs: $(<followed)"
        sleep 0.1
    done
    expect 0 skillvm exec cancel "$id"
    wait $! || fail "following ended with $?"
    expect 0 skillvm exec show "$id" -o json
    equal "$(jq -r .status <<<"$OUT")" cancelled status
    expect 125 skillvm exec cancel "$id"
    contains "$ERR" conflict "to cancel what has ended"
}

case_tenants_and_keys() {
    local name=tenant-$$
    expect 0 skillvm tenant create "$name" --max-running 2 -o json
    equal "$(jq -r .limits.max_running <<<"$OUT")" 2 "its limit"
    (umask 077 && skillvm key create --tenant "$name" >own.key 2>/dev/null)
    skill own main.py 'version: "1.0"' <<<'print("own")'
    expect 0 skillvm skill push own --key @own.key
    expect 0 skillvm run own@1.0 --key @own.key
    equal "$OUT" own stdout
    expect 125 skillvm run own@1.0
    contains "$ERR" own "another tenant's skill"
    expect 125 skillvm tenant list --key @own.key
    contains "$ERR" unauthorized "a tenant's key for the operator's"
    expect 0 skillvm key list --tenant "$name" -o json
    expect 0 skillvm key revoke "$(jq -r '.keys[0].id' <<<"$OUT")"
    expect 125 skillvm skill list --key @own.key
    contains "$ERR" "the key is that of --key" "a revoked key"
    expect 0 skillvm tenant rm "$name"
}
