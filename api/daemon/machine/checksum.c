/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/checksum.h"

#include "base/fd.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define IMAGE_SUFFIX ".erofs"
#define DIGEST_LEN   (SHA256_HEX_SIZE - 1)
/* sha256sum has a space and a mark between the two: a space or, of a binary file, a star. */
#define NAME_AT (DIGEST_LEN + 2)

static void write_path(const char *path, char ret[PATH_MAX])
{
    const size_t n = strlen(path), suffix = strlen(IMAGE_SUFFIX);
    const bool is_image = n > suffix && strcmp(path + n - suffix, IMAGE_SUFFIX) == 0;

    (void)snprintf(ret, PATH_MAX, "%.*s.sha256", (int)(is_image ? n - suffix : n), path);
}

/* The name that the line is of, or NULL: it is none. */
static const char *parse(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    return sha256_leads(line) && line[DIGEST_LEN] == ' ' && line[NAME_AT - 1] && line[NAME_AT]
               ? line + NAME_AT
               : NULL;
}

int checksum_read(const char *path, const char *what, char ret_hex[SHA256_HEX_SIZE],
                  struct err *err)
{
    char sum[PATH_MAX], line[NAME_AT + NAME_MAX + 2];
    const char *name = basename(path), *of;
    ssize_t n;

    write_path(path, sum);
    n = fd_read_text(sum, line, sizeof(line));
    if (n == -ENOENT)
        return err_set(err, EBADMSG,
                       "the %s %s has no checksum (%s): build or install it again", what, path,
                       sum);
    if (n < 0)
        return err_set_errno(err, (int)-n, "cannot read the checksum %s", sum);
    of = parse(line);
    if (!of)
        return err_set(err, EBADMSG,
                       "%s is no line of sha256sum: build or install the %s again", sum, what);
    if (strcmp(of, name) != 0)
        return err_set(err, EBADMSG, "%s is the checksum of \"%.100s\", and not of the %s %s",
                       sum, of, what, path);
    (void)snprintf(ret_hex, SHA256_HEX_SIZE, "%.64s", line);
    return 0;
}

int checksum_check(const char *path, const char *what, const char hex[SHA256_HEX_SIZE],
                   struct err *err)
{
    char wanted[SHA256_HEX_SIZE], sum[PATH_MAX];
    int r = checksum_read(path, what, wanted, err);

    if (r < 0)
        return r;
    write_path(path, sum);
    if (strcmp(wanted, hex) != 0)
        return err_set(err, EBADMSG,
                       "the %s %s is not what was built: its SHA-256 begins with %.12s, and "
                       "that in %s with %.12s; build or install it again",
                       what, path, hex, sum, wanted);
    return 0;
}
