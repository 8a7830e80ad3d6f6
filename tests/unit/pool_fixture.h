/* SPDX-License-Identifier: Apache-2.0 */
/* A pool and its snapshots by themselves, over the stand-in for the VMM. */
#ifndef SKILLVM_TESTS_UNIT_POOL_FIXTURE_H
#define SKILLVM_TESTS_UNIT_POOL_FIXTURE_H

#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/pool.h"

#include <stdbool.h>
#include <stddef.h>

struct fixture {
    char dir[64];
    char kernel[128];
    struct image_tables *images; /* python and data */
    int snapshots_fd;
    int tmp_fd;
    struct jail *jail;
    struct snapshots *snapshots;
    struct pool *pool;
    bool is_short; /* atomic */
};

/* Which of its runs a machine is at, and its process. */
struct who {
    char text[128];
    size_t len;
};

/* Nothing is due, and there is room for a few. */
#define ROOMY ((struct config_snapshots){.kept = 8, .kept_bytes = 1ull << 40})

#define WAIT_FOR(condition)                                                                    \
    do {                                                                                       \
        for (int wait_i = 0; wait_i < 6000 && !(condition); wait_i++)                          \
            usleep(10000);                                                                     \
        assert_true(condition);                                                                \
    } while (0)

/* For cmocka; *state is a struct fixture. */
int setup_pool(void **state);
int teardown_pool(void **state);

void write_file(const char *path, const char *text);
/* Makes what the digest's packages are; until then there are none of it. */
void write_packages(const struct fixture *f, const char *digest);
/* Snapshots in the fixture's folders; the second once the plain one is there. */
struct snapshots *create_snapshots(struct fixture *f, struct config_snapshots limits);
struct snapshots *start_snapshots(struct fixture *f, struct config_snapshots limits);
void start_pool(struct fixture *f);
struct pool_measure measure(struct fixture *f);
struct snapshots_measure measure_snapshots(const struct fixture *f);
/* Whether this is the plain one now. */
bool is_current(const struct fixture *f, const struct snapshot *snapshot);

struct machine_wish wish_for(const char *owner, const char *profile);
/* Takes one of the plain snapshot. */
struct machine *take_machine(struct fixture *f, const char *owner);
/* Run a job with this environment variable; as machine_run. */
int run_to(struct machine *m, const char *fake, const struct guest_sink *sink,
           struct machine_report *report);
int run_in(struct machine *m, const char *fake, struct who *who, struct machine_report *report);
/* Takes one, says who it is, and gives it back. */
struct machine_report visit_as(struct fixture *f, const struct machine_wish *wish,
                               const char *fake, struct who *who);
enum pool_kind visit(struct fixture *f, const char *owner, const char *fake, struct who *who);

#endif
