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

# Seconds of the processors that a command took, whatever else the machine did.
processor_seconds() {
    local TIMEFORMAT='%U %S' taken
    taken=$( { time "$@" >/dev/null 2>&1; } 2>&1) || fail "$1: $taken"
    awk '{ print $1 + $2 }' <<<"$taken"
}

# Of a software host beside the tests' own: how often its daemon digested a memory, what QEMU has read, and
# the processor seconds that it took.
with_own() {
    env -u SKILLVM_SOCKET SKILLVM_DATA="$PWD/own" timeout 300 "$@"
}
memories_digested() {
    grep -c 'digested=sparse' own/softhost/log || true
}
qemu_of_own() {
    sed -n 's/^qemu_pid=//p' own/softhost/status
}
bytes_read() {
    sed -n 's/^rchar: //p' "/proc/$(qemu_of_own)/io"
}
seconds_taken() {
    awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' "/proc/$(qemu_of_own)/stat"
}

# Ten seconds, of a machine that boots the host's bare system in five: what makes a start longer than
# it must be are reads of all of kernel, image and snapshot, so these are counted.
# limit up_again_reads_nothing_again 600
# long up_again_reads_nothing_again
case_up_again_reads_nothing_again() {
    [[ $E2E_HOST == soft ]] || skip "there is no software host in this run"
    local first second taken bare from
    trap 'with_own skillvm down >/dev/null 2>&1' EXIT
    expect 0 with_own skillvm up --host soft
    # It was digested once at least, to make the snapshot, and again if its files were too new to be known.
    for _ in $(seq 3000); do
        ! grep -q 'digests=settled' own/softhost/log || break
        sleep 0.2
    done
    grep -q 'digests=settled' own/softhost/log || fail "the digests did not settle: $(tail -c 600 own/softhost/log)"
    (($(memories_digested) > 0)) || fail "no memory was digested"
    first=$(bytes_read)
    expect 0 with_own skillvm down
    # Without a boot: what is registered is known from when the host was stopped.
    expect 125 with_own skillvm run nobody
    [[ $ERR == *"no skill of that name is registered"* && $ERR != *"software host"* ]] || fail "run nobody: $ERR"
    from=$(wc -c <own/softhost/log)
    expect 0 with_own skillvm up --host soft
    second=$(bytes_read) taken=$(seconds_taken)
    tail -c "+$((from + 1))" own/softhost/log >second.log
    grep -q 'snapshot loaded' second.log || fail "no snapshot was loaded: $(tail -c 600 second.log)"
    ! grep ' digested=' second.log >again.txt || fail "the second start digested: $(<again.txt)"
    ((second < first / 2)) || fail "the second start read $second bytes, the first one $first"
    expect 0 with_own skillvm down
    bare=$(processor_seconds "$E2E_ROOT/images/softhost/run.sh" --share "$SKILLVM_SHARE" -- true)
    awk "BEGIN { exit !($taken <= 2 * $bare) }" ||
        fail "the second start took $taken s of a processor, and a bare boot $bare s"
}

# A software host whose disk cannot grow stands still, says so, and goes on when there is room.
# limit a_full_disk_is_told 600
# long a_full_disk_is_told
case_a_full_disk_is_told() {
    [[ $E2E_HOST == soft ]] || skip "there is no software host in this run"
    mkdir own
    mount -t tmpfs -o size=480m tmpfs own 2>/dev/null || skip "a small file system cannot be mounted"
    trap 'with_own skillvm down >/dev/null 2>&1; umount own' EXIT
    expect 0 with_own skillvm up --host soft
    skill grows main.sh <<<'head -c 60M /dev/urandom >"$SANDBOX_FILES_DIR/x"; echo grown'
    # Room for what a daemon writes by itself, and none for the artifact.
    fallocate -l "$(($(df -B 1M --output=avail own | tail -n 1) - 32))M" own/filler
    with_own skillvm run grows >out 2>err &
    local running=$! status=0
    # Who was asking when it stopped is told nothing; who asks then is.
    for _ in $(seq 300); do
        with_own skillvm skill list >listed 2>&1 || ! grep -q "stands still" listed || break
        sleep 0.2
    done
    contains "$(<listed)" "the disk of this machine is full, and the software host stands still" \
        "who asks meanwhile; $(tail -n 3 own/softhost/log)"
    expect 0 with_own skillvm status
    contains "$OUT" "stands still until there is room in $PWD/own" "status"
    kill -0 "$running" || fail "the run ended: $(cat out err)"
    rm own/filler
    wait "$running" || status=$?
    equal "$status: $(<out)" "0: grown" "the run, when there is room; $(<err)"
    expect 0 with_own skillvm status -o json
    equal "$(jq -c '[.software_host.restarts, .software_host.disk_full]' <<<"$OUT")" '[0,false]' "restarts"
}

# limit a_hung_host_is_restarted 300
# long a_hung_host_is_restarted
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
    for _ in $(seq 360); do
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
    for _ in $(seq 600); do
        [[ -d /proc/$pid ]] || break
        sleep 0.1
    done
    skill again main.sh <<<'echo again'
    for _ in $(seq 180); do
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
