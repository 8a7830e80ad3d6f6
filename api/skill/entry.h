/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file of a skill runs, in which language and in which way (design.md section 5).
 */
#ifndef SKILLVM_API_SKILL_ENTRY_H
#define SKILLVM_API_SKILL_ENTRY_H

#include "api/skill/archive.h"
#include "api/skill/skill.h"
#include "base/err.h"
#include "guest-init/proto.h"

struct skill_entry {
    enum proto_mode mode;
    char *entry;      /* owned: path below the skill's root, or a dotted module name */
    const char *lang; /* static: "python", "bash" or "node" */
};

/*
 * script and module are the caller's choice (at most one; NULL for none). With neither: the
 * entry_point; else main.py run.py main.js main.sh in the root, then in scripts/; else the only
 * script there is, those without an extension last; else -EINVAL with a message that lists the
 * scripts and asks for one. A named file must be a regular file of the skill (or a link to
 * one). The language comes from the extension, else from the front matter's lang, else from the
 * first line; what is none of these is -EINVAL. 0, -EINVAL or -ENOMEM. The caller finishes *ret
 * on success.
 */
int skill_entry_resolve(const struct skill *skill, const struct skill_archive *archive,
                        const char *script, const char *module, struct skill_entry *ret,
                        struct err *err);
/*
 * Adds warnings to the skill's where two languages are named for what runs without a choice: by
 * lang, by the name of its file, which counts before that, and by its first line, which counts
 * last; or where nothing runs, and lang is one that nothing does. 0 or -ENOMEM.
 */
int skill_entry_check_language(struct skill *skill, const struct skill_archive *archive);
/*
 * True for a file that can be run by itself: in the root or in scripts/, with an extension of a
 * language, and not one of a package's own files. *ret_lang gets the language (static).
 */
bool skill_entry_is_script(const struct archive_entry_info *entry, const char **ret_lang);
/*
 * Whether something of the skill can be run at all, by itself or when a caller names it. It is
 * not known to work: what it imports may be missing. False with the reason in why.
 */
bool skill_entry_can_run(const struct skill *skill, const struct skill_archive *archive,
                         struct err *why);
void skill_entry_finish(struct skill_entry *entry);
#define _cleanup_skill_entry_ __attribute__((cleanup(skill_entry_finish)))

#endif
