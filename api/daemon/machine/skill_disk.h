/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a job's skill goes to its guest as a disk, and the head of that disk
 * (api/skill/disk.h). The tar behind it is the stored one: it is neither copied nor read here.
 */
#ifndef SKILLVM_API_DAEMON_MACHINE_SKILL_DISK_H
#define SKILLVM_API_DAEMON_MACHINE_SKILL_DISK_H

#include "api/daemon/machine/job.h"
#include "api/daemon/machine/vm.h"
#include "api/skill/archive.h"
#include "base/err.h"

#include <stdbool.h>

/* The most that the names of a skill may take there; no skill that is taken has so many. */
#define SKILL_DISK_HEAD_MAX (64ull * 1024 * 1024)

/* True for a skill in a file that is large enough to pay for a disk, and no larger than one. */
bool skill_disk_pays(const struct job *job);
/*
 * Makes the head for the job's skill, which archive is what is in, in the spool's file,
 * which the job takes over; neither file can be written to by what the job has then. 0, or
 * -errno with the reason (the spool's where it does not grow): the job has no disk, and its
 * skill is sent.
 */
int skill_disk_make(struct job *job, const struct skill_archive *archive,
                    struct archive_spool *spool, struct err *err);
/* Gives the disk of a job that has one to its machine; see vm_send_disk. */
int skill_disk_send(const struct job *job, struct vm *vm, struct err *err);

#endif
