#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Run as root in a Debian with systemd and KVM in which the package is installed, which it uses up:
# that the unit runs a skill as it is shipped, and with strict.conf in all layers of the jail. A line
# "ok TITLE" or "FAIL TITLE: …" for each, and "end" (tests/package.sh).
#   service-inside.sh SKILL
set -uo pipefail
skill=$1
export HOME=/root SKILLVM_SOCKET=/run/skillvm/skillvmd.sock
drop_in=/etc/systemd/system/skillvmd.service.d
# vmm/jail/jail.h
first_user=1879048192 cells=1024

try() { # title command…
    local said
    if said=$("${@:2}" 2>&1); then
        echo "ok $1"
    else
        echo "FAIL $1: $said $(journalctl --no-pager -u skillvmd -n 40 -o cat)"
    fi
}

get() { # path
    curl -s --unix-socket $SKILLVM_SOCKET "http://localhost$1"
}

# It answers when it is started, and is ready when its snapshot is.
is_ready() {
    for _ in {1..150}; do
        get /ready | grep -q '"status": *"ready"' && return
        systemctl -q is-failed skillvmd && break
        sleep 2
    done
    get /ready
    return 1
}

main_pid() {
    systemctl show -P MainPID skillvmd
}

runs_the_skill() {
    local result
    result=$(skillvm run "$skill" --input '{"text": "to be or not to be"}' --json)
    grep -Eq '"words": ?6' <<<"$result" && return
    echo "$result"
    return 1
}

# "Name VALUE" of a process's status.
status_is() { # pid, name, value
    grep -Eq "^$2:[[:space:]]+$3\$" "/proc/$1/status" && return
    grep "^$2:" "/proc/$1/status"
    return 1
}

has_no_capabilities() { # pid
    local name
    for name in CapPrm CapEff CapInh CapAmb; do
        status_is "$1" $name 0000000000000000 || return
    done
    status_is "$1" NoNewPrivs 1
}

as_shipped() {
    systemctl start skillvmd && is_ready && runs_the_skill && has_no_capabilities "$(main_pid)"
}

becomes_strict() {
    mkdir -p $drop_in && ln -s /usr/share/skillvm/strict.conf $drop_in/ &&
        sed -i 's/^isolation:.*/isolation: strict/' /etc/skillvm/skillvmd.yaml &&
        systemctl daemon-reload && systemctl restart skillvmd && is_ready && runs_the_skill &&
        get /ready | grep -q '"isolation": *"ok"'
}

machine_has_all_layers() { # pid
    local id name
    id=$(awk '$1 == "Uid:" { print $2 }' "/proc/$1/status")
    if ((id < first_user || id >= first_user + cells)); then
        echo "its user is $id"
        return 1
    fi
    for name in cgroup ipc mnt net pid user uts; do
        if [[ $(readlink "/proc/$1/ns/$name") == $(readlink "/proc/$(main_pid)/ns/$name") ]]; then
            echo "it has the daemon's $name namespace"
            return 1
        fi
    done
    has_no_capabilities "$1" && [[ -z $(ls "/proc/$1/root") ]] &&
        grep -q '/skillvmd.service/skillvm-machines/[0-9]*$' "/proc/$1/cgroup"
}

# One that waits for the next skill. In an emulated machine on a busy one it takes more of a
# processor meanwhile than it may, and goes: there is one after the next run.
machines_have_all_layers() {
    local said
    for _ in {1..20}; do
        runs_the_skill || return
        said=$(machine_has_all_layers "$(pgrep -n -x skillvm-vmm)" 2>&1) && return
    done
    echo "$said"
    return 1
}

# What starts machines goes, and with it what another one takes.
is_started_again() {
    local before
    before=$(main_pid)
    pkill -KILL -x skillvm-jail
    skillvm run "$skill" --input '{"text": ""}' >/dev/null 2>&1
    for _ in {1..60}; do
        [[ $(systemctl show -P NRestarts skillvmd) == 1 ]] && break
        sleep 1
    done
    is_ready && [[ $(main_pid) != "$before" ]] && runs_the_skill && machines_have_all_layers
}

leaves_nothing() {
    systemctl stop skillvmd && ! pgrep -f skillvm-
}

try "as it is shipped it runs a skill" as_shipped
try "with strict.conf it is strict, and runs a skill" becomes_strict
try "the daemon has no capability" has_no_capabilities "$(main_pid)"
try "its machines have all layers" machines_have_all_layers
try "systemd starts it again when what starts machines has gone" is_started_again
try "nothing is left when it stops" leaves_nothing
echo end
