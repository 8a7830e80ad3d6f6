/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/machine/known_digests.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NEW_FILE  KNOWN_DIGESTS_FILE ".new"
#define FILE_MAX  (KNOWN_DIGESTS_MAX * sizeof(struct known_digest))
#define IMAGE_MAX 64

/* Two changes within a tick of the kernel's clock have one time; some file systems' ticks are
 * longer. */
#define SETTLED_NS NS_PER_SECOND

static uint64_t nanoseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_nsec;
}

/* Whether the file's times tell one content from the next. */
static bool tells_changes(const struct stat *st, const char *image)
{
    uint64_t changed_ns = nanoseconds(&st->st_ctim), now_ns = clock_realtime_ns();

    if (!S_ISREG(st->st_mode))
        return false;
    /* Images that are made to be the same each time have made-up times, of whole seconds. */
    if (!image && st->st_ctim.tv_nsec == 0)
        return false;
    return changed_ns < now_ns && now_ns - changed_ns >= SETTLED_NS;
}

static bool is_word(const char *text)
{
    const size_t len = strlen(text);

    return len > 0 && len <= IMAGE_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* False where it has none. */
static bool identify(int fd, const struct digest_way *way, char ret[KNOWN_DIGESTS_ID_SIZE])
{
    const char *image = way->image && is_word(way->image) ? way->image : NULL;
    struct stat st;

    if (fstat(fd, &st) < 0 || !tells_changes(&st, image))
        return false;
    return snprintf(ret, KNOWN_DIGESTS_ID_SIZE, "%s %s %u:%u %llu %llu %llu %llu", way->name,
                    image ? image : "-", major(st.st_dev), minor(st.st_dev),
                    (unsigned long long)st.st_ino, (unsigned long long)st.st_size,
                    (unsigned long long)nanoseconds(&st.st_mtim),
                    (unsigned long long)nanoseconds(&st.st_ctim)) < (int)KNOWN_DIGESTS_ID_SIZE;
}

/* The one that was not asked for the longest gives way. */
static void add(struct known_digests *known, const char *id, const char *hex)
{
    struct known_digest *item;

    if (known->n == KNOWN_DIGESTS_MAX)
        memmove(known->items, known->items + 1, --known->n * sizeof(known->items[0]));
    item = &known->items[known->n++];
    (void)snprintf(item->id, sizeof(item->id), "%s", id);
    (void)snprintf(item->hex, sizeof(item->hex), "%s", hex);
}

static int store(const struct known_digests *known)
{
    _cleanup_buf_ struct buf text = buf_init(FILE_MAX);
    _cleanup_fd_ int fd = -1;
    int r;

    for (size_t i = 0; i < known->n; i++)
        (void)buf_printf(&text, "%s %s\n", known->items[i].hex, known->items[i].id);
    if (text.error < 0)
        return text.error;
    (void)unlinkat(known->dir_fd, NEW_FILE, 0);
    fd = openat(known->dir_fd, NEW_FILE, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = fd_write_full(fd, text.data, text.len);
    if (r < 0)
        return r;
    return renameat(known->dir_fd, NEW_FILE, known->dir_fd, KNOWN_DIGESTS_FILE) < 0 ? -errno
                                                                                    : 0;
}

/* "HEX ID"; anything else is left out. */
static void take_line(struct known_digests *known, char *line)
{
    char *id = strchr(line, ' ');

    if (!id || (size_t)(id - line) != SHA256_HEX_SIZE - 1 || !sha256_leads(line) ||
        strlen(id + 1) >= KNOWN_DIGESTS_ID_SIZE)
        return;
    *id = '\0';
    add(known, id + 1, line);
}

/* Its bytes, or why it is not to be trusted: -errno. */
static ssize_t read_trusted(int dir_fd, struct buf *ret)
{
    _cleanup_fd_ int fd =
        openat(dir_fd, KNOWN_DIGESTS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
        return -EPERM;
    return buf_reserve(ret, FILE_MAX) < 0 ? -ENOMEM : fd_read_full(fd, ret->data, FILE_MAX);
}

void known_digests_open(struct known_digests *known, int dir_fd)
{
    _cleanup_buf_ struct buf text = buf_init(FILE_MAX);
    ssize_t n = read_trusted(dir_fd, &text);
    char *rest, *line;

    known->dir_fd = dir_fd;
    known->n = 0;
    if (n < 0 && n != -ENOENT)
        log_warn("snapshot", "digests=\"read again\" reason=\"%s\"",
                 n == -EPERM ? "others could have written " KNOWN_DIGESTS_FILE
                             : strerror((int)-n));
    if (n <= 0)
        return;
    text.len = (size_t)n;
    if (!buf_cstr(&text))
        return;
    rest = (char *)text.data;
    while ((line = strsep(&rest, "\n")))
        take_line(known, line);
}

/* NULL where it is not known. One that is asked for becomes the newest. */
static const struct known_digest *find(struct known_digests *known, const char *id)
{
    for (size_t i = known->n; i > 0; i--) {
        struct known_digest *item = &known->items[i - 1], found;

        if (strcmp(item->id, id) != 0)
            continue;
        found = *item;
        memmove(item, item + 1, (known->n - i) * sizeof(*item));
        known->items[known->n - 1] = found;
        return &known->items[known->n - 1];
    }
    return NULL;
}

/* A read of the whole file, which takes a start long where it was not to be. */
static int compute(int fd, const struct digest_way *way, char ret_hex[SHA256_HEX_SIZE])
{
    struct stat st;
    int r = way->compute(fd, ret_hex);

    if (r == 0 && fstat(fd, &st) == 0)
        log_info("snapshot", "digested=%s bytes=%llu", way->name,
                 (unsigned long long)st.st_size);
    return r;
}

int known_digests_of(struct known_digests *known, int fd, const struct digest_way *way,
                     char ret_hex[SHA256_HEX_SIZE])
{
    char before[KNOWN_DIGESTS_ID_SIZE], after[KNOWN_DIGESTS_ID_SIZE];
    const bool settled = known && identify(fd, way, before);
    const struct known_digest *found = settled ? find(known, before) : NULL;
    int r;

    if (found) {
        memcpy(ret_hex, found->hex, SHA256_HEX_SIZE);
        return 0;
    }
    r = compute(fd, way, ret_hex);
    if (r < 0 || !settled || !identify(fd, way, after) || strcmp(before, after) != 0)
        return r;
    add(known, before, ret_hex);
    r = store(known);
    if (r < 0)
        log_warn("snapshot", "digests=\"not remembered\" reason=\"%s\"", strerror(-r));
    return 0;
}
