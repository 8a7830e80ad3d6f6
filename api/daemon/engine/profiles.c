/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/profiles.h"

#include "api/skill/imports.h"
#include "api/skill/sha256.h"
#include "base/buf.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Those that are remembered; each has one place, and the newest has it. */
#define SEATS 1024u

struct seat {
    char key[SHA256_HEX_SIZE]; /* "": nobody sits here */
    char name[PROFILE_NAME_SIZE];
};

struct profiles {
    struct skill_strings modules;
    pthread_mutex_t lock; /* for the seats */
    struct seat seats[SEATS];
};

struct profiles *profiles_create(struct skill_strings *modules)
{
    struct profiles *profiles = calloc(1, sizeof(*profiles));

    if (profiles) {
        profiles->modules = *modules;
        (void)pthread_mutex_init(&profiles->lock, NULL);
    } else {
        skill_strings_finish(modules);
    }
    *modules = (struct skill_strings){0};
    return profiles;
}

void profiles_destroy(struct profiles *profiles)
{
    if (!profiles)
        return;
    skill_strings_finish(&profiles->modules);
    (void)pthread_mutex_destroy(&profiles->lock);
    free(profiles);
}

static int make_key(const char *digest, const struct skill_entry *entry,
                    char ret_key[SHA256_HEX_SIZE])
{
    _cleanup_buf_ struct buf text = buf_init(SIZE_MAX / 2);
    int r = buf_printf(&text, "%s %d %s", digest, (int)entry->mode, entry->entry);

    return r < 0 ? r : sha256_of(text.data, text.len, ret_key);
}

static struct seat *seat_of(struct profiles *profiles, const char *key)
{
    const char first[] = {key[0], key[1], key[2], '\0'};

    return &profiles->seats[strtoul(first, NULL, 16) % SEATS];
}

static bool recall(struct profiles *profiles, const char *key, char name[PROFILE_NAME_SIZE])
{
    const struct seat *seat = seat_of(profiles, key);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&profiles->lock);

    if (strcmp(seat->key, key) != 0)
        return false;
    memcpy(name, seat->name, PROFILE_NAME_SIZE);
    return true;
}

static void remember(struct profiles *profiles, const char *key,
                     const char name[PROFILE_NAME_SIZE])
{
    struct seat *seat = seat_of(profiles, key);
    _cleanup_lock_ pthread_mutex_t *held = lock_hold(&profiles->lock);

    memcpy(seat->key, key, sizeof(seat->key));
    memcpy(seat->name, name, PROFILE_NAME_SIZE);
}

void profiles_look(struct profiles *profiles, const char *digest, int tar_fd,
                   const struct skill_archive *archive, const struct skill_entry *entry,
                   char ret_name[PROFILE_NAME_SIZE])
{
    _cleanup_skill_strings_ struct skill_strings imports = {0};
    char key[SHA256_HEX_SIZE];
    struct err err = {0};

    memset(ret_name, 0, PROFILE_NAME_SIZE);
    if (profiles->modules.len == 0 || make_key(digest, entry, key) < 0 ||
        recall(profiles, key, ret_name))
        return;
    if (imports_read(tar_fd, archive, entry, &imports, &err) < 0)
        return;
    profile_make(&profiles->modules, &imports, ret_name);
    remember(profiles, key, ret_name);
}
