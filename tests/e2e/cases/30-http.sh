# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The HTTP interface as curl sees it, good requests and bad ones.

case_http_execution() {
    skill plain main.sh <<<'echo hello; echo "{\"a\": 1}" >/sandbox/out/output.json
echo data >/sandbox/out/files/data.txt'
    zip_of plain
    http_expect 200 /v1/executions -F 'request={"input": {"x": 1}}' -F skill_archive=@plain.zip
    equal "$(jq -r .status <<<"$BODY")" success status
    equal "$(jq -c .output <<<"$BODY")" '{"a":1}' output
    local id
    id=$(jq -r .execution_id <<<"$BODY")
    [[ $id =~ ^exec_[0-9a-f]{32}$ ]] || fail "execution_id $id"
    http_expect 200 "/v1/executions/$id"
    equal "$(jq -r .stdout <<<"$BODY")" hello stdout
    equal "$(jq -r .files_url <<<"$BODY")" "/v1/executions/$id/files" files_url
    http_expect 200 "/v1/executions/$id/files"
    mkdir files
    tar -xzf body.capture -C files
    equal "$(cat "$(find files -name data.txt)")" data data.txt
}

case_http_registered_skill() {
    skill pushed main.sh "version: 1.0.0" <<<'cat'
    zip_of pushed
    local kind
    for kind in application/zip application/octet-stream; do
        http /v1/skills -H "Content-Type: $kind" --data-binary @pushed.zip
        [[ $STATUS == 201 || $STATUS == 200 ]] || fail "$kind: HTTP $STATUS: $BODY"
    done
    http /v1/skills -F file=@pushed.zip
    [[ $STATUS == 201 || $STATUS == 200 ]] || fail "multipart: HTTP $STATUS: $BODY"
    equal "$(jq -r '.name + "@" + .version' <<<"$BODY")" pushed@1.0.0 "name and version"
    http_expect 200 /v1/executions -H 'Content-Type: application/json' \
        -d '{"skill": "pushed", "input": [1, "two"]}'
    equal "$(jq -c .output <<<"$BODY")" '[1,"two"]' output
    # Another content under the same name and version.
    echo 'echo changed' >pushed/main.sh
    zip_of pushed
    http /v1/skills -H 'Content-Type: application/zip' --data-binary @pushed.zip
    [[ $STATUS == 201 || $STATUS == 200 || $STATUS == 409 ]] || fail "again: HTTP $STATUS: $BODY"
}

case_http_events() {
    skill talks main.py <<'S'
import sys, time
print("one", flush=True)
time.sleep(10)
print("two", file=sys.stderr)
S
    zip_of talks
    curl -sN --max-time 340 --unix-socket "$SKILLVM_SOCKET" -H 'Accept: text/event-stream' \
        -F 'request={}' -F skill_archive=@talks.zip http://localhost/v1/executions >events &
    local pid=$! early=''
    for _ in $(seq 900); do
        grep -q '^event: *stdout' events && early=1 && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    [[ -n $early ]] || fail "no stdout event: $(head -c 500 events)"
    ! grep -q '^event: *result' events || fail "stdout came only with the result"
    wait "$pid" || fail "curl: exit status $?"
    local kind
    for kind in status stdout stderr result; do
        grep -q "^event: *$kind" events || fail "no $kind event"
    done
    sed -n '/^event: *result/{n;s/^data: *//p}' events | jq -e '.status == "success"' >/dev/null ||
        fail "the result: $(tail -n 3 events)"
}

# Writes the zip of a skill whose SKILL.md is given, and posts it.
push_front_matter() { # expected HTTP status, content of SKILL.md
    rm -rf front
    mkdir front
    printf '%b' "$2" >front/SKILL.md
    echo 'print(1)' >front/main.py
    zip_of front
    http_expect "$1" /v1/skills -H 'Content-Type: application/zip' --data-binary @front.zip
}

case_bad_front_matter() {
    push_front_matter 400 '---\nname: [unclosed\ndescription: {\n---\nbody\n'
    error_is invalid_skill SKILL.md
    push_front_matter 400 '# no front matter\n'
    error_is invalid_skill SKILL.md
    push_front_matter 400 '---\nname: x\n---\n'
    error_is invalid_skill description
    # Lenient: a colon that YAML would stumble on, and a name that breaks the rules.
    push_front_matter 201 '---\nname: Odd_Name\ndescription: use: when needed\n---\nbody\n'
}

case_bad_archives() {
    mkdir bad
    python3 "$E2E_HERE/inside/archives.py" bad >list
    local name expected
    while read -r name expected; do
        case $expected in
        invalid_skill) expected=400 ;;
        too_large) expected=413 ;;
        esac
        http_expect "$expected" /v1/skills -H 'Content-Type: application/zip' \
            --data-binary "@bad/$name"
        [[ $(jq -r .message <<<"$BODY") != null ]] || fail "$name: no message"
    done <list
    rm -r bad
    http_expect 200 /health
}

