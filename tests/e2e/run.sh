#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Drives the built programs as a user would.
#
#   run.sh --build DIR [--suite e2e|hostile|all] [--only NAME]… [--long] [--host auto|soft|native]
#          [--keep] [--kernel VERSION] [--vmx]
#
# Cases in cases/*.sh use the command line and curl on a daemon started by `skillvm up`; cases
# in inside/*.py need to see the daemon's own machine and run in a one-shot software host, or
# here when KVM is usable here; those of tests/hostile are like these. With software hosts the three
# run beside each other; here, where each would see the others' machines, one after the other.
# --kernel and --vmx choose the kind of software host (images/softhost/run.sh), and then only the
# cases of the machine run, unless others are asked for by name. One line per case: `ok NAME
# (TIME)`, `FAIL NAME: why (TIME)` or `skip NAME: why (TIME)`, and the totals at the end.
#
# A case with a line `# long NAME` in its file, or @long_case, runs with --long, or when --only names it or
# a pattern of it; one with `# asked NAME`, or @asked_case, only when --only names it as it is.
#
# Exit status: 0 all passed, 1 some failed, 77 nothing could run, 2 wrong usage or no such case.

set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build='' suite=all host=auto keep='' long=''
only=() kind=()
usage() {
    sed -n '6,7p' "$0" | cut -c3- >&2
    exit 2
}
while (($#)); do
    case $1 in
    --build) build=${2:-} && shift ;;
    --suite) suite=${2:-} && shift ;;
    --only) only+=("${2:-}") && shift ;;
    --host) host=${2:-} && shift ;;
    --keep) keep=1 ;;
    --long) long=1 ;;
    --kernel) kind+=(--kernel "${2:-}") && shift ;;
    --vmx) kind+=(--vmx) ;;
    *) usage ;;
    esac
    shift
done
[[ -d $build && $suite =~ ^(e2e|hostile|all)$ && $host =~ ^(auto|soft|native)$ ]] || usage

