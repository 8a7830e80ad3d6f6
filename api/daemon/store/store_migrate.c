/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Until schema 3 the files of an execution were artifacts/ID/files.tar.gz. Each becomes an
 * object: linked into the store and fsynced, then named by its row, then unlinked in its old
 * place. A daemon that dies on the way finds it in the old place and begins again; an object
 * that was linked and not named is swept and linked anew.
 */
#include "api/daemon/store/store.h"

#include "api/daemon/ids.h"
#include "api/daemon/registry/registry_retention.h"
#include "api/daemon/store/objects.h"
#include "api/skill/sha256.h"
#include "base/fd.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define FILE_NAME "files.tar.gz"

void store_forget_artifacts(struct store *store, const char *id)
{
    _cleanup_fd_ int dir = -1;

    if (store->artifacts_fd < 0)
        return;
    dir = openat(store->artifacts_fd, id, DIR_FLAGS | O_NOFOLLOW);
    if (dir < 0)
        return;
    (void)unlinkat(dir, FILE_NAME, 0);
    (void)unlinkat(store->artifacts_fd, id, AT_REMOVEDIR);
}

/* 0; -ENOENT when the execution is not known or left nothing; -errno. */
static int adopt(struct store *store, struct registry *registry, const char *id,
                 struct err *err)
{
    _cleanup_fd_ int dir = openat(store->artifacts_fd, id, DIR_FLAGS | O_NOFOLLOW);
    _cleanup_fd_ int fd = -1;
    char digest[SHA256_HEX_SIZE];
    struct stat st;
    bool new_object;
    int r;

    if (dir >= 0)
        fd = openat(dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : err_set_errno(err, errno, "cannot open its files");
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, errno, "cannot read its files");
    r = sha256_of_fd(fd, digest);
    if (r < 0)
        return err_set_errno(err, -r, "cannot read its files");
    r = objects_put_fd(store->objects_fd, store->tmp_fd, fd, digest, &new_object, err);
    if (r == 0)
        r = registry_execution_set_artifact(registry, id, digest, (uint64_t)st.st_size, err);
    return r;
}

static int adopt_all(struct store *store, struct registry *registry, struct err *err)
{
    DIR *dir = fd_opendir(store->artifacts_fd);
    struct dirent *entry;

    if (!dir)
        return err_set_errno(err, errno, "cannot read the folder of artifacts");
    while ((entry = readdir(dir))) {
        struct err one = {0};
        int r;

        if (!ids_valid(ID_EXECUTION, entry->d_name))
            continue;
        r = adopt(store, registry, entry->d_name, &one);
        if (r < 0 && r != -ENOENT)
            log_error("store", "execution=%s artifacts=\"%s\"", entry->d_name, one.message);
        else
            store_forget_artifacts(store, entry->d_name);
    }
    (void)closedir(dir);
    /* Fails while something is left in it. */
    if (unlinkat(store->dir_fd, "artifacts", AT_REMOVEDIR) == 0)
        log_info("store", "the files of executions are objects now");
    return 0;
}

/* Skills of before schema 3 have no sizes in their rows. */
static int measure_skills(struct store *store, struct registry *registry, struct err *err)
{
    DIR *dir = fd_opendir(store->objects_fd);
    struct dirent *entry;
    struct stat st;
    int r = 0;

    if (!dir)
        return err_set_errno(err, errno, "cannot read the folder of objects");
    while (r == 0 && (entry = readdir(dir))) {
        if (objects_is_digest(entry->d_name) &&
            fstatat(store->objects_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            r = registry_skill_set_bytes(registry, entry->d_name, (uint64_t)st.st_size, err);
    }
    (void)closedir(dir);
    return r;
}

int store_migrate(struct store *store, struct registry *registry, struct err *err)
{
    struct err full = {0};
    int r;

    if (store->artifacts_fd < 0)
        return 0;
    r = adopt_all(store, registry, err);
    /* A full disk is no reason not to start. */
    if (r == 0 && measure_skills(store, registry, &full) < 0)
        log_error("store", "reason=\"%s\"", full.message);
    return r;
}
