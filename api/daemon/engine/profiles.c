/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/engine/profiles.h"

#include "api/skill/as_module.h"
#include "api/skill/imports.h"
#include "api/skill/sha256.h"
#include "base/buf.h"

#include <string.h>

struct found {
    char name[PROFILE_NAME_SIZE];
    bool is_module; /* the script is run as one */
};

struct memo *profiles_create(void)
{
    return memo_create(sizeof(struct found));
}

static int make_key(const struct images *images, unsigned place, const char *digest,
                    const struct skill_entry *entry, char ret_key[SHA256_HEX_SIZE])
{
    _cleanup_buf_ struct buf text = buf_init(SIZE_MAX / 2);
    int r = buf_printf(&text, "%llu %u %s %d %s", (unsigned long long)images->number, place,
                       digest, (int)entry->mode, entry->entry);

    return r < 0 ? r : sha256_of(text.data, text.len, ret_key);
}

/* Reads what nobody asked for yet, and remembers it. */
static int read_sources(struct memo *profiles, const char *key,
                        const struct skill_strings *modules, int tar_fd,
                        const struct skill_archive *archive, struct skill_entry *entry,
                        struct found *found, struct err *err)
{
    _cleanup_skill_strings_ struct skill_strings imports = {0};
    const enum proto_mode asked = entry->mode;
    struct err ignored = {0};
    int r = as_module(tar_fd, archive, entry, err);

    if (r < 0)
        return r;
    found->is_module = entry->mode != asked;
    if (modules->len > 0 && imports_read(tar_fd, archive, entry, &imports, &ignored) < 0)
        return 0;
    if (modules->len > 0)
        profile_make(modules, &imports, found->name);
    memo_keep(profiles, key, found);
    return 0;
}

int profiles_look(struct memo *profiles, const struct images *images, unsigned place,
                  const char *digest, int tar_fd, const struct skill_archive *archive,
                  struct skill_entry *entry, char ret_name[PROFILE_NAME_SIZE], struct err *err)
{
    char key[SHA256_HEX_SIZE];
    struct found found = {0};
    int r = 0;

    if (make_key(images, place, digest, entry, key) < 0)
        return err_no_memory(err);
    if (!memo_recall(profiles, key, &found))
        r = read_sources(profiles, key, &images->list[place].modules, tar_fd, archive, entry,
                         &found, err);
    else if (found.is_module)
        r = as_module_known(entry, err);
    memcpy(ret_name, found.name, sizeof(found.name));
    return r;
}
