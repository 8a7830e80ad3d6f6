/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames between the host and guest-init over one vsock connection to guest port 1024.
 * Free of dependencies: both sides include it and nothing else of each other.
 *
 * A frame is an 8-byte header and a payload. All integers are little-endian.
 *
 *   0  u32  payload length, at most PROTO_PAYLOAD_MAX
 *   4  u8   type (enum proto_type)
 *   5  u8   reserved, zero
 *   6  u16  reserved, zero
 *
 * An execution, in order (H host, G guest):
 *   G READY      as soon as the connection is accepted
 *   H WAKE       wall clock and entropy: nothing of the user's runs before it is applied
 *   H RUN        what to run (fields below)
 *   H PACKAGES*  where RUN says so: what is below /sandbox/packages, as SKILL; of a machine
 *                whose snapshot holds them the empty frame alone
 *   H SKILL*     the skill as one tar stream (ustar with pax path/linkpath/size records),
 *                in chunks; an empty frame ends it. Where RUN says that it is on the machine's
 *                second disk the empty frame alone, once it is there
 *   H INPUT*     the input JSON in chunks; an empty frame ends it
 *   H FILES_IN*  input files as a tar stream in chunks; an empty frame ends it (always sent)
 *   H SESSION_IN* only with SESSION_BYTES in RUN: the session as it was left, as a tar stream
 *                in chunks; an empty frame ends it
 *   G STARTED    the skill's process is about to run
 *   G STDOUT*, STDERR*   live, as they are written
 *   G, H NET_*   while the skill runs, where RUN had NETWORK: see below
 *   H CANCEL     at any time after RUN: end the skill now, collect what it left
 *   G EXIT       how it ended
 *   G OUTPUT*    the content of output.json in chunks; an empty frame ends it (always sent)
 *   G FILES*     the artifacts as a tar stream in chunks; an empty frame ends it (always sent)
 *   G SESSION*   only after SESSION_IN: the session as it is now, in the same way; the empty
 *                frame alone where the skill was ended or it is over its limits
 *   G DONE       nothing follows; the host may kill the machine
 *   G FAIL       instead of anything above: guest-init could not do it; text says why
 *
 * Making a snapshot: H connects, G sends READY once its zygotes are warm, H closes. (WAKE could
 * follow as well.) For one that holds more than the image's own choice, before H closes:
 *   H WARM       Python modules to import, before anything of a user's is known to the machine
 *   G WARMED     all of it is imported; FAIL, and the machine ends, if any of it cannot be
 *   H HOLD, PACKAGES*   packages as above, after WARM or without it
 *   G WARMED     they are in their place and compiled; nothing of them was run
 *
 * A skill's connections, which the host makes for it (all numbers u16 unless said otherwise):
 *   G NET_ASK     query, the name (1 to PROTO_NET_NAME_MAX bytes): may it be reached, and where
 *   H NET_ANSWER  query, u8 enum proto_net_answer, u8 name, and where it may be reached the
 *                 ports, 1 to PROTO_NET_PORTS; the query's number is free again
 *   G NET_OPEN    connection, name, port
 *   H NET_OPENED  connection
 *   H NET_REFUSED connection: its number is free again
 *   both NET_DATA connection, 1 to PROTO_NET_DATA_MAX bytes. Each side may send
 *                 PROTO_NET_WINDOW bytes after NET_OPENED, and more as the other one gives room
 *   both NET_ROOM connection, zero, u32 bytes that were passed on and may be sent again
 *   both NET_END  connection, 0: nothing follows, or 1: it broke, and nothing is taken any
 *                 more; once. When both have sent it the connection's number is free again.
 *                 NET_ROOM of its bytes may still come, until the number is opened anew
 * Queries are numbered from 0 to PROTO_NET_QUERIES - 1, connections to PROTO_NET_CONNECTIONS -
 * 1, by the guest; names to PROTO_NET_NAMES - 1, by the host. From NET_OPEN to NET_OPENED the
 * guest sends nothing for a connection. Between the skill's end and EXIT the guest sends what
 * the skill had sent, and NET_END of each; CANCEL stops that. After EXIT nobody sends for any,
 * and what the host sent before it had that is passed over.
 *
 * The guest is hostile to the host: every length, order and count is checked by the receiver,
 * and a breach ends the execution.
 */
