# SPDX-License-Identifier: Apache-2.0
"""What a VMM that was taken over tries, and what is left to a single layer."""

ATTEMPTS = {
    "open": "opens a file of the daemon's",
    "inherited": "does so by the folders it was given",
    "open-32": "does so by a call of 32 bits",
    "make": "makes a file where all may",
    "execute": "executes a program",
    "limits": "raises the limits of its cgroup",
    "write": "writes to the snapshot and the image",
    "map": "maps them to be written",
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
# What a single layer denies, and why no other has to.
SOLE = {
    "vcpu": ("filter", "it is of its own machine, and counts towards its cgroup"),
    "code": ("filter", "who took it over has code already"),
    "ring": ("filter", "it can do with it what the other layers let it do without"),
    "user-faults": ("filter", "they are its own memory's"),
    "socket": ("filter", "it reaches its own network namespace, which is empty"),
}
