/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an archive or a registered skill, and a checked request, to the job of an execution.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_INTAKE_H
#define SKILLVM_API_DAEMON_ROUTES_INTAKE_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/profiles.h"
#include "api/daemon/http/http.h"
#include "api/daemon/routes/daemon.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/store/spool.h"
#include "api/skill/archive.h"
#include "api/wheels/wheels.h"
#include "base/err.h"

/* The packages that a skill gets. */
struct intake_packages {
    int fd; /* of their tar, where layer has a digest; else -1 */
    struct wheels_layer layer;
};
#define INTAKE_NO_PACKAGES ((struct intake_packages){.fd = -1})
void intake_packages_finish(struct intake_packages *packages);
#define _cleanup_intake_packages_ __attribute__((cleanup(intake_packages_finish)))

/*
 * Checks an archive that came with the request and writes its canonical tar to tar_fd. What the
 * skill needs and does not find becomes its warnings, of the image that *ret_choice gets; image
 * is what the request names, or NULL, and chooser_look() says what is not chosen. Packages that
 * it requires are chosen for the image that it would get without them, or for one that takes
 * packages if that one takes none and lacks something, and go with the one that it gets. On
 * success name and version of the skill are set and may be stored. The gate bounds how many do
 * so at once, for each takes memory and time of its own, and lets tenants in by turns. What is
 * written is held for the request before it is: what is unpacked until this returns, the tar
 * until the request is over or http_request_shrink. False: there is a reply. What the ret_
 * parameters get, in any case, is the caller's to finish; they are empty before.
 */
bool intake_archive(struct daemon *d, struct http_request *request, struct spool *upload,
                    int tar_fd, const char *image, struct skill_archive *ret_archive,
                    struct skill *ret_skill, struct image_choice *ret_choice,
                    struct intake_packages *ret_packages, struct http_reply *reply);

/*
 * Makes the skill of a request that brings code, and writes its canonical tar to tar_fd. What
 * it takes is held for the request until that is over. What a block of PEP 723 asks for and
 * the image does not have becomes its warnings. As above.
 */
bool intake_code(struct daemon *d, struct http_request *request, const struct request *q,
                 int tar_fd, struct skill_archive *ret_archive, struct skill *ret_skill,
                 struct http_reply *reply);

/* What a request runs of a skill. 0 with *ret the caller's to finish; -EINVAL; -ENOMEM. */
int intake_entry(const struct skill *skill, const struct skill_archive *archive,
                 const struct request *request, struct skill_entry *ret, struct err *err);

/*
 * Completes the job of a draft whose skill and image are set: limits, environment, what RUN
 * says, profile. The entry may become a module. e->warnings gets what was clamped. 0; -EINVAL
 * (the image does not run the entry, or its packages are for another); -E2BIG; -ENOMEM.
 */
int intake_plan(struct daemon *d, const struct skill *skill,
                const struct skill_archive *archive, const struct request *request,
                struct skill_entry *entry, struct execution *e, struct err *err);

#endif