#ifndef SKILLVM_GUEST_PROTO_H
#define SKILLVM_GUEST_PROTO_H

#define PROTO_VERSION     2u
#define PROTO_PORT        1024u
#define PROTO_HEADER_SIZE 8u
/* RUN may hold a whole environment; the chunked frames stay at PROTO_CHUNK_MAX. */
#define PROTO_PAYLOAD_MAX (1024u * 1024u)
#define PROTO_CHUNK_MAX   (64u * 1024u)

enum proto_type {
    /* host to guest */
    PROTO_WAKE = 0x01, /* u64 realtime ns since the epoch, 64 bytes of entropy */
    PROTO_RUN = 0x02,  /* fields: see enum proto_field */
    PROTO_SKILL = 0x03,
    PROTO_INPUT = 0x04,
    PROTO_FILES_IN = 0x05,
    PROTO_CANCEL = 0x06, /* empty */
    PROTO_WARM = 0x07, /* dotted names of modules joined by "+", at most PROTO_WARM_MAX bytes */
    PROTO_PACKAGES = 0x18,
    PROTO_HOLD = 0x19, /* empty */
    PROTO_SESSION_IN = 0x10,
    PROTO_NET_ANSWER = 0x08,
    PROTO_NET_OPENED = 0x09,
    PROTO_NET_REFUSED = 0x0a,
    PROTO_NET_HOST_DATA = 0x0b,
    PROTO_NET_HOST_ROOM = 0x0c,
    PROTO_NET_HOST_END = 0x0d,

    /* guest to host */
    PROTO_READY = 0x81,   /* u32 PROTO_VERSION */
    PROTO_STARTED = 0x82, /* empty */
    PROTO_STDOUT = 0x83,
    PROTO_STDERR = 0x84,
    PROTO_EXIT = 0x85, /* PROTO_EXIT_SIZE bytes, see below */
    PROTO_OUTPUT = 0x86,
    PROTO_FILES = 0x87,
    PROTO_DONE = 0x88,   /* empty */
    PROTO_FAIL = 0x89,   /* UTF-8 text, at most 1024 bytes */
    PROTO_WARMED = 0x8a, /* empty */
    PROTO_SESSION = 0x90,
    PROTO_NET_ASK = 0x8b,
    PROTO_NET_OPEN = 0x8c,
    PROTO_NET_GUEST_DATA = 0x8d,
    PROTO_NET_GUEST_ROOM = 0x8e,
    PROTO_NET_GUEST_END = 0x8f,
};

enum proto_net_answer {
    PROTO_NET_GOOD = 0,
    PROTO_NET_NOBODY = 1, /* it may not be reached, or there is no such name */
    PROTO_NET_FAILED = 2, /* nobody knows now */
};

#define PROTO_NET_QUERIES     16u
#define PROTO_NET_NAMES       64u
#define PROTO_NET_NAME_MAX    253u
#define PROTO_NET_PORTS       8u
#define PROTO_NET_CONNECTIONS 32u
#define PROTO_NET_WINDOW      (64u * 1024u)
#define PROTO_NET_DATA_MAX    (16u * 1024u)
/* After its end what a skill sent has as long as its time lasts, but no less and no more: */
#define PROTO_NET_DRAIN_MIN_MS 1000u
#define PROTO_NET_DRAIN_MAX_MS 10000u

#define PROTO_WARM_MAX     1024u
#define PROTO_COMPILE_MS   20000u /* that a guest may work on packages that it is to hold */
#define PROTO_ENTROPY_SIZE 64u
#define PROTO_WAKE_SIZE    (8u + PROTO_ENTROPY_SIZE)

/*
 * RUN is a list of fields: u16 tag, u16 zero, u32 length, the bytes. Strings have no NUL.
 * A guest ignores a tag it does not know; a repeated tag that is not marked "repeats" is an
 * error.
 */