# Names of the cases in files for the shell, and in Python's.
shell_cases() {
    sed -n 's/^case_\([a-z0-9_]*\)() {$/\1/p' "$@"
}
python_cases() {
    sed -n '/^@\([a-z]*_\)\?case$/{:a;n;/^@/ba;s/^def \([a-z0-9_]*\)(.*/\1/p}' "$@"
}
suite_cases() {
    [[ $suite == hostile ]] || python_cases "$here"/inside/*.py
    [[ $suite == hostile ]] || ((${#kind[@]})) || shell_cases "$here"/cases/*.sh
    [[ $suite == e2e ]] || python_cases "$root"/tests/hostile/*.py
}
for pattern in "${only[@]}"; do
    while read -r name; do
        # shellcheck disable=SC2254 # the pattern is one
        case $name in $pattern) continue 2 ;; esac
    done < <(suite_cases)
    echo "run.sh: no case of these suites is called $pattern" >&2
    exit 2
done
build=$(cd "$build" && pwd)

nothing_runs() {
    echo "skip $suite: $1"
    if [[ ${REQUIRE_KVM:-} == 1 ]]; then
        echo "0 passed, 1 failed"
        exit 1
    fi
    echo "0 passed, 0 failed, 1 skipped"
    exit 77
}

export SKILLVM_SHARE=${SKILLVM_SHARE:-$build/share/skillvm}
for tool in curl jq python3 zip; do
    command -v "$tool" >/dev/null || nothing_runs "$tool is not installed"
done
[[ -x $build/bin/skillvm ]] || nothing_runs "skillvm is not built"
for file in vmlinux python.erofs; do
    [[ -e $SKILLVM_SHARE/$file ]] || nothing_runs "$file is not built; ./dev build makes it"
done
inside_limit=4500
if ((${#kind[@]})); then
    [[ $host != native ]] || usage
    # Those that are asked for by name may take long: Bochs is eight times as slow as QEMU.
    host=soft inside_limit=28800
elif [[ $host == auto ]]; then
    host=soft
    timeout 20 "$build/bin/skillvm" doctor >/dev/null 2>&1 && host=native
fi
if [[ $host == soft && ! -e $SKILLVM_SHARE/softhost/root.erofs ]]; then
    nothing_runs "KVM is not usable here and the software host is not built; ./dev build makes it"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/skillvm-e2e.XXXXXX")
inside_pids=()
export SKILLVM_DATA=$work/data SKILLVM_HOST=$host E2E_HERE=$here E2E_ROOT=$root E2E_HOST=$host
export PATH=$build/bin:$PATH
unset SKILLVM_SOCKET
finish() {
    ((${#inside_pids[@]} == 0)) || kill "${inside_pids[@]}" 2>/dev/null
    timeout 60 skillvm down >/dev/null 2>&1
    if [[ -n $keep ]]; then
        echo "kept: $work"
    else
        rm -rf "$work"
    fi
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

results=$work/results
: >"$results"
say() { # a line of a result: shown and counted
    printf '%s\n' "$1" | tee -a "$results"
}

wanted() {
    ((${#only[@]} == 0)) && return 0
    local pattern
    for pattern in "${only[@]}"; do
        # shellcheck disable=SC2254 # the pattern is one
        case $1 in $pattern) return 0 ;; esac
    done
    return 1
}

# Runs one case_NAME of a file in a shell of its own. Its limit ends what hangs: it is three times
# what the file says, which is for a machine that does nothing else.
run_case() {
    local file=$1 name=$2 limit start status reason seconds
    limit=$(sed -n "s/^# limit $name //p" "$file")
    limit=$((3 * ${limit:-300}))
    start=$EPOCHREALTIME
    mkdir -p "$work/case/$name"
    export CASE_REASON=$work/case/$name.reason
    : >"$CASE_REASON"
    # shellcheck disable=SC2016 # expanded by the inner shell
    (cd "$work/case/$name" && timeout -k 5 "$limit" bash -c '
        source "$E2E_HERE/lib.sh"
        set -eEuo pipefail
        export SKILLVM_SOCKET=$SKILLVM_DATA/skillvm.sock
        source "$1"
        "case_$2"' bash "$file" "$name") >"$work/case/$name.log" 2>&1
    status=$?
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')
    reason=$(tr '\n' ' ' <"$CASE_REASON")
    case $status in
    0) say "ok $name ($seconds)" ;;
    77) say "skip $name: $reason ($seconds)" ;;
    124 | 137) say "FAIL $name: not over after $limit s ($seconds)" ;;
    *) say "FAIL $name: ${reason:-status $status} ($seconds)" ;;
    esac
    if ((status != 0 && status != 77)); then
        tail -n 15 "$work/case/$name.log" | sed 's/^/    /'
    fi
    chmod -R u+rwx "$work/case/$name" 2>/dev/null
    rm -rf "$work/case/$name"
}

# An image whose PID 1 is the attacker's; the cases that need it skip without it.
hostile_image() {
    command -v mkfs.erofs >/dev/null && [[ -x $build/tests/hostile-init ]] || return 0
    mkdir -p "$1/root/"{sbin,proc,sys,dev,tmp,run,sandbox}
    cp "$build/tests/hostile-init" "$1/root/sbin/skillvm-init"
    mkfs.erofs --quiet "$1/python.erofs" "$1/root" || echo "mkfs.erofs failed"
    (cd "$1" && sha256sum python.erofs >python.sha256)
    rm -r "$1/root"
}

# The guest of the resets, and the VMM that verifies them; the cases skip without.
hostile_guest() {
    mkdir -p "$1"
    for program in bin/skillvm-vmm-verify tests/hostile-guest tests/skillvm-vmm-taken; do
        [[ ! -x $build/$program ]] || cp "$build/$program" "$1/"
    done
}

# What the cases inside need beside the programs.
extra=$work/extra
prepare_inside() {
    mkdir -p "$extra/tests/e2e" "$extra/docs"
    cp -r "$root/examples" "$extra/"
    cp "$root/docs/syscalls.md" "$root/docs/security.md" "$extra/docs/"
    cp -r "$here/inside" "$extra/tests/e2e/"
    cp -r "$root/tests/calls" "$root/tests/skills" "$extra/tests/"
    [[ ! -x $build/tests/guest-calls ]] || cp "$build/tests/guest-calls" "$extra/tests/calls/skill/"
    cp -r "$root/tests/hostile" "$extra/tests/"
    hostile_image "$extra/tests/hostile-image"
    hostile_guest "$extra/tests/hostile-guest"
}

run_inside() { # e2e or hostile
    local name any='' part=$1 folder=$here/inside
    [[ $part != hostile ]] || folder=$root/tests/hostile
    [[ $suite == "$part" || $suite == all ]] || return 0
    for name in $(python_cases "$folder"/*.py); do
        wanted "$name" && any=1
    done
    [[ -n $any ]] || return 0
    local command line
    local -a pass=(--suite "$part" ${long:+--long})
    if ((${#only[@]})); then
        local pattern
        for pattern in "${only[@]}"; do
            pass+=(--only "${pattern//\*/.*}")
        done
    elif ((${#kind[@]})); then
        pass+=(--machine)
    fi
    if [[ $host == native ]]; then
        command=(python3 "$extra/tests/e2e/inside/main.py" --bin "$build/bin"
            --share "$SKILLVM_SHARE" --scratch "$work" "${pass[@]}")
    else
        command=("$root/images/softhost/run.sh" --share "$SKILLVM_SHARE" "${kind[@]}"
            --timeout $((inside_limit + ${HOSTILE_PROGRAMS:-0} / 10 + (${HOSTILE_RESETS:-0} + ${HOSTILE_EXECUTIONS:-0} + ${SKILL_RESETS:-0} + ${OWNER_RUNS:-0}) * 3 + ${CLONES:-0} * 20 + ${SIEGE_S:-0} * 7 + ${FLOOD_RUNS:-0} * 15 + ${RELAY_PERMITTED:-0} / 10))
            --memory 4096 --mount "$extra:/mnt/extra"
            --env "HOSTILE_RESETS=${HOSTILE_RESETS:-}" --env "HOSTILE_SEED=${HOSTILE_SEED:-}"
            --env "HOSTILE_PROGRAMS=${HOSTILE_PROGRAMS:-}" --env "HOSTILE_EXECUTIONS=${HOSTILE_EXECUTIONS:-}"
            --env "SKILL_RESETS=${SKILL_RESETS:-}" --env "SKILL_SEED=${SKILL_SEED:-}"
            --env "OWNER_RUNS=${OWNER_RUNS:-}" --env "CLONES=${CLONES:-}" --env "SIEGE_S=${SIEGE_S:-}"
            --env "CATEGORIES=${CATEGORIES:-}" --env "FLOOD_RUNS=${FLOOD_RUNS:-}"
            --env "RELAY_PERMITTED=${RELAY_PERMITTED:-}" --
            python3 /mnt/extra/tests/e2e/inside/main.py --emulated --bin /opt/skillvm/bin
            --share /opt/skillvm/share/skillvm --scratch /data "${pass[@]}")
    fi
    # An interruption has to end the host as well: it may have hours to go.
    mkfifo "$work/$part.out"
    "${command[@]}" >"$work/$part.out" 2>"$work/$part.log" </dev/null &
    # shellcheck disable=SC2064 # the host of now
    trap "kill $! 2>/dev/null; exit 130" TERM
    while IFS= read -r line; do
        case $line in
        'ok '* | 'FAIL '* | 'skip '* | 'again '*) say "$line" ;;
        'inside: done') touch "$work/$part.done" ;;
        *) printf '    %s\n' "$line" ;;
        esac
    done <"$work/$part.out"
    if [[ ! -e $work/$part.done ]]; then
        say "FAIL $part: it ended before its last case: $(tail -n 3 "$work/$part.log" | tr '\n' ' ')"
    fi
    if grep -qE '^(FAIL|again)' "$results"; then
        tail -n 40 "$work/$part.log" | sed 's/^/    /'
    fi
}

