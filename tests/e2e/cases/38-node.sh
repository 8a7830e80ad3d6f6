# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# JavaScript, in a real machine: the image is taken by itself, modules are found, ends are a plain
# Node's. `./dev test` builds the image.

need_node() {
    [[ -e $SKILLVM_SHARE/node.erofs ]] || skip "image-node is not built"
}

# limit node_skills_are_begun_and_tested 400
case_node_skills_are_begun_and_tested() {
    need_node
    expect 0 skillvm skill init own --lang node
    expect 0 skillvm run ./own --input '{"name": "Ada"}' --json
    equal "$(jq -c '[.output, .image]' <<<"$OUT")" '[{"greeting":"Hello, Ada!"},"node"]' template
    equal "$(jq -c .warnings <<<"$OUT")" '[]' warnings
    expect 0 skillvm skill test own
    contains "$OUT" "1 passed, 0 failed" "the template's own test"
}

# limit node_code_runs 400
case_node_code_runs() {
    need_node
    mkdir sub
    echo 'import _ from "lodash"; console.log(_.chunk([1, 2, 3], 2).length, import.meta.url)' >sub/a.mjs
    expect 0 skillvm run sub/a.mjs
    equal "$OUT" '2 file:///sandbox/scripts/main.mjs' "an ES module"
    expect 0 skillvm run --lang node --code 'const y = require("js-yaml")
console.log(JSON.stringify([y.load("a: [1]"), process.argv, process.cwd(), process.env.A,
    process.execArgv, require.main === module, require("fs").readFileSync(0, "utf8"),
    require("fs").readFileSync("/sandbox/input.json", "utf8")]))' --env A=b \
        --input '[1]' -- -x 'y z'
    equal "$OUT" '[{"a":[1]},["/usr/bin/node","/sandbox/scripts/main.js","-x","y z"],"/sandbox","b",[],true,"[1]","[1]"]' \
        "what a script finds"
    expect 7 skillvm run --lang node --code 'process.on("exit", () => console.log("over")); process.exitCode = 7'
    equal "$OUT" over "exit code and event"
    expect 1 skillvm run --lang node --code 'null.x'
    contains "$ERR" "/sandbox/scripts/main.js:1" "uncaught"
    expect 1 skillvm run --lang node --code 'Promise.reject(new Error("left alone"))'
    contains "$ERR" "left alone" "a rejection"
    expect 137 skillvm run --lang node --code 'process.kill(process.pid, "SIGKILL"); setInterval(() => 0, 9)'
    expect 124 skillvm run --timeout 30s --lang node --code 'console.log("on"); setInterval(() => 0, 9)'
    equal "$OUT" on "output until the timeout"
    http_expect 200 /v1/executions -H 'Content-Type: application/json' \
        -d '{"lang": "node", "limits": {"memory": "96Mi"},
             "code": "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))"}'
    equal "$(jq -c '[.status, .signal]' <<<"$BODY")" '["failed",9]' "over its memory"
    contains "$(jq -r .error <<<"$BODY")" memory "why"
}

# limit node_scripts_are_tools 400
case_node_scripts_are_tools() {
    need_node
    mkdir -p kit/scripts kit/node_modules/mine
    printf -- '---\nname: kit\ndescription: two tools\nversion: "1.0"\nimage: node\n---\n' >kit/SKILL.md
    echo 'module.exports = (n) => n * 2' >kit/node_modules/mine/index.js
    echo 'console.log(JSON.stringify({twice: require("mine")(+process.argv[2])}))' >kit/scripts/twice.js
    echo 'console.log(7)' >kit/scripts/seven.mjs
    expect 0 skillvm skill push kit
    http_expect 200 /v1/tools/call -H 'Content-Type: application/json' \
        -d '{"name": "kit__twice", "arguments": {"args": ["21"]}}'
    contains "$BODY" 42 "a tool"
    http_expect 200 /v1/tools/call -H 'Content-Type: application/json' \
        -d '{"name": "run_code", "arguments": {"code": "console.log(6 * 7)", "lang": "node"}}'
    contains "$BODY" 42 run_code
}
