/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of a skill, for who asks: what the request names, what SKILL.md names, else what
 * api/skill/image_choice.h chooses of those that the tenant may use. What its packages hold no
 * image that they go with needs to have, wherever it is asked.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_CHOOSER_H
#define SKILLVM_API_DAEMON_ROUTES_CHOOSER_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/http/http.h"
#include "api/daemon/routes/daemon.h"
#include "api/skill/archive.h"
#include "api/skill/needs.h"

/* The packages that a skill gets; strings are borrowed. */
struct chooser_packages {
    const char *digest; /* of their tar; "": the image has them all */
    int fd;             /* of it; -1: it is in the store */
    const char *list;   /* which they are, as wheels.h writes them; NULL: there are none */
    unsigned python_minor;
};
#define CHOOSER_NO_PACKAGES ((struct chooser_packages){.digest = "", .fd = -1})
/* Those of a row, which is borrowed. */
struct chooser_packages chooser_packages_of(const struct registry_skill *row);

/* A skill that is read where nobody remembers it. Borrows. */
struct chooser_source {
    const struct skill *skill;
    const struct skill_archive *archive;
    int tar_fd;
    const struct chooser_packages *packages; /* open */
    bool has_turn; /* who calls has one already (turn.h), which stands for that at an archive */
};

/*
 * Says of what a skill needs where it is from in the image that its entry would run in, which
 * is *ret, of images; image is the request's or NULL. Where no run would be accepted ret->why
 * is "". 0; -ENOENT: the tenant is gone; -ENOMEM; -EIO.
 */
int chooser_look(struct daemon *d, const struct images *images, const char *tenant,
                 const struct skill *skill, const struct skill_archive *archive,
                 const struct chooser_packages *packages, const char *image,
                 struct needs *needs, struct image_choice *ret, struct err *err);

/*
 * Chooses of the images of now for a draft whose skill and limits are set, and whose script is
 * in lang; image is the request's or NULL. The sources are read where nobody remembers them.
 * False: there is a reply.
 */
bool chooser_choose(struct daemon *d, const struct chooser_source *source, const char *lang,
                    const char *image, struct execution *e, struct http_reply *reply);

/* One digest for the images that a tenant may use: another as soon as one of them is built
 * anew. 0; -ENOENT: the tenant is gone; -ENOMEM; -EIO. */
int chooser_images(struct daemon *d, const struct images *images, const char *tenant,
                   char ret[SHA256_HEX_SIZE], struct err *err);

/* The same for a script of a registered skill that names an image or NULL. 0; -EACCES; as of
 * chooser_look(). */
int chooser_find(struct daemon *d, const struct images *images, const char *tenant,
                 const char *digest, const struct chooser_packages *packages, const char *lang,
                 const char *named, struct image_choice *ret, struct err *err);

#endif
