/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as held of what was removed while it was used. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/callers/uses.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define A "ten_a"
#define B "ten_b"

/* What is held for a tenant. */
static uint64_t held_of(struct held *held, const char *tenant)
{
    uint64_t bytes = 0;

    assert_int_equal(held_add(held, tenant, HTTP_HELD_BODY, 0, UINT64_MAX, &bytes), 0);
    return bytes;
}

struct world {
    struct held *held;
    struct uses *uses;
};

static struct world begin(void)
{
    struct world w = {.held = held_create(NULL, NULL)};

    assert_non_null(w.held);
    w.uses = uses_create(w.held);
    assert_non_null(w.uses);
    return w;
}

static void end(struct world *w)
{
    uses_destroy(w->uses);
    held_destroy(w->held);
}

/* A file of so many bytes, with a name that goes when it is removed. */
struct object {
    char path[32];
    int fd;
    ino_t inode;
};

static struct object make(off_t bytes)
{
    struct object o = {.path = "/tmp/skillvm-uses.XXXXXX"};
    struct stat st;

    o.fd = mkstemp(o.path);
    assert_true(o.fd >= 0);
    assert_int_equal(ftruncate(o.fd, bytes), 0);
    assert_int_equal(fstat(o.fd, &st), 0);
    o.inode = st.st_ino;
    return o;
}

static void remove_object(struct world *w, const struct object *o)
{
    assert_int_equal(unlink(o->path), 0);
    uses_note_removal(w->uses, o->inode);
}

static struct use *use(struct world *w, const char *tenant, const struct object *o)
{
    struct use *ret = NULL;

    assert_int_equal(uses_begin(w->uses, tenant, o->fd, "", &ret, NULL), 0);
    return ret;
}

static void it_counts_until_the_last_use_ends(void **unused)
{
    struct object one = make(100), other = make(1000);
    struct world w = begin();
    struct use *first = use(&w, A, &one), *second, *of_other = use(&w, A, &other);

    (void)unused;
    /* By its name, as a link is used. */
    assert_int_equal(uses_begin(w.uses, A, AT_FDCWD, one.path, &second, NULL), 0);
    assert_int_equal(held_of(w.held, A), 0);
    remove_object(&w, &one);
    uses_note_removal(w.uses, 0);
    assert_int_equal(held_of(w.held, A), 100);
    uses_end(first);
    assert_int_equal(held_of(w.held, A), 100);
    uses_end(second);
    assert_int_equal(held_of(w.held, A), 0);
    uses_end(of_other);
    uses_end(NULL);
    assert_int_equal(unlink(other.path), 0);
    close(one.fd);
    close(other.fd);
    end(&w);
}

static void it_counts_for_each_tenant(void **unused)
{
    struct object o = make(100);
    struct world w = begin();
    struct use *of_a = use(&w, A, &o), *of_b = use(&w, B, &o);

    (void)unused;
    remove_object(&w, &o);
    assert_int_equal(held_of(w.held, A), 100);
    assert_int_equal(held_of(w.held, B), 100);
    uses_end(of_a);
    assert_int_equal(held_of(w.held, A), 0);
    assert_int_equal(held_of(w.held, B), 100);
    uses_end(of_b);
    assert_int_equal(held_of(w.held, B), 0);
    close(o.fd);
    end(&w);
}

/* Between its opening and that, also where another execution has a link to it. */
static void what_was_removed_before_counts_at_once(void **unused)
{
    struct object o = make(100), linked = make(10);
    struct world w = begin();
    struct use *of_a, *of_b = use(&w, B, &linked);
    char link_path[40];

    (void)unused;
    remove_object(&w, &o);
    of_a = use(&w, A, &o);
    assert_int_equal(held_of(w.held, A), 100);
    uses_end(of_a);
    assert_int_equal(held_of(w.held, A), 0);
    snprintf(link_path, sizeof(link_path), "%s.link", linked.path);
    assert_int_equal(link(linked.path, link_path), 0);
    remove_object(&w, &linked);
    of_a = use(&w, A, &linked);
    assert_int_equal(held_of(w.held, A), 10);
    uses_end(of_a);
    uses_end(of_b);
    assert_int_equal(unlink(link_path), 0);
    close(o.fd);
    close(linked.fd);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_until_the_last_use_ends),
        cmocka_unit_test(it_counts_for_each_tenant),
        cmocka_unit_test(what_was_removed_before_counts_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
