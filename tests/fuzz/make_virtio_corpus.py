#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the virtqueue, mmio and vsock fuzz targets: python3 make_virtio_corpus.py

Each seed says what it is by its name, and is built here from the input format that the target
of the same name reads. An input that once failed goes beside them as found-<what it did>.
"""
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
NEXT, WRITE, INDIRECT = 1, 2, 4


def seed(target, name, data):
    folder = os.path.join(HERE, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)


# --- virtqueue: u8 log2 size, u16 first index, u8 offset, memory (rings at 0, 2048, 2560) ---


def queue(descriptors, heads, log2=3, first=0, offset=0, idx=None):
    memory = bytearray(2600)
    for i, descriptor in enumerate(descriptors):
        struct.pack_into("<QIHH", memory, 16 * i, *descriptor)
    for i, head in enumerate(heads):
        slot = (first + i) % (1 << log2)
        struct.pack_into("<H", memory, 2048 + 4 + 2 * slot, head)
    if idx is None:
        idx = (first + len(heads)) & 0xFFFF
    struct.pack_into("<H", memory, 2048 + 2, idx)
    while memory and memory[-1] == 0:
        memory.pop()
    return struct.pack("<BHB", log2, first, offset) + bytes(memory)


seed("virtqueue", "one-readable", queue([(4096, 100, 0, 0)], [0]))
seed("virtqueue", "one-writable", queue([(4096, 100, WRITE, 0)], [0]))
seed("virtqueue", "request", queue([(4096, 16, NEXT, 1), (5000, 512, NEXT | WRITE, 2),
                                    (6000, 1, WRITE, 0)], [0], offset=10))
seed("virtqueue", "loop", queue([(4096, 4, NEXT, 1), (4096, 4, NEXT, 0)], [0]))
seed("virtqueue", "self-loop", queue([(4096, 4, NEXT, 0)], [0]))
seed("virtqueue", "wrap-around", queue([(4096, 4, 0, 0)], [0, 0, 0], first=0xFFFE))
seed("virtqueue", "index-too-far", queue([(4096, 4, 0, 0)], [0], idx=9))
seed("virtqueue", "head-out-of-range", queue([(4096, 4, 0, 0)], [8]))
seed("virtqueue", "next-out-of-range", queue([(4096, 4, NEXT, 300)], [0]))
seed("virtqueue", "zero-length", queue([(4096, 0, 0, 0)], [0]))
seed("virtqueue", "end-of-memory", queue([(8190, 2, 0, 0), (8190, 3, 0, 0)], [0, 1]))
seed("virtqueue", "address-wraps", queue([(2**64 - 2, 4, WRITE, 0)], [0]))
seed("virtqueue", "indirect", queue([(4096, 16, INDIRECT, 0)], [0]))
seed("virtqueue", "readable-after-writable",
     queue([(4096, 4, NEXT | WRITE, 1), (4096, 4, 0, 0)], [0]))
seed("virtqueue", "longest-chain",
     queue([(4096 + i, 1, NEXT if i < 127 else 0, i + 1) for i in range(128)], [0], log2=7))
seed("virtqueue", "over-the-rings", queue([(2048, 600, WRITE, 0)], [0] * 8))


# --- mmio: u8 kind (1 vsock, 2 started, 4 skill's disk), then steps (see step() in mmio.c) ---

STATUS, FEATURES, FEATURES_SEL = 0x70, 0x20, 0x24
QUEUE_SEL, QUEUE_NUM, QUEUE_READY, NOTIFY = 0x30, 0x38, 0x44, 0x50
DESC, AVAIL, USED, ACK = 0x80, 0x90, 0xA0, 0x64


def reg(offset, value):
    return struct.pack("<BHI", 0, offset, value)


def poke(gpa, data):
    data = data.ljust(-(-len(data) // 8) * 8, b"\0")
    return b"".join(struct.pack("<BH", 3, gpa + i) + data[i:i + 8]
                    for i in range(0, len(data), 8))


def negotiate(features=0):
    return (reg(STATUS, 0) + reg(STATUS, 1) + reg(STATUS, 3) + reg(FEATURES_SEL, 0) +
            reg(FEATURES, features) + reg(FEATURES_SEL, 1) + reg(FEATURES, 1) +
            reg(STATUS, 11))


def setup(n, size=16, desc=None):
    base = 0x1000 + n * 0x4000 if desc is None else desc
    return (reg(QUEUE_SEL, n) + reg(QUEUE_NUM, size) + reg(DESC, base) + reg(DESC + 4, 0) +
            reg(AVAIL, base + 0x1000) + reg(AVAIL + 4, 0) + reg(USED, base + 0x2000) +
            reg(USED + 4, 0) + reg(QUEUE_READY, 1))


def descriptor(n, index, addr, length, flags, following):
    return poke(0x1000 + n * 0x4000 + 16 * index,
                struct.pack("<QIHH", addr, length, flags, following))


def offer(n, heads):
    return poke(0x2000 + n * 0x4000, struct.pack("<HH", 0, len(heads)) +
                struct.pack("<%dH" % len(heads), *heads))


SNAPSHOT, MORE = b"\x07", b"\x06\x01"
BLK, VSOCK, BLK_UP, VSOCK_UP = b"\0", b"\1", b"\2", b"\3"
READ_ALL = b"".join(struct.pack("<BB", 2, i) for i in range(0, 0x90, 2))

read_request = (poke(0xE000, struct.pack("<IIQ", 0, 0, 3)) +
                descriptor(0, 0, 0xE000, 16, NEXT, 1) +
                descriptor(0, 1, 0xF000, 512, NEXT | WRITE, 2) +
                descriptor(0, 2, 0xE100, 1, WRITE, 0) + offer(0, [0]) + b"\x05\0")
vsock_header = struct.pack("<QQIIIHHIII", 3, 2, 1024, 0x10001, 0, 1, 2, 0, 1 << 18, 0)
vsock_response = (poke(0xE000, vsock_header) + descriptor(1, 0, 0xE000, 44, 0, 0) +
                  offer(1, [0]) + b"\x05\1")
vsock_buffers = b"".join(descriptor(0, i, 0xF000, 256, WRITE, 0) for i in range(4))

seed("mmio", "read-every-register", BLK + READ_ALL)
seed("mmio", "start-blk", BLK + negotiate() + setup(0) + reg(STATUS, 15) + READ_ALL)
seed("mmio", "start-vsock", VSOCK + negotiate() + setup(0) + setup(1) + setup(2) +
     reg(STATUS, 15) + READ_ALL)
seed("mmio", "snapshot-at-every-stage", BLK + SNAPSHOT + negotiate() + SNAPSHOT + setup(0) +
     SNAPSHOT + reg(STATUS, 15) + SNAPSHOT + read_request + SNAPSHOT)
seed("mmio", "blk-read", BLK_UP + read_request + reg(ACK, 1) + read_request)
seed("mmio", "skill-disk", b"\6" + read_request + MORE + read_request + MORE + SNAPSHOT +
     read_request + MORE + read_request)
seed("mmio", "blk-bad-chain", BLK_UP + descriptor(0, 0, 0xE000, 16, NEXT, 0) +
     offer(0, [0]) + b"\x05\0" + SNAPSHOT + reg(STATUS, 0))
seed("mmio", "vsock-connect", VSOCK_UP + vsock_buffers + offer(0, [0, 1, 2, 3]) + MORE +
     vsock_response + MORE + SNAPSHOT + b"\x05\2" + MORE)
seed("mmio", "unknown-features", BLK + negotiate(0xFFFFFFFF) + setup(0) + reg(STATUS, 15))
seed("mmio", "driver-ok-first", BLK + reg(STATUS, 4) + reg(STATUS, 15) + b"\x05\0")
seed("mmio", "moves-an-active-queue", BLK_UP + reg(QUEUE_READY, 0) + setup(0, 8, 0x8000) +
     read_request)
seed("mmio", "queue-outside", BLK + negotiate() + setup(0, 16, 0x3FF000) + reg(STATUS, 15))
seed("mmio", "odd-lengths", BLK_UP + b"".join(bytes([op, 0x70, 0, 1, 2, 3, 4])
                                               for op in (24, 32, 40)) + READ_ALL)

# --- vsock: u8 receive buffers, then steps (see step() in vsock.c); 0x10 in a step's number
#     (plus a multiple of 12) runs the loop after it ---


def op(number, loop=True):
    # The smallest byte with the step's number modulo 12 and the wanted bit of its upper half.
    return bytes([next(b for b in range(256)
                       if b % 12 == number and bool(b & 0x10) == loop)])


def packet(operation, flags=0, length=0, odd=0, extra=b""):
    return op(2) + struct.pack("<BBH", odd, operation, length) + extra + bytes([flags])


CONNECT, RESPONSE = op(0), op(1)
HOST_CLOSE, EVENT, RESTORE = op(11), op(9), op(10)


def host_send(n):
    return op(5) + struct.pack("<H", n)


def host_read(n):
    return op(6) + struct.pack("<H", n)


def host_shutdown(how):
    return op(7) + bytes([how])


def post(n):
    return op(8) + bytes([n])


UP = b"\x20" + CONNECT + RESPONSE
seed("vsock", "connect", UP)
seed("vsock", "refused", b"\x08" + CONNECT + packet(3) + CONNECT + packet(3) + CONNECT)
seed("vsock", "both-ways", UP + host_send(5000) + packet(5, length=3000) + host_read(3000) +
     post(8) + host_send(20000) + post(16))
seed("vsock", "host-does-not-read", UP + packet(5, length=60000) * 9 + host_read(65535) * 6)
seed("vsock", "host-half-closes", UP + host_send(10) + host_shutdown(1) +
     packet(5, length=10) + packet(4, flags=3))
seed("vsock", "host-closes", UP + host_send(10) + HOST_CLOSE + packet(3))
seed("vsock", "guest-half-closes", UP + packet(4, flags=2) + host_send(10) +
     packet(4, flags=1))
seed("vsock", "guest-resets", UP + packet(5, length=100) + packet(3))
seed("vsock", "no-buffers", b"\x01" + CONNECT + RESPONSE + host_send(9000) + post(1) + post(4))
seed("vsock", "no-credit", UP + packet(6, odd=64, extra=struct.pack("<I", 10)) +
     host_send(100) + packet(6, odd=192, extra=struct.pack("<II", 10, 10)))
seed("vsock", "guest-connects", UP + packet(1, odd=12, extra=struct.pack("<II", 99, 22)) * 40 +
     post(31) * 2)
seed("vsock", "lying-length", UP + packet(5, odd=16, length=4, extra=b"\xff\xff\xff\xff"))
seed("vsock", "wrong-ids", UP + packet(5, odd=3, extra=struct.pack("<QQ", 2, 3)))
seed("vsock", "seqpacket", UP + packet(1, odd=32, extra=b"\2\0"))
seed("vsock", "restore", UP + host_send(100) + RESTORE + CONNECT + EVENT + RESPONSE +
     host_send(5) + RESTORE + EVENT + CONNECT + RESPONSE)
seed("vsock", "answers-before-the-request", b"\x00" + CONNECT + RESPONSE + host_send(5) + post(4) +
     RESTORE + CONNECT + RESPONSE + host_send(5) + post(4) + RESPONSE)
