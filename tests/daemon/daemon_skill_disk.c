/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Skills that go to their machine as a disk: which do, what the machine gets, and that nothing
 * of it is left. What a guest sees of one the end-to-end cases tell.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/daemon_harness.h"

#include "base/buf.h"
#include "base/crc32.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE 300000u

#define ECHO "\"env\":{\"FAKE\":\"echo\"}"

/* A script of so many bytes, each line of it another. The caller frees it. */
static char *make_script(size_t len)
{
    struct buf text = buf_init(len + 64);

    for (unsigned i = 0; text.len < len; i++)
        assert_int_equal(buf_printf(&text, "print(%u)\n", i * 2654435761u), 0);
    assert_non_null(buf_cstr(&text));
    return (char *)text.data;
}

static void push(const struct harness *h, const char *name, size_t len)
{
    char *script = make_script(len);

    assert_int_equal(harness_push(h, name, "1", script), 201);
    free(script);
}

static struct answer run(const struct harness *h, const char *name)
{
    char request[128];

    snprintf(request, sizeof(request), "{\"skill\":\"%s\"," ECHO "}", name);
    return harness_run(h, request);
}

/* The same archive with the request, which is not registered. */
static struct answer run_inline(const struct harness *h, const char *name, size_t len)
{
    static const char before[] =
        "--XX\r\nContent-Disposition: form-data; name=\"request\"\r\n\r\n"
        "{" ECHO "}\r\n--XX\r\nContent-Disposition: form-data; "
        "name=\"skill_archive\"; filename=\"a\"\r\n\r\n";
    static const char after[] = "\r\n--XX--\r\n";
    char *script = make_script(len), *tar;
    struct buf body = buf_init(4u << 20);
    struct answer a;
    size_t tar_len;

    tar = harness_skill(name, "1", script, &tar_len);
    (void)buf_append(&body, before, strlen(before));
    (void)buf_append(&body, tar, tar_len);
    assert_int_equal(buf_append(&body, after, strlen(after)), 0);
    a = harness_request(h, "POST", "/v1/executions",
                        "Content-Type: multipart/form-data; boundary=XX\r\n", body.data,
                        body.len);
    buf_finish(&body);
    free(script);
    free(tar);
    return a;
}

struct disk {
    unsigned long long head, tar, crc;
};

static struct disk disk_of(const struct answer *a)
{
    const char *disk = strstr(a->body, "\"disk\"");
    struct disk ret;

    assert_true(answer_has(a, "\"status\":\"success\""));
    assert_non_null(disk);
    assert_int_equal(
        sscanf(disk, "\"disk\": [%llu, %llu, %llu]", &ret.head, &ret.tar, &ret.crc), 3);
    assert_true(ret.head >= 2048 && ret.head % 512 == 0);
    assert_int_equal((long)answer_number(a, "skill_bytes"), 0);
    return ret;
}

/* The canonical tar, as the daemon stored it. */
static void check_stored(const struct harness *h, const struct answer *a, struct disk disk)
{
    char path[512], digest[65], tar[2 * LARGE];
    ssize_t len;

    answer_text(a, "digest", digest, sizeof(digest));
    snprintf(path, sizeof(path), "%s/objects/%s", h->data, digest);
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    len = fd_pread_full(fd, tar, sizeof(tar), 0);
    assert_int_equal(disk.tar, len);
    assert_int_equal(disk.crc, crc32_update(0, tar, (size_t)len));
}

/* Waits until no machine has anything of the daemon's any more: they end behind the answers. */
static void wait_ended(const struct harness *h)
{
    harness_wait_metrics(h, "\nskillvm_executions_running 0\n", true);
    harness_wait_metrics(h, "\nskillvm_machines_behind 0\n", true);
}

/* On machines that are new, and that were reset since; also one that nobody registered. */
static void a_large_skill_is_a_disk(void **state)
{
    struct answer a = run_inline(*state, "large", LARGE);
    struct disk first = disk_of(&a), disk;
    unsigned fds;

    answer_finish(&a);
    wait_ended(*state);
    fds = harness_count_fds(*state);
    push(*state, "large", LARGE);
    for (unsigned turn = 0; turn < 6; turn++) {
        a = turn % 2 ? run_inline(*state, "large", LARGE) : run(*state, "large");
        disk = disk_of(&a);
        check_stored(*state, &a, disk);
        assert_int_equal(disk.head, first.head);
        assert_int_equal(disk.crc, first.crc);
        assert_non_null(strstr(a.body, "\"19."));
        answer_finish(&a);
    }
    wait_ended(*state);
    harness_until(harness_count_fds(*state) <= fds);
}

static void a_small_skill_is_sent(void **state)
{
    struct answer a;

    push(*state, "small", 1000);
    for (unsigned turn = 0; turn < 2; turn++) {
        a = turn ? run_inline(*state, "small", 1000) : run(*state, "small");
        assert_true(answer_has(&a, "\"status\":\"success\""));
        assert_int_equal(answer_count(&a, "disk"), 0);
        assert_null(strstr(a.body, "\"19."));
        assert_true(answer_number(&a, "skill_bytes") > 1000);
        answer_finish(&a);
    }
}

/* One execution's disk is not the next one's. */
static void each_has_its_own(void **state)
{
    unsigned long long crcs[2];

    push(*state, "first", LARGE);
    push(*state, "second", LARGE + 20000);
    for (unsigned turn = 0; turn < 4; turn++) {
        struct answer a = run(*state, turn % 2 ? "second" : "first");
        unsigned long long head, tar, crc;
        const char *disk = strstr(a.body, "\"disk\"");

        assert_non_null(disk);
        assert_int_equal(sscanf(disk, "\"disk\": [%llu, %llu, %llu]", &head, &tar, &crc), 3);
        if (turn >= 2)
            assert_int_equal(crc, crcs[turn % 2]);
        crcs[turn % 2] = crc;
        answer_finish(&a);
    }
    assert_int_not_equal(crcs[0], crcs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_skill_is_a_disk),
        cmocka_unit_test(a_small_skill_is_sent),
        cmocka_unit_test(each_has_its_own),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
