/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_built.h"

#include "api/skill/sha256.h"
#include "base/fd.h"
#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
    assert_int_equal(close(fd), 0);
}

void fake_built(const char *folder, const char *name, const char *content)
{
    char hex[SHA256_HEX_SIZE], line[512], file[256];

    assert_int_equal(sha256_of(content, strlen(content), hex), 0);
    (void)snprintf(line, sizeof(line), "%s  %.200s\n", hex, name);
    (void)snprintf(file, sizeof(file), "%.*s.sha256", (int)strcspn(name, "."), name);
    write_text(folder, file, line);
    write_text(folder, name, content);
}
