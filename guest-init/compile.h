/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packages of a skill as an installed interpreter would have them: compiled. It is done
 * once, before a snapshot that holds them; nothing of them is run.
 */
#ifndef SKILLVM_GUEST_COMPILE_H
#define SKILLVM_GUEST_COMPILE_H

#include "guest-init/sandbox.h"

/*
 * Compiles the Python modules below the sandbox's packages, for PROTO_COMPILE_MS at most. What
 * cannot be compiled is imported from its source.
 */
void compile_packages(const struct sandbox *sb);

#endif
