# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Skills as an agent calls them: `skillvm mcp` at the ends of two pipes, and the tutorial.

# Reads messages until the answer to request $1, which goes to ANSWER.
mcp_answer() {
    local line
    while IFS= read -r -t 100 line <&"${MCP[0]}"; do
        [[ $(jq '.id' <<<"$line") == "$1" ]] && ANSWER=$line && return
        printf '%s\n' "$line" >>others
    done
    fail "no answer to request $1: $(tail -n 3 mcp.log)"
}

mcp_send() {
    printf '%s\n' "$1" >&"${MCP[1]}"
}

# limit mcp_session 240
case_mcp_session() {
    skill adder main.py "version: 1.0.0
input_schema: {type: object, properties: {a: {type: integer}, b: {type: integer}}, required: [a, b]}" <<'S'
import json, os, sys
given = json.load(sys.stdin)
print("adding", flush=True)
with open(os.environ["SANDBOX_OUTPUT"], "w") as f:
    json.dump({"sum": given["a"] + given["b"]}, f)
with open(os.path.join(os.environ["SANDBOX_FILES_DIR"], "sum.txt"), "w") as f:
    f.write("the sum\n")
S
    expect 0 skillvm up
    expect 0 skillvm skill push adder
    coproc MCP { exec skillvm mcp 2>mcp.log; }
    local pid=$MCP_PID input=${MCP[1]} uri
    : >others
    mcp_send '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}'
    mcp_answer 1
    equal "$(jq -r .result.protocolVersion <<<"$ANSWER")" 2025-06-18 version
    mcp_send '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    mcp_send '{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    mcp_answer 2
    equal "$(jq -c '.result.tools[] | select(.name == "adder") | .inputSchema.required' <<<"$ANSWER")" \
        '["a","b"]' "the tool's schema"
    # In one write: where the second came when the first is over, so would their answers.
    mcp_send '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"adder","arguments":{"a":9007199254740993,"b":1},"_meta":{"progressToken":"p"}}}
{"jsonrpc":"2.0","id":4,"method":"ping"}'
    mcp_answer 4
    mcp_answer 3
    contains "$ANSWER" '"structuredContent":{"sum":9007199254740994},"isError":false' result
    contains "$(jq -r '.params.message // empty' others)" adding progress
    uri=$(jq -r '.result.content[] | select(.type == "resource_link").uri' <<<"$ANSWER")
    mcp_send '{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"'"$uri"'"}}'
    mcp_answer 5
    equal "$(jq -r '.result.contents[0].text' <<<"$ANSWER")" "the sum" "the file"
    mcp_send '{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"adder","arguments":{"a":"x","b":1}}}'
    mcp_answer 6
    equal "$(jq .result.isError <<<"$ANSWER")" true "a wrong argument"
    exec {input}>&-
    wait "$pid" || fail "skillvm mcp: exit status $?"
    expect 0 skillvm skill rm adder@1.0.0
}

# limit tutorial 400
case_tutorial() {
    expect 0 "$E2E_ROOT/tests/mcp/tutorial.py" "$E2E_ROOT"
}
