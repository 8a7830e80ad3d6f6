/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an archive or a registered skill, and a checked request, to the job of an execution.
 */
#ifndef SKILLVM_API_DAEMON_ROUTES_INTAKE_H
#define SKILLVM_API_DAEMON_ROUTES_INTAKE_H

#include "api/daemon/engine/execution.h"
#include "api/daemon/engine/fair_gate.h"
#include "api/daemon/engine/profiles.h"
#include "api/daemon/http/http.h"
#include "api/daemon/routes/request.h"
#include "api/daemon/store/spool.h"
#include "api/skill/archive.h"
#include "base/err.h"

/*
 * Checks an uploaded archive against limits and writes its canonical tar to tar_fd. On success
 * name and version of the skill are set and may be stored. gate bounds how many do so at once,
 * for each takes memory and time of its own, and lets tenants in by turns. Errors as of
 * skill_archive_load, and -EBUSY when the gate did not open in time. What *ret_archive and
 * *ret_skill get, in any case, is the caller's to finish; they are zeroed before.
 */
int intake_archive(struct fair_gate *gate, const char *tenant,
                   const struct archive_limits *limits, struct spool *upload, int tar_fd,
                   struct skill_archive *ret_archive, struct skill *ret_skill, struct err *err);

/* The HTTP answer for what intake_archive or skill_archive_load refused. False. */
bool intake_reply_refused(struct http_reply *reply, int result, const struct err *err);

/*
 * Completes the job of a draft whose skill is set: entry point, limits, environment, what RUN
 * says, and the profile. e->warnings gets what was clamped. 0; -EINVAL (no such entry); -E2BIG;
 * -ENOMEM.
 */
int intake_plan(struct profiles *profiles, const struct skill *skill,
                const struct skill_archive *archive, const struct request *request,
                struct execution *e, struct err *err);

#endif