enum proto_field {
    PROTO_F_LANG = 1,          /* "python", "bash" or "node" */
    PROTO_F_MODE = 2,          /* u8, enum proto_mode */
    PROTO_F_ENTRY = 3,         /* path below the skill's root, or a dotted module name */
    PROTO_F_ARG = 4,           /* repeats: argv[1…] in order */
    PROTO_F_ENV = 5,           /* repeats: "NAME=value" of the caller's, already checked */
    PROTO_F_TIMEOUT_MS = 6,    /* u64: from STARTED; then SIGKILL and EXIT with TIMED_OUT */
    PROTO_F_MEMORY_BYTES = 7,  /* u64: memory.max of the skill's cgroup */
    PROTO_F_PIDS_MAX = 8,      /* u32 */
    PROTO_F_LOG_BYTES = 9,     /* u64: limit of stdout and stderr together; the rest dropped */
    PROTO_F_FILES_MAX = 10,    /* u32: most artifacts collected */
    PROTO_F_FILES_BYTES = 11,  /* u64: most bytes of artifacts collected */
    PROTO_F_OUTPUT_BYTES = 12, /* u64: largest output.json collected */
    PROTO_F_INSTRUCTIONS = 13, /* SKILL_INSTRUCTIONS: the body of SKILL.md */
    PROTO_F_SKILL_NAME = 14,   /* SKILL_NAME */
    PROTO_F_NETWORK = 15,      /* u8 1: the skill may have connections; absent: it has none */
    PROTO_F_PACKAGES = 18,     /* u8, 1: PACKAGES comes before SKILL */
    PROTO_F_SKILL_DISK = 19, /* u8, 1: the skill is a file system (EROFS) on the second disk */

    /* Of an execution in a session. */
    PROTO_F_SESSION_FILES = 16, /* u32: the most files and empty folders of it */
    PROTO_F_SESSION_BYTES = 17, /* u64: the most bytes of them; more than 0 */
};

enum proto_mode {
    PROTO_MODE_ENTRY = 0,  /* Skillbox style: cwd /sandbox, runs /sandbox/scripts/<entry> */
    PROTO_MODE_SCRIPT = 1, /* --script: cwd the skill's root, runs <entry> */
    PROTO_MODE_MODULE = 2, /* --module: cwd the skill's root, python -m <entry> */
};

/*
 * EXIT: u32 exit code (0 when a signal ended it), u32 signal (0 when it exited),
 * u32 flags (enum proto_exit_flag), u32 how often PIDS_MAX kept a process or thread from being
 * started (at most UINT32_MAX is said), u64 user CPU us, u64 system CPU us,
 * u64 peak memory bytes, u64 wall us from STARTED to its end.
 */
#define PROTO_EXIT_SIZE 48u

enum proto_exit_flag {
    PROTO_EXIT_TIMED_OUT = 1 << 0,         /* the deadline of TIMEOUT_MS passed */
    PROTO_EXIT_CANCELLED = 1 << 1,         /* CANCEL arrived */
    PROTO_EXIT_OUT_OF_MEMORY = 1 << 2,     /* the cgroup's OOM killer struck */
    PROTO_EXIT_LOGS_TRUNCATED = 1 << 3,    /* LOG_BYTES was reached */
    PROTO_EXIT_FILES_TRUNCATED = 1 << 4,   /* FILES_MAX or FILES_BYTES was reached */
    PROTO_EXIT_OUTPUT_TOO_LARGE = 1 << 5,  /* output.json was over OUTPUT_BYTES: not sent */
    PROTO_EXIT_SESSION_TOO_LARGE = 1 << 6, /* SESSION_FILES or SESSION_BYTES: not sent */
    PROTO_EXIT_WARM = 1 << 7,              /* an interpreter that had waited ran it */
    PROTO_EXIT_MEMORY_FULL = 1 << 8,       /* with TIMED_OUT: it read again what gave way */
};

#endif
