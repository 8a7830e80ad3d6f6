# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Code without a skill, in a real machine: what it finds there, by every way to give it.

code_of() { # language: what is in the file of standard input, as a request
    jq -Rs --arg lang "$1" '{code: ., lang: $lang}'
}

# limit code_by_http 240
case_code_by_http() {
    code_of python >request.json <<'P'
import json, os, sys
from pathlib import Path
import yaml
given = json.load(sys.stdin)
print("reading", flush=True)
rows = Path("/sandbox/in/data/in.csv").read_text().split()
Path("/sandbox/out/files/rows.txt").write_text("\n".join(rows))
json.dump({"file": __file__, "argv": sys.argv, "path": sys.path[0], "cwd": os.getcwd(),
           "skill": sorted(os.listdir("/sandbox/skill")), "name": os.environ.get("SKILL_NAME"),
           "given": given, "a": os.environ["A"], "rows": len(rows), "yaml": yaml.safe_load("[1]")},
          open(os.environ["SANDBOX_OUTPUT"], "w"))
P
    printf 'a,b\n1,2\n' >in.csv
    http_expect 201 '/v1/files?name=in.csv' --data-binary @in.csv
    jq --arg id "$(jq -r .id <<<"$BODY")" '. + {input: {n: 1}, env: {A: "b"}, args: ["-x"],
        timeout: 600, files: [{id: $id, path: "data/in.csv"}]}' request.json >whole.json
    http_expect 200 /v1/executions -H 'Content-Type: application/json' -d @whole.json
    equal "$(jq -cS .output <<<"$BODY")" "$(jq -cnS '{file: "/sandbox/scripts/main.py",
        argv: ["/sandbox/scripts/main.py", "-x"], path: "/sandbox/scripts", cwd: "/sandbox",
        skill: ["SKILL.md", "main.py"], name: null, given: {n: 1}, a: "b", rows: 2,
        yaml: [1]}')" "what it finds"
    equal "$(jq -r .stdout <<<"$BODY")" reading stdout
    equal "$(jq -c '[.files_list, .skill.name, .skill.version]' <<<"$BODY")" \
        '[["rows.txt"],null,null]' "what it left"
    local id digest
    id=$(jq -r .execution_id <<<"$BODY") digest=$(jq -r .skill.digest <<<"$BODY")
    http_expect 200 "/v1/executions/$id/files/rows.txt"
    equal "$BODY" $'a,b\n1,2' rows.txt
    # The same code is the same skill, whose machine it has again.
    for _ in $(seq 60); do
        http_expect 200 /v1/executions -H 'Content-Type: application/json' -d @whole.json
        equal "$(jq -r .skill.digest <<<"$BODY")" "$digest" digest
        [[ $(jq -r .machine <<<"$BODY") == reused ]] && break
        sleep 0.5
    done
    equal "$(jq -r .machine <<<"$BODY")" reused machine
    code_of shell <<'S' >request.json
echo "$0 $# $PWD"; cat; exit 3
S
    http_expect 200 /v1/executions -H 'Content-Type: application/json' -d @request.json
    equal "$(jq -c '[.status, .exit_code, .stdout]' <<<"$BODY")" \
        '["failed",3,"/sandbox/scripts/main.sh 0 /sandbox\n{}"]' bash
    http_expect 200 /v1/executions -H 'Content-Type: application/json' \
        -d '{"code": "x = 1\nraise ValueError(x)"}'
    contains "$(jq -r .stderr <<<"$BODY")" \
        $'File "/sandbox/scripts/main.py", line 2, in <module>\n    raise ValueError(x)' traceback
    http_expect 400 /v1/executions -H 'Content-Type: application/json' \
        -d '{"code": "puts 1", "lang": "ruby"}'
    error_is bad_request 'Ruby, which does not run here; write it in Python, bash or JavaScript'
}

case_code_by_command_line() {
    expect 0 skillvm run --code 'print(6 * 7)'
    equal "$OUT" 42 python
    # shellcheck disable=SC2016 # the guest's shell
    expect 0 skillvm run --lang bash --code 'echo "$1-$(cat)"' --input '[1]' -- one
    equal "$OUT" 'one-[1]' bash
    expect 7 skillvm run --code 'import sys; print("no", file=sys.stderr); sys.exit(7)'
    contains "$ERR" no stderr
    contains "$ERR" "skillvm: the code: failed: " reason
    cat >total.py <<'P'
import csv, sys
rows = list(csv.reader(open("/sandbox/in/data.csv")))
print(sum(int(row[1]) for row in rows) * int(sys.argv[1]))
open("/sandbox/out/files/done.txt", "w").write("done")
P
    printf 'a,1\nb,2\n' >data.csv
    expect 0 skillvm run total.py --file data.csv --output-dir out -- 2
    equal "$OUT" 6 total.py
    equal "$(<out/done.txt)" "done" done.txt
    # shellcheck disable=SC2016 # the guest's shell
    printf '#!/usr/bin/env bash\nset -eu\nwc -c <"$0" | tr -d "\\n"\n' >tool
    expect 0 skillvm run tool
    equal "$OUT" "$(wc -c <tool)" tool
    expect 0 skillvm run --code - <<<'print("from", "input")'
    equal "$OUT" "from input" "standard input"
    expect 2 skillvm run --lang python --code 'print(1)' --timeout 1s --file nowhere.csv
    echo 'let n: number = 1' >main.ts
    expect 125 skillvm run main.ts
    contains "$ERR" "main.ts is in TypeScript, which does not run here" main.ts
    expect 0 skillvm exec list -n 1
    contains "$OUT" "(code)" "exec list"
    expect 0 skillvm exec show "$(grep -o 'exec_[0-9a-f]*' <<<"$OUT")"
    contains "$OUT" "(code)" "exec show"
}

# limit code_by_mcp 240
case_code_by_mcp() {
    cat >calls <<'M'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"import json,sys\nopen('/sandbox/out/files/a.txt','w').write('x')\nprint(json.dumps({'sum': sum(json.load(sys.stdin))}))","input":[1,2,39]}}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"echo $((6 * 7)) times","lang":"bash"}}}
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"1 / 0"}}}
{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"x","lang":"perl"}}}
M
    # The end of input cancels what runs: it comes when all is answered.
    mkfifo requests
    skillvm mcp <requests >answers 2>mcp.log &
    exec {requests}>requests
    cat calls >&"$requests"
    for _ in $(seq 400); do
        (($(wc -l <answers) == 6)) && break
        sleep 0.5
    done
    exec {requests}>&-
    wait $! || fail "skillvm mcp: exit status $?"
    answer() { jq -c "select(.id == $1).result$2" answers; }
    equal "$(answer 2 '.tools[] | select(.name == "run_code").inputSchema.required')" '["code"]' schema
    equal "$(answer 3 .structuredContent)" '{"sum":42}' sum
    equal "$(answer 3 '.content[1].name')" '"a.txt"' "its file"
    equal "$(answer 4 '.content[0].text')" '"42 times\n"' bash
    equal "$(answer 5 .isError)" true "a failure"
    contains "$(answer 5 '.content[0].text')" "main.py" "its traceback"
    contains "$(answer 5 '.content[0].text')" "ZeroDivisionError" "its traceback"
    equal "$(answer 6 .isError)" true "a language"
}
