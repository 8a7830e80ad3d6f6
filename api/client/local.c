/* SPDX-License-Identifier: Apache-2.0 */
/* A skill on this machine as an archive that can be sent. */
#include "api/client/client.h"
#include "api/skill/archive.h"
#include "api/skill/pack.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/nearest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int pack(const char *path, int *ret_fd, struct skillvm_error *error)
{
    struct err err = {0};
    _cleanup_fd_ int fd = memfd_create("skill", MFD_CLOEXEC);
    int result;

    if (fd < 0)
        return client_fail(error, errno, "cannot make an anonymous file: %s", strerror(errno));
    result = pack_folder(path, &archive_limits_most, fd, &err);
    if (result < 0)
        return client_fail(error, result == -ENOENT ? EIO : -result, "%s", err.message);
    *ret_fd = fd_steal(&fd);
    return 0;
}

/* A path where nothing is may be misspelt: what lies there under nearly that name. */
static int nothing_there(const char *path, struct skillvm_error *error)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;
    struct nearest nearest = nearest_init(slash ? slash + 1 : path);
    char hint[NEAREST_HINT_SIZE];
    struct dirent **found = NULL;
    int n = scandir(folder ? folder : ".", &found, NULL, alphasort);

    for (int i = 0; i < n; i++)
        nearest_offer(&nearest, found[i]->d_name);
    (void)nearest_hint(&nearest, hint);
    for (int i = 0; i < n; i++)
        free(found[i]);
    free(found);
    return client_fail(error, ENOENT, "cannot open \"%s\": %s%s", path, strerror(ENOENT), hint);
}

int skillvm_open_skill(const char *path, int *ret_fd, struct skillvm_error *error)
{
    const uint64_t max = archive_limits_most.archive_bytes;
    struct stat st;
    int fd;

    if (stat(path, &st) < 0)
        return errno == ENOENT
                   ? nothing_there(path, error)
                   : client_fail(error, errno, "cannot open \"%s\": %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return pack(path, ret_fd, error);
    if (!S_ISREG(st.st_mode))
        return client_fail(error, EINVAL, "\"%s\" is neither a folder nor an archive", path);
    if ((uint64_t)st.st_size > max)
        return client_fail(error, EFBIG, "\"%s\" is over %llu MiB", path,
                           (unsigned long long)(max >> 20));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return client_fail(error, errno == ENOENT ? EIO : errno, "cannot open \"%s\": %s", path,
                           strerror(errno));
    *ret_fd = fd;
    return 0;
}
