/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/warmup.h"

#include "api/daemon/terms/limits.h"
#include "api/skill/tar.h"

#include <errno.h>
#include <string.h>

#define TIMEOUT_MS 30000u

/* What nearly every skill does: reads its input, prints, writes output.json and a file. */
static const char in_python[] = "import json, os, sys\n"
                                "data = json.loads(os.environ.get('SANDBOX_INPUT', '{}'))\n"
                                "files = os.environ['SANDBOX_FILES_DIR']\n"
                                "os.makedirs(files, exist_ok=True)\n"
                                "with open(os.path.join(files, 'warmup.txt'), 'w') as f:\n"
                                "    f.write('warm')\n"
                                "with open(os.environ['SANDBOX_OUTPUT'], 'w') as f:\n"
                                "    json.dump({'input': data}, f)\n"
                                "print('warm')\n"
                                "print('warm', file=sys.stderr)\n";

static const char in_bash[] = "read -r data\n"
                              "mkdir -p \"$SANDBOX_FILES_DIR\"\n"
                              "echo warm > \"$SANDBOX_FILES_DIR/warmup.txt\"\n"
                              "echo \"{\\\"input\\\": $data}\" > \"$SANDBOX_OUTPUT\"\n"
                              "echo warm\n"
                              "echo warm >&2\n";

static const struct {
    const char *lang, *entry, *script;
} kinds[WARMUP_KINDS] = {[WARMUP_PYTHON] = {"python", "main.py", in_python},
                         [WARMUP_BASH] = {"bash", "main.sh", in_bash}};

enum warmup_kind warmup_kind_of(const struct image_manifest *manifest)
{
    return manifest->known && manifest->python_minor == 0 ? WARMUP_BASH : WARMUP_PYTHON;
}

static int fill(enum warmup_kind kind, struct job *job)
{
    const struct job_orders orders = {.lang = kinds[kind].lang,
                                      .mode = PROTO_MODE_ENTRY,
                                      .entry = kinds[kind].entry,
                                      .instructions = "",
                                      .skill_name = "warmup"};
    static const char trailer[TAR_TRAILER];
    int r;

    job->timeout_ms = TIMEOUT_MS;
    job->memory_bytes = DEFAULT_MEMORY_BYTES;
    job->pids = LIMIT_PIDS;
    job->skill.memory = buf_init(8 * TAR_BLOCK);
    r = tar_put_file(&job->skill.memory, orders.entry, kinds[kind].script,
                     strlen(kinds[kind].script));
    if (r < 0)
        return r;
    r = buf_append(&job->skill.memory, trailer, sizeof(trailer));
    job->skill.len = job->skill.memory.len;
    return r < 0 ? r : job_encode(job, &orders);
}

int warmup_job(enum warmup_kind kind, struct job *ret, struct err *err)
{
    struct job job = job_init();
    int r = fill(kind, &job);

    if (r < 0) {
        job_finish(&job);
        return err_set_errno(err, -r, "cannot prepare the warm-up");
    }
    *ret = job;
    return 0;
}

int warmup_jobs(struct job ret[WARMUP_KINDS], struct err *err)
{
    for (unsigned i = 0; i < WARMUP_KINDS; i++) {
        int r = warmup_job((enum warmup_kind)i, &ret[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

int warmup_run(struct guest *guest, const struct job *job, struct err *err)
{
    static const struct guest_sink nobody;
    struct guest_report report;
    int r = guest_run(guest, job, &nobody, -1, &report, err);

    if (r < 0)
        return r;
    if (report.exit.code != 0 || report.exit.signal != 0)
        return err_set(err, EREMOTEIO, "the warm-up ended with code %u, signal %u",
                       report.exit.code, report.exit.signal);
    return 0;
}
