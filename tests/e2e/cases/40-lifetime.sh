# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# up, down and what outlives them; a host that stops answering; nothing left at the end.
#
# shellcheck disable=SC2016 # what skills hold is not for this shell

# limit data_survives_down_and_up 240
case_data_survives_down_and_up() {
    skill stays main.sh "version: 3.0.0" <<<'echo kept >"$SANDBOX_FILES_DIR/kept.txt"; echo done'
    zip_of stays
    http_expect 201 /v1/skills -H 'Content-Type: application/zip' --data-binary @stays.zip
    http_expect 200 /v1/executions -H 'Content-Type: application/json' -d '{"skill": "stays"}'
    local id
    id=$(jq -r .execution_id <<<"$BODY")
    http_expect 200 "/v1/executions/$id/files"
    cp body.capture before.tar.gz
    expect 0 skillvm down
    [[ ! -e $SKILLVM_SOCKET ]] || fail "the socket is left after down"
    equal "$(our_processes)" "" "processes after down"
    expect 0 skillvm up --host "$E2E_HOST"
    http_expect 200 "/v1/executions/$id"
    equal "$(jq -r .stdout <<<"$BODY")" "done" "stdout of the old execution"
    http_expect 200 "/v1/executions/$id/files"
    cmp body.capture before.tar.gz || fail "the artifacts differ"
    expect 0 skillvm run stays@3.0.0
    equal "$OUT" "done" "stdout of the registered skill"
}

# limit a_hung_host_is_restarted 300
case_a_hung_host_is_restarted() {
    [[ $E2E_HOST == soft ]] || skip "there is no software host in this run"
    local pid log
    pid=$(host_processes)
    [[ $pid =~ ^[0-9]+$ ]] || fail "one QEMU was expected, found: $pid"
    kill -STOP "$pid"
    for _ in $(seq 240); do
        [[ -d /proc/$pid ]] || break
        sleep 1
    done
    [[ ! -d /proc/$pid ]] || fail "the hung host was not ended within 240 s"
    for _ in $(seq 60); do
        capture curl -s --max-time 5 --unix-socket "$SKILLVM_SOCKET" http://localhost/ready
        ((RC == 0)) && [[ $OUT == *ready* || $OUT == *ok* ]] && break
        sleep 1
    done
    skill after main.sh <<<'echo after'
    expect 0 skillvm run after
    equal "$OUT" after stdout
    log=$(find "$SKILLVM_DATA" -name '*log' -exec cat {} +)
    grep -Eqi 'stopped answering|no answer|does not answer' <<<"$log" ||
        fail "the log does not say it: ${log: -600}"
}

# limit a_killed_host_is_restarted 200
case_a_killed_host_is_restarted() {
    [[ $E2E_HOST == soft ]] || skip "there is no software host in this run"
    local pid
    pid=$(host_processes)
    [[ $pid =~ ^[0-9]+$ ]] || fail "one QEMU was expected, found: $pid"
    kill -KILL "$pid"
    for _ in $(seq 100); do
        [[ -d /proc/$pid ]] || break
        sleep 0.1
    done
    skill again main.sh <<<'echo again'
    for _ in $(seq 40); do
        capture skillvm run again
        ((RC == 0)) && break
        sleep 2
    done
    equal "$RC" 0 "exit status of a run after the host was killed; $ERR"
    equal "$OUT" again stdout
}

case_down() {
    expect 0 skillvm down
    [[ ! -e $SKILLVM_SOCKET ]] || fail "the socket is left"
    equal "$(our_processes)" "" "processes"
    # Again, with nothing there: no error, or a clear one.
    capture skillvm down
    ((RC == 0)) || [[ -n $ERR ]] || fail "a second down: exit status $RC and no word"
    capture skillvm status
    [[ -n $OUT$ERR ]] || fail "status says nothing"
}

# limit run_without_a_daemon 240
case_run_without_a_daemon() {
    skill alone main.sh <<<'echo alone; exit 6'
    expect 6 skillvm run alone --host "$E2E_HOST"
    equal "$OUT" alone stdout
    contains "$ERR" "skillvm up" "what it says of keeping one"
    [[ ! -e $SKILLVM_SOCKET ]] || fail "the socket is left"
    equal "$(our_processes)" "" "processes"
}

case_nothing_is_left() {
    equal "$(our_processes)" "" "processes"
    local left
    left=$(cd "$SKILLVM_DATA" && find . -name '*.pid' -o -type s -o -path './tmp/*')
    equal "$left" "" "files in the data directory"
}
