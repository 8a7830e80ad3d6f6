# SPDX-License-Identifier: Apache-2.0
"""What a VMM that was taken over tries, what each layer denies alone, and what is left to a single one."""

ATTEMPTS = {
    "open": "opens a file of the daemon's",
    "inherited": "does so by the folders it was given",
    "open-32": "does so by a call of 32 bits",
    "make": "makes a file where all may",
    "execute": "executes a program",
    "limits": "raises the limits of its cgroup",
    "write": "writes to the snapshot and the image",
    "map": "maps them to be written",
    "disk": "makes them larger, to fill the disk",
    "proc-root": "opens a file by `/proc/PID/root` of a process of the daemon's user",
    "proc-file": "opens what that one has open, by `/proc/PID/fd`",
    "device": "opens `/dev/kvm`",
    "machine": "makes a machine by the descriptors it was given",
    "vcpu": "makes another vCPU",
    "abstract": "connects to an abstract socket",
    "socket-file": "connects to a socket by its path",
    "connect": "connects to a port",
    "send": "sends a datagram",
    "listen": "listens at a port",
    "end": "ends a process of the daemon's user",
    "end-machine": "ends another machine",
    "trace": "traces a process",
    "read": "reads a process's memory",
    "proc-memory": "does so by `/proc/PID/mem`",
    "read-machine": "reads another machine's memory",
    "stream": "takes another machine's stream",
    "shared-memory": "attaches shared memory",
    "key": "reads a key of the daemon's user",
    "user": "becomes another user",
    "root": "changes its root folder",
    "mount": "mounts",
    "user-namespace": "makes a user namespace",
    "namespace": "makes a network namespace",
    "host-name": "renames the host",
    "priority": "raises its priority",
    "rlimits": "raises its limits",
    "code": "makes data code",
    "ring": "makes an io_uring",
    "bpf": "makes a BPF map",
    "perf": "counts events",
    "user-faults": "has its page faults told",
    "socket": "makes a netlink socket",
    "memory": "takes memory",
    "shared": "takes memory that is shared",
    "memory-file": "takes memory as a file",
    "large-file": "takes memory as a file that it makes larger and maps",
    "processes": "starts processes",
    "descriptors": "takes descriptors",
    "log": "floods its log",
}
# What skillvm-jail gives up before it starts anything: its capabilities, the daemon's keyring.
LAUNCHER = "skillvm-jail"
# What a layer stands on.
NEEDS = {
    "namespaces": {LAUNCHER},
    "root": {LAUNCHER, "namespaces"},
    "users": {LAUNCHER, "namespaces"},
    "limits": {LAUNCHER},
}
# What each layer denies with all others left out, but for those it stands on: what these deny is said of them.
ALONE = {
    "filter": {*ATTEMPTS} - {"log"},
    "Landlock": {"open", "inherited", "open-32", "make", "execute", "limits", "device", "trace", "read",
                 "read-machine", "stream", "mount", "proc-root", "proc-file", "proc-memory"},
    "capabilities": {"user", "root", "mount", "namespace", "host-name", "priority", "rlimits", "bpf", "perf"},
    # What is executed gets no memory for its data.
    "rlimits": {"execute", "write", "disk", "memory", "memory-file", "large-file", "descriptors", "log"},
    "process": {"inherited", "machine"},
    "descriptors": {"write", "map", "disk", "log"},
    LAUNCHER: {"root", "mount", "namespace", "host-name", "priority", "rlimits", "bpf", "perf"},
    "namespaces": {"abstract", "connect", "send", "listen", "end", "trace", "read", "shared-memory", "user",
                   "user-namespace", "proc-root", "proc-file", "proc-memory"},
    "root": {"open", "open-32", "make", "execute", "limits", "device", "socket-file"},
    "users": {"limits", "device", "end-machine", "read-machine", "stream", "key", "processes"},
    "limits": {"memory", "shared", "memory-file", "large-file", "processes"},
}
# What else a later Landlock denies alone, by the version that has it first: of Linux 6.7, and of 6.12.
LANDLOCK_LATER = {4: {"connect", "listen"}, 6: {"abstract", "end", "end-machine"}}
# Why no second layer has to deny it.
SOLE = {
    "vcpu": "it is of its own machine, and counts towards its cgroup",
    "code": "who took it over has code already",
    "ring": "it can do with it what the other layers let it do without",
    "user-faults": "they are its own memory's",
    "socket": "it reaches its own network namespace, which is empty",
}
# What they do not deny to a machine that boots, which is to be saved: it maps memory, has no limits, and asks
# KVM which registers there are.
NOT_AT_BOOT = {"filter": {"memory"}, "rlimits": ALONE["rlimits"], "process": {"machine"}}


def layers_against(attempt):
    """Those of which each denies it alone: two at least, but for SOLE."""
    found = [layer for layer in ALONE if attempt in ALONE[layer]]
    if (len(found) < 2) != (attempt in SOLE):
        raise ValueError(f"{attempt} is denied by {found}, and that is not what SOLE says")
    return found


def denied_with(layer, landlock):
    """By a layer and those that it stands on, where Landlock has this version."""
    denied = ALONE[layer].union(*(ALONE[below] for below in NEEDS.get(layer, ())))
    later = LANDLOCK_LATER.items() if layer == "Landlock" else ()
    return denied.union(*(more for version, more in later if landlock >= version))


def layers_against_booting(attempt):
    """The same of a machine that boots."""
    return [layer for layer in layers_against(attempt) if attempt not in NOT_AT_BOOT.get(layer, ())]
