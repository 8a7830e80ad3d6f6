/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archives that are taken or refused as skills. Include it after cmocka.h, in one .c of a test
 * program.
 */
#ifndef SKILLVM_TESTS_UNIT_TAKE_ARCHIVE_H
#define SKILLVM_TESTS_UNIT_TAKE_ARCHIVE_H

#include "tests/unit/make_archive.h"

#include "api/skill/archive.h"

#include <string.h>
#include <unistd.h>

#define SKILL_MD "---\nname: trial\ndescription: d\n---\nbody\n"

static struct skill_archive take(enum kind kind, const struct member *members, int tar_fd)
{
    int fd = make_archive(kind, members);
    struct skill_archive archive;
    struct err err = {0};

    if (skill_archive_ingest(fd, &archive_limits_default, NULL, tar_fd, &archive, &err))
        fail_msg("%s", err.message);
    close(fd);
    return archive;
}

static void refuse_with(const struct archive_limits *limits, enum kind kind,
                        const struct member *members, int code, const char *reason)
{
    int fd = make_archive(kind, members);
    struct skill_archive archive;
    struct err err = {0};

    assert_int_equal(skill_archive_ingest(fd, limits, NULL, -1, &archive, &err), code);
    if (!strstr(err.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
    close(fd);
}

static void refuse(enum kind kind, const struct member *members, int code, const char *reason)
{
    refuse_with(&archive_limits_default, kind, members, code, reason);
}

#endif
