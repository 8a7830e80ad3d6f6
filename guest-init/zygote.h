/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting interpreter: started before the snapshot as the skill's user, in its cgroup and
 * session, with its streams; told once what to run, it becomes the skill's process.
 * It must never be used for a run whose environment would have made a plain interpreter start
 * differently.
 *
 * On descriptor 3 the zygote first gets one byte with the descriptor of the page that
 * zygote/end.h describes, which it maps and closes. It writes one byte when it is warm. Then it
 * reads u32 length (little endian, of what follows) and NUL-terminated strings: "file" or
 * "module", working directory, target, number of arguments, the arguments, the environment
 * until the end. Or "warm" and names of modules: it imports them and begins again with the
 * byte; one that cannot ends.
 */
#ifndef SKILLVM_GUEST_ZYGOTE_H
#define SKILLVM_GUEST_ZYGOTE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "guest-init/run.h"
#include "guest-init/sandbox.h"
#include "guest-init/zygote/end.h"

struct zygote {
    enum run_lang lang;
    pid_t pid;              /* 0 when there is none, or it became the skill's process */
    int control;            /* owned */
    struct zygote_end *end; /* owned mapping, also once it is the skill's process, or NULL */
    bool warmed;            /* by zygote_warm */
};

#define ZYGOTE_NONE ((struct zygote){.pid = 0, .control = -1, .end = NULL})

/*
 * Starts the zygote of a language that has a folder in sb->config->zygote_dirs and waits until
 * it is warm, timeout_ms at most. 0 with *ret_zygote, or -errno with err set; no process is
 * left then.
 */
int zygote_start(const struct sandbox *sb, enum run_lang lang, int timeout_ms,
                 struct zygote *ret_zygote, struct err *err);
/*
 * Imports modules into a waiting zygote of Python's: dotted names joined by "+", len bytes of
 * the host's. 0 once all are there, timeout_ms at most; -EPROTO for what is no such list; or
 * -errno; with err set, and no zygote is left then.
 */
int zygote_warm(struct zygote *z, const char *names, size_t len, int timeout_ms,
                struct err *err);
/* True when a waiting zygote may serve this run. */
bool zygote_fits(const struct zygote *z, const struct run *run);
/*
 * Makes the zygote the skill's process. env is the whole environment. 0 and *ret_pid, the
 * zygote is then spent; or -errno with err set and the zygote ended.
 */
int zygote_run(struct zygote *z, const struct sandbox *sb, const struct run *run,
               const struct run_strings *env, pid_t *ret_pid, struct err *err);
/* True when the process that the zygote became stopped because it is at its end. */
bool zygote_is_over(const struct zygote *z, uint8_t *ret_status);
/* Ends and reaps a waiting zygote; no effect when there is none. */
void zygote_stop(struct zygote *z);

#endif
