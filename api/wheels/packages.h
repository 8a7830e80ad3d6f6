/* SPDX-License-Identifier: Apache-2.0 */
/* Packages that were chosen for a skill, beside an image that it is to run in. */
#ifndef SKILLVM_API_WHEELS_PACKAGES_H
#define SKILLVM_API_WHEELS_PACKAGES_H

#include "api/skill/image_list.h"

/*
 * Whether packages, as wheels.h writes them, that were chosen for this minor version of Python
 * 3 (0: nobody knows) go with an image. 0, with a warning for each that the image has in
 * another version; -EINVAL: it has another Python, or has not what was to come from it;
 * -ENOMEM.
 */
int packages_check(const char *packages, unsigned python_minor,
                   const struct image_manifest *image, struct skill_strings *warnings,
                   struct err *err);
/*
 * The images that such packages go with just as they were chosen: with that Python, and with
 * the same version of each that was to come from the image. Where none has these versions,
 * those that have others. One of which nothing is known goes.
 */
image_set_t packages_go(const char *packages, unsigned python_minor,
                        const struct image_list *images);

#endif
