# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Skills as tools: what the daemon finds in a script's own parser, inside a real machine, is what
# every API is told, and what a call goes by.

# The daemon's answer does not wait for ever for a look at a script, which takes a machine: asked
# again until a tool of this name has a parameter that it needs.
tools_until_read() { # name
    local needs
    until http_expect 200 '/v1/tools?format=mcp' &&
        needs=$(jq --arg name "$1" \
            '.tools[] | select(.name == $name).inputSchema.required | length' <<<"$BODY") &&
        ((needs > 0)); do
        sleep 0.5
    done
}

case_tools_of_a_parser() {
    expect 0 skillvm skill push "$E2E_ROOT/examples/unit-converter"
    tools_until_read unit-converter
    http_expect 200 '/v1/tools?format=anthropic'
    local schema digits
    schema=$(jq -cS '.[] | select(.name == "unit-converter").input_schema' <<<"$BODY")
    equal "$(jq -c .properties.command.enum <<<"$schema")" '["convert","units"]' commands
    equal "$(jq -c .required <<<"$schema")" '["command"]' required
    digits=$(jq -c .properties.digits <<<"$schema")
    equal "$(jq -c '[.type, .default]' <<<"$digits")" '["integer",3]' digits
    equal "$(jq -c .properties.kind.enum <<<"$schema")" '["length","mass","temperature"]' kinds
    http_expect 200 '/v1/tools?format=openai'
    equal "$(jq -cS '.[].function | select(.name == "unit-converter").parameters' <<<"$BODY")" \
        "$schema" "openai's parameters"
    http_expect 200 '/v1/tools?format=mcp'
    equal "$(jq -cS '.tools[] | select(.name == "unit-converter").inputSchema' <<<"$BODY")" \
        "$schema" "MCP's inputSchema"
    expect 0 skillvm tools call unit-converter \
        '{"command": "convert", "value": -40, "unit": "C", "to": "F"}'
    equal "$(jq -r .text <<<"$OUT")" '-40 F' "what it converts"
    expect 1 skillvm tools call unit-converter \
        '{"command": "convert", "value": 1, "unit": "C", "to": "km"}'
    contains "$ERR" 'C is a temperature' "the skill's own error"
    http_expect 400 /v1/tools/call -H 'Content-Type: application/json' \
        -d '{"name": "unit-converter", "arguments": {"command": "convert", "value": "far"}}'
    error_is bad_request '"value" must be a number'
    # Looking at it was no execution.
    http_expect 200 '/v1/executions?skill=unit-converter'
    equal "$(jq '.executions | length' <<<"$BODY")" 2 "executions"
    expect 0 skillvm skill rm unit-converter@1.0.0
}

# limit tools_by_script 300
case_tools_by_script() {
    skill several scripts/add.py <<'S'
"""Adds numbers."""
import argparse
p = argparse.ArgumentParser()
p.add_argument("numbers", nargs="+", type=int)
p.add_argument("--negate", action="store_true")
args = p.parse_args()
print(sum(args.numbers) * (-1 if args.negate else 1))
S
    cat >several/scripts/greet.py <<'S'
import click
@click.command()
@click.argument("name")
@click.option("--loud/--quiet", default=True)
def greet(name, loud):
    click.echo(f"hello {name}" + "!" * loud)
greet()
S
    echo 'tr a-z A-Z' >several/scripts/shout.sh
    expect 0 skillvm skill push several
    http_expect 200 '/v1/tools?format=mcp'
    equal "$(jq -c '[.tools[].name | select(startswith("several"))]' <<<"$BODY")" \
        '["several__add","several__greet","several__shout"]' names
    tools_until_read several__greet
    tools_until_read several__add
    # One whose arguments nobody comes to know keeps no other from being called.
    skill stuck main.py <<<$'import argparse\nwhile True: pass'
    expect 0 skillvm skill push stuck
    http_expect 200 '/v1/tools?format=mcp'
    contains "$BODY" '"stuck"' names
    equal "$(jq -c '.tools[] | select(.name == "several__add").inputSchema.required' <<<"$BODY")" \
        '["numbers"]' "what it needs"
    expect 0 skillvm tools call several__add '{"numbers": [1, -2, 30], "negate": true}'
    equal "$OUT" -29 sum
    expect 0 skillvm tools call several__greet '{"name": "--Ann", "loud": false}'
    equal "$OUT" 'hello --Ann' "whom it greets"
    expect 0 skillvm tools call several__shout '{"a": "b"}'
    equal "$(jq -c . <<<"$OUT")" '{"A":"B"}' "what it shouts"
    expect 0 skillvm skill rm several@1.0.0
    expect 0 skillvm skill rm stuck@1.0.0
}

case_tools_by_schema() {
    skill typed main.py 'input_schema:
  type: object
  properties:
    n: {type: integer}
  required: [n]' <<'S'
import json, os
print(json.loads(os.environ["SANDBOX_INPUT"])["n"] + 1)
S
    expect 0 skillvm skill push typed
    expect 0 skillvm tools call typed '{"n": 41}'
    equal "$OUT" 42 answer
    expect 125 skillvm tools call typed '{"n": "41"}'
    contains "$ERR" '"n" must be of type' "what is refused"
    expect 0 skillvm skill rm typed@1.0.0
}
