/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every limit and default of the daemon in one place. A number here is a promise of the API.
 */
#ifndef SKILLVM_API_DAEMON_TERMS_LIMITS_H
#define SKILLVM_API_DAEMON_TERMS_LIMITS_H

#define LIMIT_MIB (1024ull * 1024ull)

#define LIMIT_INPUT_BYTES       (16 * LIMIT_MIB)
#define LIMIT_REQUEST_BYTES     (LIMIT_INPUT_BYTES + LIMIT_MIB) /* input and all around it */
#define LIMIT_ENV_BYTES         (64u * 1024u)
#define LIMIT_ENV_COUNT         1024u
#define LIMIT_ARGS_BYTES        (64u * 1024u)
#define LIMIT_ARGS_COUNT        4096u
#define LIMIT_NAME_BYTES        256u
#define LIMIT_VERSION_BYTES     71u /* "sha256:" and a digest */
#define LIMIT_KEY_BYTES         255u
#define LIMIT_RETRIES           5u
#define LIMIT_ENTRY_BYTES       1024u
#define LIMIT_INSTRUCTIONS      (100u * 1024u) /* one environment string may not pass 128 KiB */
#define LIMIT_TIMEOUT_MS        600000u
#define DEFAULT_TIMEOUT_MS      120000u
#define LIMIT_MEMORY_MIN        (32 * LIMIT_MIB)
#define LIMIT_MEMORY_MAX        (1024 * LIMIT_MIB)
#define DEFAULT_MEMORY_BYTES    (256 * LIMIT_MIB)
#define LIMIT_PIDS              128u
#define LIMIT_ANSWERS_BYTES     (64 * LIMIT_MIB) /* of a tenant's, large and not read yet */
#define LIMIT_LOG_BYTES         LIMIT_MIB
#define LIMIT_LOG_PARTS         65536u /* of a log, by turns of one stream and the other */
#define LIMIT_OUTPUT_BYTES      (4 * LIMIT_MIB)
#define LIMIT_FILE_NAME_BYTES   255u              /* of an uploaded one */
#define LIMIT_TYPE_BYTES        100u              /* of its media type */
#define LIMIT_STORED_FILES      10000u            /* of a tenant: an empty one takes room too */
#define LIMIT_INPUT_FILES       10000u            /* of an execution */
#define LIMIT_FILES_LEFT        16u               /* of them that executions left */
#define LIMIT_INFILE_BYTES      (100 * LIMIT_MIB) /* of one, and of an execution's together */
#define LIMIT_AUDIT_ROWS        1000000u          /* kept */
#define LIMIT_AUDIT_TENANT_ROWS 10000u            /* of them of one tenant */
#define LIMIT_AUDIT_TOLD        10000u            /* at once, of what no servers have (more) */
#define LIMIT_AUDIT_REFUSALS_NS (60ull * 1000000000ull)
#define LIMIT_TENANT_NAME_BYTES 64u
#define LIMIT_ADMIN_BYTES       (16u * 1024u) /* of a request to /v1/admin */
#define LIMIT_FILES             10000u
#define LIMIT_FOLDERS           10000u          /* that these are in */
#define LIMIT_NAMES_BYTES       (4 * LIMIT_MIB) /* of both, between slashes */
#define LIMIT_LIST_BYTES        LIMIT_MIB       /* of the names in files_list */
#define LIMIT_FILES_BYTES       (100 * LIMIT_MIB)
/*
 * A tar around the files: header, pax header, the record of a path of 4095 bytes and padding of
 * each, and the end.
 */
#define LIMIT_FILES_STREAM (LIMIT_FILES_BYTES + LIMIT_FILES * 6144ull + LIMIT_MIB)

#define LIMIT_SESSIONS         1000u /* of a tenant */
#define LIMIT_SESSION_ID_BYTES 128u
#define LIMIT_SESSION_FILES    10000u /* of one, with folders that are empty */
#define LIMIT_SESSION_BYTES    (100 * LIMIT_MIB)
#define LIMIT_SESSION_STREAM   (LIMIT_SESSION_BYTES + LIMIT_SESSION_FILES * 6144ull + LIMIT_MIB)

#define LIMIT_TOOLS        2000u     /* of a tenant: skills and scripts after these are none */
#define LIMIT_TOOL_SCRIPTS 64u       /* of one skill */
#define LIMIT_ARGUMENTS    LIMIT_MIB /* of a tool that become a command line, as JSON */

#define GUEST_MEMORY_MIB 1024u

#endif
