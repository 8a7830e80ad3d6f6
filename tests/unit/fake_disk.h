/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of a skill that the stand-in for the VMM is given. */
#ifndef SKILLVM_TESTS_UNIT_FAKE_DISK_H
#define SKILLVM_TESTS_UNIT_FAKE_DISK_H

#include "tests/unit/fake_guest.h"

/* Takes the command that brings it, and says that it is there. */
void fake_disk_take(struct fake *f);
/* Appends "disk": the bytes of both files and a CRC-32 of the second. */
void fake_disk_tell(const struct fake *f, struct buf *out);
/* Forgets it, if there is one. */
void fake_disk_forget(struct fake *f);

#endif
