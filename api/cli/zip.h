/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A canonical skill tar as a zip, for registries that want one. Equal skills give equal zips.
 */
#ifndef SKILLVM_API_CLI_ZIP_H
#define SKILLVM_API_CLI_ZIP_H

#include "base/err.h"

/*
 * Reads the tar in tar_fd (from its current offset) and writes the zip to zip_fd with every
 * entry below folder. 0 or -errno with err.
 */
int zip_write(int tar_fd, const char *folder, int zip_fd, struct err *err);

#endif
