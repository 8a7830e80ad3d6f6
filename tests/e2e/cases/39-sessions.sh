# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sessions in a real machine: what one run leaves, the next one finds.

# The result of code in Python in a session, as JSON, whatever comes of it.
step() { # session code [options]
    local session=$1 code=$2
    shift 2
    skillvm run --code "$code" --session "$session" --json "$@" 2>/dev/null || :
}

# limit session_in_three_steps 240
case_session_in_three_steps() {
    local result
    result=$(step steps 'import os
d = os.environ["SANDBOX_SESSION_DIR"]
assert d == "/sandbox/session/" and os.listdir(d) == [], os.listdir(d)
open(d + "log", "w").write("one\n")
os.makedirs(d + "empty/folder"); os.mkdir(d + "bin")
open(d + "bin/tool", "w").write("#!/bin/sh\necho ran\n"); os.chmod(d + "bin/tool", 0o755)
os.symlink("log", d + "link")')
    equal "$(jq -c .session <<<"$result")" \
        '{"id":"steps","committed":true,"bytes":23,"files":3,"reason":null}' "the first step"
    result=$(step steps 'import os, subprocess
os.chdir("/sandbox/session")
print(sorted(os.listdir(".")), os.listdir("empty"), os.listdir("empty/folder"), flush=True)
subprocess.run(["bin/tool"], check=True)
open("log", "a").write("two\n"); os.remove("bin/tool"); os.rename("empty", "moved")
raise SystemExit(3)')
    equal "$(jq -r .stdout <<<"$result")" "['bin', 'empty', 'log'] ['folder'] []
ran" "what the second step finds"
    equal "$(jq -c '[.exit_code, .session.committed, .session.files]' <<<"$result")" \
        '[3,true,3]' "the second step"
    result=$(skillvm run --code 'cat /sandbox/session/log; find /sandbox/session | sort' \
        --lang bash --session steps)
    equal "$result" "one
two
/sandbox/session
/sandbox/session/bin
/sandbox/session/log
/sandbox/session/moved
/sandbox/session/moved/folder" "what the third step finds"
    expect 0 skillvm session get steps log
    equal "$OUT" "one
two" "session get"
    contains "$(skillvm session show steps)" "moved/folder/" "session show"
    contains "$(skillvm session list)" "steps" "session list"
    # Who has no session finds none, in the same machine.
    equal "$(skillvm run --code 'import os
print(os.path.exists("/sandbox/session"), os.environ.get("SANDBOX_SESSION_DIR"))')" \
        "False None" "without a session"
    skillvm session rm steps
    expect 125 skillvm session show steps
}

# limit session_keeps_its_last_end 300
case_session_keeps_its_last_end() {
    local result
    result=$(skillvm run --code 'echo kept > /sandbox/session/f' --lang bash --session kept --json)
    equal "$(jq -c .session.committed <<<"$result")" true "a first end"
    result=$(step kept 'import time
open("/sandbox/session/f", "w").write("half")
time.sleep(100)' --timeout 1s)
    equal "$(jq -c '[.status, .session.committed, .session.bytes]' <<<"$result")" \
        '["timeout",false,5]' "a timeout"
    result=$(step kept 'open("/sandbox/session/f", "w").write("half")
b = b"x" * (300 << 20)')
    equal "$(jq -c '.session | [.committed, .bytes]' <<<"$result")" '[false,5]' "out of memory"
    contains "$(jq -r .session.reason <<<"$result")" "out of memory" "out of memory"
    result=$(step kept 'open("/sandbox/session/big", "wb").truncate(101 << 20)')
    equal "$(jq -c '[.status, .session.committed]' <<<"$result")" '["success",false]' "too large"
    contains "$(jq -r .session.reason <<<"$result")" "100 MiB" "too large"
    result=$(step kept 'for i in range(10001): open(f"/sandbox/session/{i}", "w")')
    contains "$(jq -r .session.reason <<<"$result")" "10000 files" "too many"
    expect 0 skillvm session get kept f
    equal "$OUT" kept "what is kept"
    skillvm session rm kept
}
