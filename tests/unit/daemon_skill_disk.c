/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs have a disk, and what becomes of one whose head cannot be written. */
#include "tests/unit/cmocka_all.h"

#include "api/daemon/machine/skill_disk.h"
#include "base/fd.h"
#include "vmm/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char path[] = "main.py";
static struct archive_entry_info entries[] = {
    {.path = path, .type = ARCHIVE_ENTRY_FILE, .size = 1000, .offset = 512}};
static const struct skill_archive archive = {.entries = entries, .n_entries = 1};

static struct job make_job(uint64_t bytes)
{
    struct job job = job_init();

    job.skill.fd = memfd_create("skill", MFD_CLOEXEC);
    job.skill.len = bytes;
    return job;
}

/* What may be written: ctx; as much as there is for NULL. */
static int grow(void *ctx, uint64_t bytes, struct err *err)
{
    const uint64_t *max = ctx;

    return max && bytes > *max ? err_set(err, EDQUOT, "no room") : 0;
}

static void the_size_decides(void **unused)
{
    static const struct {
        uint64_t bytes;
        bool pays;
    } cases[] = {
        {0, false},
        {2048, false},
        {1u << 20, true},
        {400u << 20, true},
        {VMM_DISK_BYTES_MAX - SKILL_DISK_HEAD_MAX, true},
        {VMM_DISK_BYTES_MAX - SKILL_DISK_HEAD_MAX + 512, false},
        {UINT64_MAX, false},
    };
    (void)unused;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_job_ struct job job = make_job(cases[i].bytes);

        assert_int_equal(skill_disk_pays(&job), cases[i].pays);
        /* What is in memory is not in a file. */
        fd_close(&job.skill.fd);
        assert_false(skill_disk_pays(&job));
    }
}

static void a_head_is_the_jobs(void **unused)
{
    _cleanup_job_ struct job job = make_job(1u << 20);
    struct archive_spool spool = {memfd_create("head", MFD_CLOEXEC), grow, NULL};
    struct err err = {0};
    (void)unused;

    assert_int_equal(skill_disk_make(&job, &archive, &spool, &err), 0);
    assert_int_equal(spool.fd, -1);
    assert_int_equal(lseek(job.disk.fd, 0, SEEK_END), job.disk.len);
    assert_true(job.disk.len > 0 && job.disk.len % 512 == 0);
    /* A machine is given it, and may not write what is the tenant's. */
    assert_int_equal(fcntl(job.disk.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
}

static void a_full_disk_leaves_the_job_alone(void **unused)
{
    _cleanup_job_ struct job job = make_job(1u << 20);
    struct archive_spool spool = {open("/dev/full", O_WRONLY | O_CLOEXEC), grow, NULL};
    struct err err = {0};
    (void)unused;

    assert_int_equal(skill_disk_make(&job, &archive, &spool, &err), -ENOSPC);
    assert_non_null(strstr(err.message, "No space left"));
    assert_true(spool.fd >= 0 && job.disk.fd == -1 && job.disk.len == 0);
    fd_close(&spool.fd);
}

static void without_room_nothing_is_written(void **unused)
{
    _cleanup_job_ struct job job = make_job(1u << 20);
    _cleanup_fd_ int fd = memfd_create("head", MFD_CLOEXEC);
    uint64_t max = 511;
    struct archive_spool spool = {fd, grow, &max};
    struct err err = {0};
    (void)unused;

    assert_int_equal(skill_disk_make(&job, &archive, &spool, &err), -EDQUOT);
    assert_true(spool.fd == fd && job.disk.fd == -1 && job.disk.len == 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

/* The stored tar is shorter than its headers say. */
static void a_damaged_tar_leaves_the_job_alone(void **unused)
{
    _cleanup_job_ struct job job = make_job(1024);
    _cleanup_fd_ int fd = memfd_create("head", MFD_CLOEXEC);
    struct archive_spool spool = {fd, grow, NULL};
    struct err err = {0};
    (void)unused;

    assert_int_equal(skill_disk_make(&job, &archive, &spool, &err), -EINVAL);
    assert_true(err.message[0] && spool.fd == fd && job.disk.fd == -1 && job.disk.len == 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_decides),
        cmocka_unit_test(a_head_is_the_jobs),
        cmocka_unit_test(a_full_disk_leaves_the_job_alone),
        cmocka_unit_test(without_room_nothing_is_written),
        cmocka_unit_test(a_damaged_tar_leaves_the_job_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