run_shell_cases() {
    local file name
    [[ $suite != hostile ]] && ((${#kind[@]} == 0)) || return 0
    for file in "$here"/cases/*.sh; do
        while read -r name; do
            if grep -qx "# asked $name" "$file" && [[ " ${only[*]} " != *" $name "* ]]; then continue; fi
            if [[ -z $long ]] && ((${#only[@]} == 0)) && grep -qx "# long $name" "$file"; then continue; fi
            wanted "$name" && run_case "$file" "$name"
        done < <(shell_cases "$file")
    done
}

started=$SECONDS
case $host in
soft) echo "${kind[*]:-KVM is not usable here}: the cases run in the software host" ;;
native) echo "the cases run on this machine's KVM" ;;
esac
prepare_inside
if [[ $host == soft ]]; then
    run_inside e2e &
    inside_pids+=($!)
    run_inside hostile &
    inside_pids+=($!)
    run_shell_cases
    wait "${inside_pids[@]}"
    inside_pids=()
else
    run_shell_cases
    run_inside e2e
    run_inside hostile
fi

passed=$(grep -c '^ok ' "$results")
failed=$(grep -c '^FAIL ' "$results")
skipped=$(grep -c '^skip ' "$results")
if [[ ${REQUIRE_KVM:-} == 1 ]] && ((skipped)); then
    failed=$((failed + skipped)) skipped=0
fi
grep -E '^(FAIL|skip|again) ' "$results" | sed 's/^/-- /'
echo "end to end in $((SECONDS - started)) s"
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")"
((failed == 0))
