/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the caller's that `skillvm run` reads and writes: the input, and the artifacts that
 * come back. Artifacts are extracted below one folder and
 * nowhere else, whatever their names say.
 */
#ifndef SKILLVM_API_CLI_FILES_H
#define SKILLVM_API_CLI_FILES_H

#include "api/cli/cli.h"
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>

#define FILES_INPUT_MAX    (16u * 1024u * 1024u)
#define FILES_DOWNLOAD_MAX (256ull << 20)

/*
 * Reads --input: JSON itself, "@file" or "-" (standard input), and checks that it is one JSON
 * value. 0; -EINVAL with line and column, or with how to name the file that was meant; -EFBIG;
 * -errno.
 */
int files_read_input(const char *argument, struct buf *out, struct err *err);

/* Whether files could be put there: the folder that it makes for that goes again. 0, or -errno
 * with err. */
int files_check_dir(const char *path, struct err *err);
/* mkdir -p. 0 or -errno with err. */
int files_make_dirs(const char *path, struct err *err);
/*
 * Downloads the artifacts of an execution and extracts them as files_extract() does. 0 or
 * -errno with err.
 */
int files_fetch(const struct cli *cli, const char *execution_id, const char *dir,
                void (*on_file)(void *ctx, const char *path), void *ctx, struct err *err);
/*
 * Extracts the tar.gz in fd below dir, which is made when missing, and calls on_file with each
 * path. 0 or -errno with err.
 */
int files_extract(int fd, const char *dir, void (*on_file)(void *ctx, const char *path),
                  void *ctx, struct err *err);

#endif
