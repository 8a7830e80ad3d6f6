/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers what a finished skill left: output.json and the other files of /sandbox/out. Files
 * below SANDBOX_FILES_DIR are named relative to it, the others relative to /sandbox/out; where
 * both have a name, the former keeps it. All of it was made by the skill: nothing here may
 * follow its links or block on its files.
 */
#ifndef SKILLVM_GUEST_COLLECT_H
#define SKILLVM_GUEST_COLLECT_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-init/frame.h"
#include "guest-init/run.h"
#include "guest-init/tar_write.h"

struct collect {
    int files_dir; /* owned: SANDBOX_FILES_DIR, or -1 when the skill left none */
    int output;    /* owned: output.json, or -1 when there is none to send */
    uint64_t output_size;
    bool output_too_large;
    struct tar_list files;
    struct tar_list session; /* truncated: it is over its limits, and not sent */
    bool has_session;        /* it was looked at */
};

/*
 * Looks at what is in out_dir, borrowed until collect_finish, within the run's limits. 0 or
 * -ENOMEM; collect_finish it either way.
 */
int collect_open(int out_dir, const struct run *run, struct collect *ret_collect);
/* The same of a session, whose empty folders count too. */
int collect_open_session(int session_dir, const struct run *run, struct collect *c);
void collect_finish(struct collect *c);
#define _cleanup_collect_ __attribute__((cleanup(collect_finish)))
/* Sends OUTPUT and FILES with the empty frames that end them. 0 or -errno. */
int collect_send(struct collect *c, struct frame_writer *w);
/* The same for SESSION, which is empty where there is no session to send. */
int collect_send_session(struct collect *c, struct frame_writer *w);

#endif
