/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which image a skill runs in that names none that is here: read from its sources the first
 * time, and remembered by the skill's content, by what its script is in, and by the table of
 * images and those of it that its tenant may use: the same for whoever has that skill and may
 * use those.
 */
#ifndef SKILLVM_API_DAEMON_ENGINE_CHOICES_H
#define SKILLVM_API_DAEMON_ENGINE_CHOICES_H

#include "api/daemon/engine/memo.h"
#include "api/daemon/machine/images.h"
#include "api/daemon/terms/tenant.h"
#include "api/skill/image_choice.h"
#include "api/skill/needs.h"

/* Which remembers them; NULL: no memory. */
struct memo *choices_create(void);

/* The images that a tenant with these limits may use. */
image_set_t choices_allowed(const struct image_list *images,
                            const struct tenant_limits *limits);

/*
 * What is known without a look at the skill of that digest, for a script in lang, or NULL. 1
 * with *ret; 0: look; -EACCES: no image is here that is allowed.
 */
int choices_recall(struct memo *choices, const struct images *images, const char *digest,
                   const char *lang, image_set_t allowed, struct image_choice *ret);
/* As image_choose(), which is remembered. */
void choices_make(struct memo *choices, const struct images *images, const char *digest,
                  const char *lang, image_set_t allowed, struct needs *needs,
                  struct image_choice *ret);

#endif
