/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in for a guest kernel or an image that was built: its file, and beside it the
 * checksum that the builders write.
 */
#ifndef SKILLVM_TESTS_FAKE_BUILT_H
#define SKILLVM_TESTS_FAKE_BUILT_H

/* Writes both into a folder; name is the file's, with its ending. */
void fake_built(const char *folder, const char *name, const char *content);

#endif
