/* SPDX-License-Identifier: Apache-2.0 */
/* `skillvm image show --spdx`, by the script that the packages of skillvm are described with.
 */
#include "api/cli/image_store.h"

#include "base/process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *assign(char out[96], const char *name, const char *value)
{
    (void)snprintf(out, 96, "%s=%.80s", name, value);
    return out;
}

int image_write_spdx(const struct cli *cli, const struct image_stored *image, const char *hex,
                     struct err *err)
{
    char script[PATH_MAX], list[PATH_MAX];
    char version[96], space[96], created[96], time_text[32] = "";
    struct stat st;
    struct tm tm;
    pid_t pid;

    (void)cli_join(cli->share_dir, "images/spdx.awk", script);
    (void)image_path(image->folder, image->name, ".packages", list);
    if (access(script, R_OK) < 0)
        return err_set_errno(err, errno, "%s", script);
    if (stat(list, &st) < 0 || !gmtime_r(&st.st_mtime, &tm))
        return err_set_errno(err, errno, "%s", list);
    (void)strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", &tm);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        execlp("awk", "awk", "-v", "name=skillvm-image", "-v",
               assign(version, "version", SKILLVM_VERSION), "-v",
               assign(created, "created", time_text), "-v", assign(space, "space", hex), "-f",
               script, list, (char *)NULL);
        _exit(127);
    }
    return pid < 0 || process_reap(pid) != 0 ? err_set(err, EIO, "cannot write the document")
                                             : 0;
}
