/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/chaos_log.h"

#include "tests/daemon/chaos_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE 4096

static int compare_ids(const void *one, const void *other)
{
    return strcmp(one, other);
}

char (*chaos_log_runs(const char *path, size_t *ret_n))[38]
{
    FILE *f = fopen(path, "re");
    static char runs[2 * CHAOS_SENT_MAX][38];
    char line[LINE_SIZE];
    size_t n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        const char *id = strstr(line, "engine execution=exec_");

        if (!id || !(strstr(id, " skill=") || strstr(id, "while it ran")))
            continue;
        assert_true(n < 2 * CHAOS_SENT_MAX);
        snprintf(runs[n++], sizeof(runs[0]), "%.37s", id + strlen("engine execution="));
    }
    assert_int_equal(fclose(f), 0);
    qsort(runs, n, sizeof(runs[0]), compare_ids);
    *ret_n = n;
    return runs;
}

bool chaos_log_has_run(const char (*runs)[38], size_t n, const char *id)
{
    return bsearch(id, runs, n, sizeof(runs[0]), compare_ids) != NULL;
}

bool chaos_log_says(const char *path, const char *text)
{
    FILE *f = fopen(path, "re");
    char line[LINE_SIZE];
    bool has = false;

    assert_non_null(f);
    while (!has && fgets(line, sizeof(line), f))
        has = strstr(line, text) != NULL;
    assert_int_equal(fclose(f), 0);
    return has;
}
