/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/store/watermarks.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define FRESH_NS 1000000000u
/* A file system can have so many files, and one of so many stays free. */
#define LEAST_FILES_OF 100u
#define MEMINFO        "/proc/meminfo"
#define MEMINFO_SIZE   4096u

struct watermarks {
    int dir_fd;
    pthread_mutex_t lock; /* for all below */
    struct config_watermarks settings;
    struct watermarks_state state;
    uint64_t looked_ns; /* monotonic; 0: look anew */
};

int watermarks_create(int dir_fd, const struct config_watermarks *settings,
                      struct watermarks **ret, struct err *err)
{
    struct watermarks *s = calloc(1, sizeof(*s));

    if (!s)
        return err_no_memory(err);
    s->dir_fd = dir_fd;
    s->settings = *settings;
    (void)pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return 0;
}

void watermarks_destroy(struct watermarks *s)
{
    if (!s)
        return;
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct watermarks_level compare(const char *what, const struct config_amount *least,
                                       uint64_t free_bytes, uint64_t whole_bytes)
{
    uint64_t least_bytes = config_amount_of(least, whole_bytes);

    return (struct watermarks_level){.what = what,
                                     .low = free_bytes < least_bytes,
                                     .free_bytes = free_bytes,
                                     .least_bytes = least_bytes};
}

static struct watermarks_level look_at_disk(const struct watermarks *s)
{
    struct watermarks_level level;
    struct statvfs fs;

    if (fstatvfs(s->dir_fd, &fs) < 0)
        return (struct watermarks_level){.free_bytes = UINT64_MAX};
    level = compare("disk space", &s->settings.disk_free, (uint64_t)fs.f_bavail * fs.f_frsize,
                    (uint64_t)fs.f_blocks * fs.f_frsize);
    level.free_files = fs.f_favail;
    level.least_files = fs.f_files / LEAST_FILES_OF;
    level.low |= level.free_files < level.least_files;
    return level;
}

/* The bytes of a line "Name:   123 kB"; 0 where there is none. */
static uint64_t find_line(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static struct watermarks_level look_at_memory(const struct watermarks *s)
{
    char text[MEMINFO_SIZE];

    (void)fd_read_text(MEMINFO, text, sizeof(text));
    if (!strstr(text, "MemAvailable:"))
        return (struct watermarks_level){0};
    return compare("memory", &s->settings.memory_free, find_line(text, "MemAvailable:"),
                   find_line(text, "MemTotal:"));
}

void watermarks_set(struct watermarks *s, const struct config_watermarks *settings)
{
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    s->settings = *settings;
    s->looked_ns = 0;
}

void watermarks_look(struct watermarks *s, struct watermarks_state *ret)
{
    uint64_t now = clock_monotonic_ns();
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&s->lock);

    if (s->looked_ns == 0 || now - s->looked_ns >= FRESH_NS) {
        s->state.disk = look_at_disk(s);
        s->state.memory = look_at_memory(s);
        s->looked_ns = now;
    }
    *ret = s->state;
}

void watermarks_describe(const struct watermarks_level *level, char *ret, size_t size)
{
    if (level->free_bytes < level->least_bytes)
        (void)snprintf(ret, size, "%llu MiB of %s are free, %llu MiB are the least",
                       (unsigned long long)(level->free_bytes >> 20), level->what,
                       (unsigned long long)(level->least_bytes >> 20));
    else
        (void)snprintf(ret, size, "the disk has room for %llu more files, %llu are the least",
                       (unsigned long long)level->free_files,
                       (unsigned long long)level->least_files);
}

static int complain(const struct watermarks_level *level, struct err *err)
{
    char text[128];

    watermarks_describe(level, text, sizeof(text));
    return err_set(err, ENOSPC, "%s", text);
}

int watermarks_check(struct watermarks *s, struct err *err)
{
    struct watermarks_state state;

    watermarks_look(s, &state);
    if (state.disk.low)
        return complain(&state.disk, err);
    if (state.memory.low)
        return complain(&state.memory, err);
    return 0;
}

int watermarks_check_room(struct watermarks *s, uint64_t bytes, struct err *err)
{
    struct watermarks_state state;
    uint64_t room;

    watermarks_look(s, &state);
    if (state.disk.low)
        return complain(&state.disk, err);
    room = state.disk.free_bytes - state.disk.least_bytes;
    if (bytes <= room)
        return 0;
    return err_set(err, ENOSPC, "%llu MiB of disk space are left, %llu MiB are needed",
                   (unsigned long long)(room >> 20),
                   (unsigned long long)((bytes + (1u << 20) - 1) >> 20));
}
