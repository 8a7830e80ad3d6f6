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
    equal "$(jq -c '[.output, .stdout, .image]' <<<"$OUT")" \
        '[{"greeting":"Hello, Ada!"},"Hello, Ada!\n","node"]' template
    equal "$(jq -c .warnings <<<"$OUT")" '[]' warnings
    expect 0 skillvm skill test own
    contains "$OUT" "1 passed, 0 failed" "the template's own test"
}

# limit node_code_runs 400
# long node_code_runs
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
        -d '{"lang": "node", "limits": {"memory": "96Mi"}, "timeout": 300,
             "code": "Buffer.alloc(400 << 20, 1)"}'
    equal "$(jq -c '[.status, .signal]' <<<"$BODY")" '["failed",9]' "over its memory"
    contains "$(jq -r .error <<<"$BODY")" memory "why"
}

# It may have its own code read again and again until its time is over.
# limit node_grows_over_its_memory 450
# long node_grows_over_its_memory
case_node_grows_over_its_memory() {
    need_node
    http_expect 200 /v1/executions -H 'Content-Type: application/json' \
        -d '{"lang": "node", "limits": {"memory": "96Mi"}, "timeout": 200,
             "code": "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))"}'
    contains "$(jq -r .error <<<"$BODY")" memory "why, where it grows bit by bit"
}

# What the recipe says it brings, and what that stands on, is there for `require` and for `import`.
# limit node_modules_are_there_for_both 450
# long node_modules_are_there_for_both
case_node_modules_are_there_for_both() {
    need_node
    local modules
    modules=$(sed -n 's/^  - node //p' "$E2E_ROOT/images/node.yaml" | jq -Rn '[inputs]')
    (($(jq length <<<"$modules") > 30)) || fail "the recipe brings no modules: $modules"
    cat >both.mjs <<S
import { createRequire } from 'node:module'
const names = [...$modules, 'domutils', 'css-select', 'cheerio-select', 'dom-serializer']
const require = createRequire(import.meta.url), failed = []
for (const name of names) {
    const own = name === 'lodash-es' ? {} : require(name)
    const given = await import(name).catch((error) => failed.push(error.message) && {})
    for (const key of Object.keys(own)) if (own.__esModule && !(key in given)) failed.push(name + '.' + key)
}
const { load } = await import('cheerio'), { default: render } = await import('dom-serializer')
const { parseDocument } = await import('htmlparser2'), { chunk } = await import('lodash-es')
console.log(JSON.stringify([failed, load('<p>a<b>c</b></p>')('b').text(), render(parseDocument('<i>1')),
    chunk([1, 2, 3], 2).length]))
S
    expect 0 skillvm run both.mjs --timeout 400s
    equal "$OUT" '[[],"c","<i>1</i>",2]' "what import gives"
}

# npm does what needs no registry, and where it needs one, it fails at once and the answer says why.
# limit npm_needs_no_registry 600
# long npm_needs_no_registry
case_npm_needs_no_registry() {
    need_node
    skill packed main.sh 'image: node' <<'S'
set -e
cd /sandbox/skill
npm --version
npm ls
npm run --silent greet -- Ada
npm pack --silent --pack-destination "$SANDBOX_FILES_DIR"
S
    mkdir -p packed/node_modules/twice
    echo '{"name": "packed", "version": "1.2.3", "files": ["lib.js"], "dependencies": {"twice": "^1.0.0"},
        "scripts": {"greet": "node lib.js"}}' >packed/package.json
    echo 'console.log(require("twice")(process.env.npm_lifecycle_event), process.argv[2])' >packed/lib.js
    echo '{"name": "twice", "version": "1.0.0"}' >packed/node_modules/twice/package.json
    echo 'module.exports = (text) => text + text' >packed/node_modules/twice/index.js
    echo 'npm install --prefix /tmp left-pad' >packed/install.sh
    local began=$SECONDS
    expect 0 skillvm run packed --timeout 600s --output-dir out
    # Plain ones take their time to start, here four of them.
    local four=$((SECONDS - began))
    grep -Eqx '9\.[0-9.]+' <<<"$OUT" || fail "npm --version: $OUT"
    contains "$OUT" "twice@1.0.0" "npm ls"
    contains "$OUT" "greetgreet Ada" "npm run"
    equal "$(tar -tzf out/packed-1.2.3.tgz | sort | xargs)" "package/lib.js package/package.json" \
        "npm pack"
    began=$SECONDS
    capture skillvm run packed --timeout 600s --script install.sh --json
    ((SECONDS - began < 50 + four)) || fail "npm install took $((SECONDS - began)) s, and four others $four s"
    equal "$(jq -r .status <<<"$OUT")" failed "npm install"
    contains "$(jq -r .stderr <<<"$OUT")" "https://registry.npmjs.org/left-pad failed" "what npm says"
    contains "$(jq -r '.warnings[]' <<<"$OUT")" "it looked for a host and has no network" "the warning"
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

# What scripts import is read: the image that has it is taken, and what none has is told before
# anything runs, and again when that is why a run failed.
# limit node_modules_are_looked_for 400
case_node_modules_are_looked_for() {
    need_node
    expect 0 skillvm image show node --json
    equal "$(jq '[.node_modules[] | select(test("^(lodash|js-yaml) [0-9.]+$"))] | length' <<<"$OUT")" 2 \
        "its modules"
    expect 0 skillvm image show node
    contains "$(grep '^for node ' <<<"$OUT")" " lodash " "its modules, as text"
    local warning='the image node has no module "no-such-module": install it into a node_modules'
    skill reads main.mjs <<'S'
import _ from 'lodash'
import twice from 'mine'
import { readFileSync } from 'node:fs'
console.log(JSON.stringify([_.sum([1, 2]), twice(2), typeof readFileSync]))
S
    mkdir -p reads/node_modules/mine
    echo 'module.exports = (n) => n * 2' >reads/node_modules/mine/index.js
    expect 0 skillvm skill lint reads
    [[ $ERR != *warning* ]] || fail "warned of what is there: $ERR"
    expect 0 skillvm skill inspect reads -o json
    equal "$(jq -c '[.image, .image_reason, (.imports[] | [.module, .from])]' <<<"$OUT")" \
        '["node","smallest of 2 that has JavaScript, lodash",["lodash","image"],["mine","skill"]]' "what it imports"
    expect 0 skillvm run reads --json
    equal "$(jq -c '[.output, .image, .warnings]' <<<"$OUT")" '[[3,4,"function"],"node",[]]' "what it finds"
    skill lacks main.js <<<"console.log('first')
require('no-such-module/part')"
    expect 0 skillvm skill lint lacks
    contains "$ERR" "main.js line 2: $warning" "the warning of lint"
    expect 1 skillvm run lacks --json
    equal "$(jq -r .image_reason <<<"$OUT")" "none of 2 has all: this one lacks no-such-module" "the reason"
    contains "$(jq -r '.warnings[]' <<<"$OUT")" "main.js line 2: $warning" "the warning before it runs"
    # Of code that comes with a request nothing is said before it fails.
    expect 1 skillvm run --lang node --json --code "require('no-such-module/part')"
    contains "$(jq -r '.warnings[]' <<<"$OUT")" "$warning" "why it failed"
    echo "import 'no-such-module'" >lacks.mjs
    expect 1 skillvm run lacks.mjs --json
    contains "$(jq -r '.warnings[]' <<<"$OUT")" "$warning" "why an ES module failed"
}
