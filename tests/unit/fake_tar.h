/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The little of tar that the stand-in guest needs: one file of a stream, and what a skill says
 * that it shall answer when its parser is looked at.
 */
#ifndef SKILLVM_TESTS_UNIT_FAKE_TAR_H
#define SKILLVM_TESTS_UNIT_FAKE_TAR_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* Writes the header of a file whose content follows. */
void fake_tar_header(uint8_t block[512], const char *name, unsigned size, char type);
/* Writes header and content (at most 512 bytes). The bytes that are used. */
size_t fake_tar_file(uint8_t block[1024], const char *name, const char *content, char type);

/* True for the entry of a run that looks at a parser. */
bool fake_tar_is_probe(const uint8_t *entry, size_t len);
/*
 * The text after the first "#probe:" of the skill beside which the probe lies: what it is to
 * answer, or '=' and a behaviour. NULL when the tar is not made like that.
 */
const char *fake_tar_probe(struct buf *tar);

#endif