case_bad_requests() {
    local post=(/v1/executions -H 'Content-Type: application/json')
    http_expect 400 "${post[@]}" -d 'this is not JSON'
    error_is bad_request JSON
    http_expect 400 "${post[@]}" -d '[1]'
    http_expect 400 "${post[@]}" -d '{}'
    http_expect 400 "${post[@]}" -d '{"skill": "x", "timeout": "soon"}'
    http_expect 404 "${post[@]}" -d '{"skill": "there-is-no-such-skill"}'
    error_is not_found there-is-no-such-skill
    http_expect 404 "/v1/executions/exec_00000000000000000000000000000000"
    error_is not_found exec_
    http_expect 404 /v1/executions/not-an-id
    error_is not_found not-an-id
    http_expect 404 /v1/executions/exec_00000000000000000000000000000000/files
    http_expect 404 /nowhere
    http_expect 405 /health -X DELETE
    http_expect 415 /v1/executions -H 'Content-Type: text/plain' -d 'hello'
}

case_input_of_20_mib() {
    skill small main.sh <<<'wc -c'
    zip_of small
    {
        printf '{"input": "'
        head -c 20M /dev/zero | tr '\0' x
        printf '"}'
    } >request
    http_expect 413 /v1/executions -F 'request=<request' -F skill_archive=@small.zip
    error_is too_large MiB
    {
        printf '{"skill": "x", "input": "'
        head -c 20M /dev/zero | tr '\0' x
        printf '"}'
    } >request
    http_expect 413 /v1/executions -H 'Content-Type: application/json' --data-binary @request
    error_is too_large MiB
}

case_curl_without_a_body() {
    http /v1/skills -X POST
    [[ $STATUS == 4* ]] || fail "HTTP $STATUS"
    http /v1/executions -X POST
    [[ $STATUS == 4* ]] || fail "HTTP $STATUS"
    http_expect 200 /health
}

case_http_input_files() {
    skill reader main.py <<'S'
import hashlib, json, os, pathlib
folder = pathlib.Path(os.environ["SANDBOX_INPUT_DIR"])
seen = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*")) if path.is_file()}
(folder / "mine").write_text("x")  # its own copies
(folder / "data/in.csv").write_text("changed")
(folder / "data/in.csv").rename(folder / "data/moved")
seen["moved"] = (folder / "data/moved").read_text()
assert pathlib.Path("/sandbox/input/big.bin").samefile(folder / "big.bin")
json.dump(seen, open(os.environ["SANDBOX_OUTPUT"], "w"))
S
    zip_of reader
    head -c 5000000 /dev/urandom >big.bin
    echo 'a,b' >in.csv
    http_expect 201 "/v1/files?name=big.bin" -H 'Content-Type: application/octet-stream' -T big.bin -X POST
    local big csv digest
    big=$(jq -r .id <<<"$BODY")
    digest=$(sha256sum big.bin | cut -d' ' -f1)
    equal "$(jq -r .digest <<<"$BODY")" "$digest" digest
    http_expect 201 /v1/files -F file=@in.csv
    csv=$(jq -r .id <<<"$BODY")
    equal "$(jq -r .name <<<"$BODY")" in.csv name
    http_expect 200 /v1/executions -F skill_archive=@reader.zip \
        -F "request={\"files\": [\"$big\", {\"id\": \"$csv\", \"path\": \"data/in.csv\"}]}"
    equal "$(jq -r .error <<<"$BODY")" null error
    equal "$(jq -c .output <<<"$BODY")" \
        "{\"big.bin\":\"$digest\",\"data/in.csv\":\"$(sha256sum in.csv | cut -d' ' -f1)\",\"moved\":\"changed\"}" output
    http_expect 204 "/v1/files/$big" -X DELETE
    http_expect 404 "/v1/files/$big"
    http_expect 200 "/v1/files/$csv/download"
    equal "$BODY" "a,b" download
    http_expect 204 "/v1/files/$csv" -X DELETE
}

# limit other_users_need_a_key 60
case_other_users_need_a_key() {
    ((EUID == 0)) || skip "only root can be another user"
    # The socket's mode lets nobody else in: files are reached as root, the peer is not root.
    cat >as.py <<'S'
import ctypes
import os
import socket
import sys

uid, path = int(sys.argv[1]), sys.argv[2]
os.seteuid(uid)
ctypes.CDLL(None).setfsuid(0)
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["SKILLVM_SOCKET"])
peer.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
print(peer.makefile("rb").readline().split()[1].decode())
S
    local path uid
    for path in /v1/admin/keys /metrics /v1/skills; do
        for uid in 65534 1; do
            expect 0 python3 as.py "$uid" "$path"
            equal "$OUT" 401 "$path for the user $uid without a key"
        done
        expect 0 python3 as.py 0 "$path"
        equal "$OUT" 200 "$path for root"
    done
    expect 0 python3 as.py 65534 /health
    equal "$OUT" 200 "/health for anybody"
}
