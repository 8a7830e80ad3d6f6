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

case_executions_by_verbs() {
    local id
    skill chatty main.sh 'version: "1.0"' <<'S'
echo first; echo note >&2; echo data >"$SANDBOX_FILES_DIR/a.txt"
[ -z "${STAY:-}" ] || sleep 300
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
        -d '{"skill": "chatty", "env": {"STAY": "1"}, "async": true}'
    id=$(jq -r .execution_id <<<"$BODY")
    skillvm exec logs -f "$id" >followed 2>&1 &
    for _ in {1..600}; do
        grep -q first followed && break
        sleep 0.1
    done
    grep -q first followed || fail "nothing is followed while it runs"
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
    contains "$ERR" "the key of --key" "a revoked key"
    expect 0 skillvm tenant rm "$name"
}
