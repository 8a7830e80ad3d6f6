/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/packages.h"

#include "api/json/json_walk.h"
#include "api/skill/pep440.h"
#include "api/wheels/tags.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define REMEDY                                                                                 \
    "its packages were chosen for another: run it in that, or name this one in SKILL.md and "  \
    "push it anew (skillvm skill push --replace)"

/* One of those that were to come from the image. */
static int check(struct json_slice package, const struct image_manifest *image,
                 struct skill_strings *warnings, struct err *err)
{
    _cleanup_free_ char *name = json_strdup_member(package, "name", TAGS_NAME_MAX);
    _cleanup_free_ char *version = json_strdup_member(package, "version", PEP440_TEXT_MAX);
    const char *there;

    if (!name || !version)
        return err_no_memory(err);
    there = image_manifest_package(image, name);
    if (!there)
        return err_set(err, EINVAL, "the image %s has no %.128s: " REMEDY, image->name, name);
    if (strcmp(there, version) == 0)
        return 0;
    return skill_warn(warnings,
                      "the image %s has %.128s %.60s; its packages were chosen where there "
                      "was %.60s",
                      image->name, name, there, version) < 0
               ? err_no_memory(err)
               : 0;
}

int packages_check(const char *packages, unsigned python_minor,
                   const struct image_manifest *image, struct skill_strings *warnings,
                   struct err *err)
{
    struct json_items items = {.array = {packages, strlen(packages)}};
    struct json_slice package, from;
    int r = 0;

    /* Without Python there, nothing there reads them. */
    if (!image->known || image->python_minor == 0)
        return 0;
    if (image->is_pypy)
        return err_set(err, EINVAL, "the image %s has PyPy and not CPython: " REMEDY,
                       image->name);
    if (image->python_is_alone)
        return err_set(err, EINVAL, "the image %s looks for no packages of a skill: " REMEDY,
                       image->name);
    if (python_minor > 0 && python_minor != image->python_minor)
        return err_set(err, EINVAL, "the image %s has Python 3.%u and not 3.%u: " REMEDY,
                       image->name, image->python_minor, python_minor);
    while (r == 0 && json_items_next(&items, &package)) {
        if (json_find(package, "from", &from) && json_slice_is(from, "\"image\""))
            r = check(package, image, warnings, err);
    }
    return r;
}

static image_set_t find_images(const char *packages, unsigned python_minor,
                               const struct image_list *images, bool exactly)
{
    image_set_t found = 0;

    for (unsigned i = 0; i < images->n_here; i++) {
        const struct image_manifest *image = &images->list[i].manifest;
        _cleanup_skill_strings_ struct skill_strings warnings = {0};
        struct err ignored = {0};

        /* Where there is no Python they are of no use. */
        if (image->known && image->python_minor > 0 &&
            packages_check(packages, python_minor, image, &warnings, &ignored) == 0 &&
            !(exactly && warnings.len > 0))
            found |= (image_set_t)1 << i;
    }
    return found;
}

image_set_t packages_go(const char *packages, unsigned python_minor,
                        const struct image_list *images)
{
    image_set_t found = find_images(packages, python_minor, images, true);

    if (!found)
        found = find_images(packages, python_minor, images, false);
    for (unsigned i = 0; i < images->n_here; i++)
        found |= (image_set_t)!images->list[i].manifest.known << i;
    return found;
}
