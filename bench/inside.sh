#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs in the software host (or on any machine with KVM): starts a daemon on RAM, measures, and
# prints one JSON object on the last line; or, with SOAK=N, runs N executions and reports what
# grew. Argument: RUNS. Environment: BIN (folder of skillvmd), SHARE, HELLO (skill), COLDSTART.
set -u
runs=$1
work=$(mktemp -d "${SCRATCH:-/run/scratch}/bench.XXXXXX")
socket=$work/s.sock
"$BIN/skillvmd" --socket "$socket" --data "$work/data" --share "$SHARE" --grace 30 \
    2>"$work/log" &
daemon=$!
finish() {
    kill $daemon 2>/dev/null
    wait $daemon
    rm -rf "$work"
}
trap finish EXIT

get() { # path: prints the HTTP status
    python3 - "$socket" "$1" <<'P'
import http.client, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
try:
    c = C("skillvm")
    c.request("GET", sys.argv[2])
    print(c.getresponse().status)
except OSError as e:
    print(e)
P
}
tries=0
until [ "$(get /ready)" = 200 ]; do
    tries=$((tries + 1))
    if [ $tries -gt 300 ] || ! kill -0 $daemon 2>/dev/null; then
        echo 'bench: the daemon does not get ready:' >&2
        cat "$work/log" >&2
        exit 1
    fi
    sleep 0.3
done
tar -C "$HELLO" -cf "$work/hello.tar" .
python3 - "$socket" "$work/hello.tar" <<'P' || exit 1
import http.client, socket, sys
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
c = C("skillvm")
c.request("POST", "/v1/skills", open(sys.argv[2], "rb").read(), {"Content-Type": "application/octet-stream"})
r = c.getresponse()
text = r.read()
if r.status not in (200, 201):
    sys.exit(f"bench: POST /v1/skills: {r.status} {text}")
P

body='{"skill":"hello"}'

# One line of what a leak would show in: done, failed, RSS and descriptors of the daemon, VMMs
# alive, files in its temporary folder, p50 and max of the last batch in ms.
soak_line() { # done failed times
    local rss fds
    rss=$(awk '/^VmRSS/ { print $2 }' /proc/$daemon/status)
    fds=$(find /proc/$daemon/fd -mindepth 1 | wc -l)
    vmms=$(grep -lx skillvm-vmm /proc/[0-9]*/comm 2>/dev/null | wc -l)
    files=$(find "$work/data/tmp" -mindepth 1 2>/dev/null | wc -l)
    python3 - "$@" "$rss" "$fds" "$vmms" "$files" <<'P'
import json, sys
done, failed, times, rss, fds, vmms, files = sys.argv[1:]
ms = json.load(open(times))["cycle_ms"]
print(f"done={done} failed={failed} rss_kib={rss} fds={fds} vmms={vmms} tmp_files={files} "
      f"p50_ms={ms['p50']:.0f} max_ms={ms['max']:.0f}", flush=True)
P
    rss_now=$rss fds_now=$fds
}

soak() { # N
    local done=0 failed=0 bad rss_first='' fds_first=''
    while [ $done -lt "$1" ]; do
        "$COLDSTART" --socket "$socket" --body "$body" --runs "$runs" --warmup 0 >"$work/times"
        bad=$(sed 's/.*"failed":\([0-9]*\).*/\1/' "$work/times")
        failed=$((failed + ${bad:-runs}))
        done=$((done + runs))
        sleep 0.5
        soak_line $done $failed "$work/times"
        # The first batch warms allocators and caches up.
        : "${rss_first:=$rss_now}" "${fds_first:=$fds_now}"
    done
    echo "soak: $done executions, $failed failed; RSS $rss_first to $rss_now KiB," \
        "descriptors $fds_first to $fds_now, $vmms VMMs and $files temporary files left"
    [ $failed = 0 ] && [ "$vmms" = 0 ] && [ "$files" = 0 ] &&
        [ "$fds_now" -le $((fds_first + 2)) ] && [ "$rss_now" -le $((rss_first + rss_first / 4 + 2048)) ]
}
if [ -n "${SOAK:-}" ]; then
    soak "$SOAK"
    exit
fi

peers=(--peer 'python3=python3 -c pass')
if bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all true 2>/dev/null; then
    peers+=(--peer 'bubblewrap=bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all python3 -c pass')
fi
"$COLDSTART" --socket "$socket" --body "$body" --runs "$runs" "${peers[@]}" >"$work/times" ||
    { tail -n 20 "$work/log" >&2; }

# Counts come from one more execution with tracing on, so that it does not disturb the times.
trace=/sys/kernel/debug/tracing
counts='{}'
if [ -w $trace/events/kvm/kvm_exit/trigger ]; then
    echo 'hist:keys=exit_reason:size=256' >$trace/events/kvm/kvm_exit/trigger
    echo 'hist:keys=error_code' >$trace/events/kvm/kvm_page_fault/trigger
    echo 'hist:keys=id:size=512 if comm=="skillvm-vmm"' >$trace/events/raw_syscalls/sys_enter/trigger
    echo 'hist:keys=error_code if comm=="skillvm-vmm"' >$trace/events/exceptions/page_fault_user/trigger
    echo 'hist:keys=error_code if comm=="skillvm-vmm"' >$trace/events/exceptions/page_fault_kernel/trigger
    "$COLDSTART" --socket "$socket" --body "$body" --runs 1 --warmup 0 >/dev/null
    counts=$(python3 - $trace <<'P'
import json, re, sys
def hist(event, key):
    out = {}
    for line in open(f"{sys.argv[1]}/events/{event}/hist"):
        m = re.search(rf"{key}:\s*(\S+).*hitcount:\s*(\d+)", line)
        if m:
            out[m[1]] = out.get(m[1], 0) + int(m[2])
    return out
exits = {f"0x{int(k):x}": v for k, v in hist("kvm/kvm_exit", "exit_reason").items()}
calls = hist("raw_syscalls/sys_enter", "id")
print(json.dumps({
    "exits": sum(exits.values()),
    "nested_page_faults": exits.get("0x400", 0),
    "exits_by_code": exits,
    "nested_page_faults_by_error": {
        f"0x{int(k):x}": v for k, v in hist("kvm/kvm_page_fault", "error_code").items()
    },
    "vmm_syscalls": sum(calls.values()),
    "vmm_syscalls_by_number": calls,
    "vmm_page_faults": sum(hist("exceptions/page_fault_user", "error_code").values())
    + sum(hist("exceptions/page_fault_kernel", "error_code").values()),
}))
P
)
fi
machine=$(python3 "$(dirname "$0")/machine.py" "$BIN/skillvm-vmm" "$SHARE" "$work"/data/snapshots/*) ||
    machine='{}'
printf '{"times":%s,"counts":%s,"machine":%s}\n' "$(cat "$work/times")" "$counts" "$machine"
