/* SPDX-License-Identifier: Apache-2.0 */
#include "api/cli/soft_skills.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/cli/remote.h"
#include "api/cli/verbs.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

CLEANUP_WITH(cJSON *, cJSON_Delete)
CLEANUP_WITH(struct skillvm *, skillvm_close)

#define DISK       "softhost/disk.img"
#define LIST       "softhost/skills.json"
#define ASK_MS     3000u
#define STAMP_SIZE 96u

/* What a write to the disk changes. False where there is none. */
static bool stamp_disk(const struct cli *cli, char out[STAMP_SIZE])
{
    char path[PATH_MAX];
    struct stat st;

    if (stat(cli_join(cli->data_dir, DISK, path), &st) < 0)
        return false;
    (void)snprintf(out, STAMP_SIZE, "%ju %jd %jd.%09ld", (uintmax_t)st.st_ino,
                   (intmax_t)st.st_blocks, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    return true;
}

/* Whether the caller is whom the host's socket takes him for, as when the list is read again.
 */
static bool is_plain(const struct cli *cli)
{
    return !cli->tenant && !cli->server[0] && !cli->key[0];
}

static int take_body(void *ctx, const char *type, const void *data, size_t len)
{
    (void)type;
    return buf_append(ctx, data, len);
}

int soft_skills_ask(const struct cli *cli, struct buf *ret)
{
    _cleanup_(skillvm_close) struct skillvm *client = NULL;
    const struct skillvm_request request = {
        .path = "/v1/skills", .timeout_ms = ASK_MS, .on_body = take_body, .ctx = ret};
    int r = is_plain(cli) ? remote_open(cli, &client, NULL) : -ENOTSUP;

    return r < 0 ? r : skillvm_perform(client, &request, NULL, NULL);
}

void soft_skills_keep(const struct cli *cli, const struct buf *skills)
{
    _cleanup_fd_ int fd = -1;
    char path[PATH_MAX], stamp[STAMP_SIZE];

    (void)unlink(cli_join(cli->data_dir, LIST, path));
    if (skills->len == 0 || !stamp_disk(cli, stamp))
        return;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && (dprintf(fd, "%s\n", stamp) < 0 ||
                    fd_write_full(fd, skills->data, skills->len) < 0 || fsync(fd) < 0))
        (void)unlink(path);
}

/* What is kept for the disk as it is; NULL: nothing. */
static cJSON *read_kept(const struct cli *cli)
{
    static char text[SOFT_SKILLS_MAX + STAMP_SIZE + 1];
    char path[PATH_MAX], stamp[STAMP_SIZE];
    const char *end;

    if (!stamp_disk(cli, stamp) ||
        fd_read_text(cli_join(cli->data_dir, LIST, path), text, sizeof(text)) <= 0)
        return NULL;
    end = strchr(text, '\n');
    if (!end || (size_t)(end - text) != strlen(stamp) ||
        strncmp(text, stamp, strlen(stamp)) != 0)
        return NULL;
    return cJSON_Parse(end + 1);
}

bool soft_skills_lack(const struct cli *cli, const char *name, char hint[NEAREST_HINT_SIZE])
{
    _cleanup_(cJSON_Delete) cJSON *skills = is_plain(cli) ? read_kept(cli) : NULL;
    const cJSON *skill;

    if (!cJSON_IsArray(skills))
        return false;
    cJSON_ArrayForEach(skill, skills) {
        const char *other = verbs_text(skill, "name");

        if (!other || strcmp(other, name) == 0)
            return false;
    }
    remote_hint_skill(skills, name, hint);
    return true;
}
