/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a script's parser: a microVM runs api/tools/parser_probe.py beside the skill
 * and gives a description back. It is no execution: it has no id, no row and no artifacts, and
 * of what the guest says nothing is kept but a description that parser_read() takes.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_TOOL_PROBE_H
#define SKILLVM_API_DAEMON_ENGINE_TOOL_PROBE_H

#include "api/daemon/machine/pool.h"
#include "api/daemon/store/store.h"
#include "base/buf.h"
#include "base/err.h"
#include "guest-init/proto.h"

#include <stdbool.h>
#include <stdint.h>

/* Borrowed. */
struct tool_probe_env {
    struct pool *pool;
    struct image_tables *images;
    struct store *store;
    struct objects *objects;
    uint64_t grace_ms;
    bool scope_tenant; /* no two tenants begin from one snapshot */
};

struct tool_script {
    const char *digest;   /* of the skill */
    const char *packages; /* the digest of its packages; NULL: none */
    const char *path;     /* of the script in it */
    enum proto_mode mode;
    const char *image; /* "": the usual one */
};

/* How long a script may take until it asks for its arguments. */
uint64_t tool_probe_timeout_ms(const struct tool_probe_env *env);

/*
 * Says whether looking may find something: a Python file that has the name of a parser in it.
 * skill_fd is the canonical tar. 0; -ENOENT; -errno.
 */
int tool_probe_promises(int skill_fd, const char *path, bool *ret, struct err *err);

/*
 * Looks, for a tenant. *ret_cpu_us is what the machine and its reader took, 0 without one, in
 * any case. 0 with the description appended to ret (PARSER_BYTES_MAX is enough); -ENODATA where
 * the script has none; -ETIME where it took too long; -ECANCELED once cancel_fd is readable;
 * -EAGAIN or -ENOBUFS where an object cannot be had now, as of objects_get; else a failure of
 * ours or of the machine.
 */
int tool_probe_run(const struct tool_probe_env *env, const char *tenant,
                   const struct tool_script *script, int cancel_fd, uint64_t *ret_cpu_us,
                   struct buf *ret, struct err *err);

#endif
