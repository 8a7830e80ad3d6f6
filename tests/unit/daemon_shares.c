/* SPDX-License-Identifier: Apache-2.0 */
/* What weight the machines of parties get, as files say that are none of cgroups. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/shares.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct machine {
    struct share share;
    int fd;
};

static struct machine machine_of_nobody(void)
{
    struct machine m = {.fd = memfd_create("cpu.weight", MFD_CLOEXEC)};

    assert_true(m.fd >= 0);
    return m;
}

/* What was written last, and nothing: 0. A later one is read alone. */
static unsigned written(struct machine *m)
{
    char text[64] = "";
    ssize_t n = pread(m->fd, text, sizeof(text) - 1, 0);

    assert_true(n >= 0);
    assert_int_equal(ftruncate(m->fd, 0), 0);
    assert_int_equal(lseek(m->fd, 0, SEEK_SET), 0);
    return (unsigned)strtoul(text, NULL, 10);
}

static void who_has_one_machine_pays_nothing(void **state)
{
    struct shares shares;
    struct machine a = machine_of_nobody(), b = machine_of_nobody();

    (void)state;
    shares_init(&shares);
    for (int i = 0; i < 3; i++) {
        shares_enter(&shares, &a.share, "a", a.fd);
        shares_enter(&shares, &b.share, "b", b.fd);
        /* Again: its machine is given to it without having waited. */
        shares_enter(&shares, &a.share, "a", a.fd);
        shares_leave(&shares, &a.share);
        shares_leave(&shares, &b.share);
    }
    assert_int_equal(written(&a), 0);
    assert_int_equal(written(&b), 0);
    shares_close(&shares);
    close(a.fd);
    close(b.fd);
}

static void a_party_has_its_part_for_all_its_machines(void **state)
{
    /* By the number of machines; a power of two and what is above it have the same. */
    static const unsigned parts[] = {0, 6400, 3200, 1600, 1600, 800, 800, 800, 800, 400};
    enum { N = sizeof(parts) / sizeof(parts[0]) - 1 };
    struct machine other = machine_of_nobody(), m[N];
    struct shares shares;

    (void)state;
    shares_init(&shares);
    shares_enter(&shares, &other.share, "other", other.fd);
    for (unsigned n = 1; n <= N; n++) {
        m[n - 1] = machine_of_nobody();
        shares_enter(&shares, &m[n - 1].share, "many", m[n - 1].fd);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(m[i].share.weight, parts[n]);
        /* The one that came is written to always, but for the first; the others at a step. */
        assert_int_equal(written(&m[n - 1]), n > 1 ? parts[n] : 0);
        for (unsigned i = 0; i + 1 < n; i++)
            assert_int_equal(written(&m[i]), parts[n] != parts[n - 1] ? parts[n] : 0);
    }
    for (unsigned n = N - 1; n > 0; n--) {
        shares_leave(&shares, &m[n].share);
        assert_int_equal(written(&m[n]), SHARE_WEIGHT);
        for (unsigned i = 0; i < n; i++)
            assert_int_equal(written(&m[i]), parts[n] != parts[n + 1] ? parts[n] : 0);
    }
    assert_int_equal(written(&other), 0);
    shares_close(&shares);
    for (unsigned i = 0; i < N; i++)
        close(m[i].fd);
    close(other.fd);
}

/* As many as a daemon can have: together they have no more than one party's, and each some. */
static void the_most_machines_have_no_more_than_one(void **state)
{
    static struct machine m[JAIL_CELLS];
    struct shares shares;
    unsigned all = 0;

    (void)state;
    shares_init(&shares);
    for (unsigned i = 0; i < JAIL_CELLS; i++)
        shares_enter(&shares, &m[i].share, "many", -1);
    for (unsigned i = 0; i < JAIL_CELLS; i++) {
        assert_true(m[i].share.weight > 0);
        all += m[i].share.weight;
    }
    assert_true(all <= SHARE_WEIGHT);
    shares_close(&shares);
}

static void who_changes_leaves_the_former(void **state)
{
    struct shares shares;
    struct machine a = machine_of_nobody(), b = machine_of_nobody();

    (void)state;
    shares_init(&shares);
    shares_enter(&shares, &a.share, "a", a.fd);
    shares_enter(&shares, &b.share, "a", b.fd);
    assert_int_equal(written(&a), SHARE_WEIGHT / 2);
    assert_int_equal(written(&b), SHARE_WEIGHT / 2);
    shares_enter(&shares, &b.share, "b", b.fd);
    assert_int_equal(written(&a), SHARE_WEIGHT);
    assert_int_equal(written(&b), SHARE_WEIGHT);
    shares_enter(&shares, &b.share, "", b.fd);
    shares_leave(&shares, &b.share);
    shares_leave(&shares, &a.share);
    assert_int_equal(written(&a), 0);
    assert_int_equal(written(&b), 0);
    shares_close(&shares);
    close(a.fd);
    close(b.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_one_machine_pays_nothing),
        cmocka_unit_test(a_party_has_its_part_for_all_its_machines),
        cmocka_unit_test(the_most_machines_have_no_more_than_one),
        cmocka_unit_test(who_changes_leaves_the_former),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
