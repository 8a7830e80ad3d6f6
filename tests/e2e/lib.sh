# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the cases in cases/*.sh stand on. A case is a function case_NAME that runs in a bash of
# its own, in an empty directory, with `set -euo pipefail`, the programs in PATH, and a daemon
# behind $SKILLVM_SOCKET. It ends well when it returns, by `skip` or by `fail`.

fail() {
    printf '%s' "$*" >"$CASE_REASON"
    exit 1
}

skip() {
    printf '%s' "$*" >"$CASE_REASON"
    exit 77
}

# The command that `set -e` stops at is the reason unless a better one was given.
trap '[[ -s $CASE_REASON ]] || printf "line %s: %s" "$LINENO" "$BASH_COMMAND" >"$CASE_REASON"' ERR

equal() { # got, expected, what
    [[ $1 == "$2" ]] || fail "$3: got ${1:0:400}, expected ${2:0:400}"
}

contains() { # whole, part, what
    [[ $1 == *"$2"* ]] || fail "$3: no '$2' in ${1:0:400}"
}

# Runs a command. RC, OUT and ERR hold its exit status, standard output and standard error.
capture() {
    RC=0
    "$@" >out.capture 2>err.capture || RC=$?
    OUT=$(<out.capture)
    ERR=$(<err.capture)
}

# capture, and the exit status has to be the first argument.
expect() {
    local want=$1
    shift
    capture "$@"
    ((RC == want)) ||
        fail "$(basename "$1") ${*:2}: exit status $RC, expected $want; ${ERR:0:400} ${OUT:0:200}"
}

# An HTTP request: http PATH [curl options]. STATUS and BODY hold the answer.
http() {
    local path=$1
    shift
    STATUS=$(curl -s --max-time 340 --unix-socket "$SKILLVM_SOCKET" -o body.capture \
        -w '%{http_code}' "$@" "http://localhost$path") || fail "curl $path: exit status $?"
    BODY=$(tr -d '\0' <body.capture)
}

# The same, with the status it must have first.
http_expect() {
    local want=$1
    shift
    http "$@"
    [[ $STATUS == "$want" ]] || fail "$1: HTTP $STATUS, expected $want: ${BODY:0:400}"
}

# An error must be told in the documented shape.
error_is() { # code, part of the message
    equal "$(jq -r .error <<<"$BODY")" "$1" "error code"
    contains "$(jq -r .message <<<"$BODY")" "$2" "message"
}

# Makes a skill: skill FOLDER FILE [front matter lines], with the file's text on standard input.
skill() {
    local folder=$1 file=$2 front=${3:-}
    mkdir -p "$folder/$(dirname "$file")"
    cat >"$folder/$file"
    printf -- '---\nname: %s\ndescription: a skill of the tests\n%s---\nA skill.\n' \
        "$(basename "$folder")" "${front:+$front$'\n'}" >"$folder/SKILL.md"
}

zip_of() { # folder: the path of a zip of its content
    (cd "$1" && zip -q -r - .) >"$1.zip"
    echo "$1.zip"
}

# A run has the longest time there is where a case gives none: it is no case's to show how fast an
# emulator is beside others. A job of the shell's is the program itself.
skillvm() {
    local command=("$@")
    [[ ${1:-} != run || " $* " == *' --timeout '* ]] || command=(run --timeout 600s "${@:2}")
    command skillvm "${command[@]}"
}

# Ids of the QEMU processes that serve this data directory.
host_processes() {
    local pid
    for pid in /proc/[0-9]*; do
        [[ $(readlink "$pid/exe" 2>/dev/null) == */qemu-system-* ]] || continue
        tr '\0' ' ' <"$pid/cmdline" 2>/dev/null | grep -qF "$SKILLVM_DATA" && basename "$pid"
    done
    return 0
}

# Every process that knows this data directory, but for the tests' own.
our_processes() {
    local pid
    for pid in /proc/[0-9]*; do
        [[ $(readlink "$pid/exe" 2>/dev/null) == */@(qemu-system-*|skillvm|skillvmd|skillvm-vmm) ]] ||
            continue
        tr '\0' ' ' <"$pid/cmdline" 2>/dev/null | grep -qF "$SKILLVM_DATA" && basename "$pid"
    done
    return 0
}
