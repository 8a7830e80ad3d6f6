/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place where the skill runs: directories, size-limited writable space, cgroup, standard
 * streams. Made once before the snapshot is taken, so that an execution only sets its limits.
 * It must never leave a place the skill can write to without a limit.
 */
#ifndef SKILLVM_GUEST_SANDBOX_H
#define SKILLVM_GUEST_SANDBOX_H

#include <stdbool.h>

#include "base/err.h"
#include "guest-init/cgroup.h"
#include "guest-init/run.h"

#define SANDBOX_PATH_MAX 256

struct sandbox_config {
    const char *root;   /* "" in the guest; tests put everything below a directory */
    const char *python; /* the interpreter */
    const char *bash;
    const char *node;
    /* What a waiting interpreter is started with, or NULL for none: the folder of
     * sitecustomize.py or of node.cjs, and of native code for it. */
    const char *zygote_dirs[RUN_LANGS];
    uint16_t dns_port; /* where the resolver of a skill with a network listens */
    bool isolated;     /* mounts, cgroup and user 65534; false only in unprivileged tests */
};

struct sandbox {
    const struct sandbox_config *config; /* borrowed */
    struct cgroup cgroup;
    int packages_dir; /* descriptors are owned; -1 when not open */
    int skill_dir;
    int in_dir;
    int out_dir;
    int session_dir;         /* once it was added */
    int input_write;         /* /sandbox/input.json */
    int input_read;          /* the skill's standard input, at offset 0 */
    int out_read, out_write; /* its standard output and error: pipes, read ends non-blocking */
    int err_read, err_write;
};

/* Makes everything. 0, or -errno with err set; sandbox_close it either way. */
int sandbox_open(struct sandbox *sb, const struct sandbox_config *config, struct err *err);
void sandbox_close(struct sandbox *sb);
/*
 * Makes and opens the folder of a session, which no other run finds. 0, or -errno with err set.
 */
int sandbox_add_session(struct sandbox *sb, struct err *err);
/*
 * Has the skill's folder show the file system on the machine's second disk, read-only. 0, or
 * -errno with err set.
 */
int sandbox_mount_skill(const struct sandbox *sb, struct err *err);
/* What this thread makes from now on belongs to the skill, or to root again. */
void sandbox_make_for_skill(const struct sandbox *sb, bool for_skill);
/*
 * Applies the limits of a run to the cgroup and to the writable space, beside what is in it. 0,
 * or -errno with err set.
 */
int sandbox_limit(struct sandbox *sb, const struct run *run, struct err *err);
/* The absolute path of a file of the sandbox as the skill sees it. ret_path: SANDBOX_PATH_MAX.
 */
void sandbox_path(const struct sandbox *sb, const char *path, char *ret_path);
/* Closes the skill's ends of the streams once it has its own. */
void sandbox_close_skill_ends(struct sandbox *sb);

#endif
