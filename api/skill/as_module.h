/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts that only run as a module of their skill: they import relatively, or a package in the
 * skill's root, which `python3 folder/script.py` cannot find and `python3 -m folder.script`
 * can. Read from the source, which is never run; what may run as it is stays a script.
 */
#ifndef SKILLVM_API_SKILL_AS_MODULE_H
#define SKILLVM_API_SKILL_AS_MODULE_H

#include "api/skill/archive.h"
#include "api/skill/entry.h"
#include "base/err.h"

/*
 * Makes the entry (of skill_entry_resolve()) a module where it is such a script. tar_fd is the
 * canonical tar whose list archive is. 0; -ENOMEM, or what reading tar_fd gave.
 */
int as_module(int tar_fd, const struct skill_archive *archive, struct skill_entry *entry,
              struct err *err);
/* The same of one that is known to be such a script. 0; -EINVAL it has no such name; -ENOMEM.
 */
int as_module_known(struct skill_entry *entry, struct err *err);

#endif
