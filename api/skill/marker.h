/* SPDX-License-Identifier: Apache-2.0 */
/* Environment markers of requirements (PEP 508), for the guest. Pure text. */
#ifndef SKILLVM_API_SKILL_MARKER_H
#define SKILLVM_API_SKILL_MARKER_H

#include <stdbool.h>
#include <stddef.h>

#define MARKER_TEXT_MAX  2048u
#define MARKER_DEPTH_MAX 16u

/* The Python that the packages are for. */
struct marker_python {
    unsigned minor; /* of Python 3 */
    unsigned micro;
};

/*
 * Whether a marker holds with an extra in force ("" for none). 0 or 1; -EINVAL for what is no
 * marker, also nested too deeply.
 */
int marker_holds(const char *text, size_t len, const struct marker_python *python,
                 const char *extra);

#endif
