/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what an image has is of a version that a skill asks for. */
#include "api/skill/needs_internal.h"
#include "api/skill/requirement.h"
#include "api/skill/semver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool needs_applies(const struct image_manifest *image, const struct needs_item *item)
{
    const struct marker_python python = {image->python_minor, image->python_micro};
    _cleanup_requirement_ struct requirement requirement = {.marker = NULL};

    return !image->python_minor || !item->wanted || !strchr(item->wanted, ';') ||
           requirement_parse(item->wanted, strlen(item->wanted), &requirement, NULL) < 0 ||
           requirement_applies(&requirement, &python, NULL);
}

unsigned needs_python_minor(const char *version)
{
    unsigned at_least = 0;

    for (const char *at = version; at && *at;) {
        unsigned minor = 0;

        at += strspn(at, " ,");
        if (*at != '<' && *at != '!' && sscanf(at + strspn(at, "=~> "), "3.%3u", &minor) == 1 &&
            minor > at_least)
            at_least = minor;
        at += strcspn(at, ",");
    }
    return at_least;
}

/* What is called 0.0.0 was built without being told its version. */
static bool is_told(const char *version)
{
    return version && version[0] && strcmp(version, "0.0.0") != 0;
}

static int compare_python(const char *wanted, const char *version)
{
    _cleanup_requirement_ struct requirement requirement = {.marker = NULL};
    struct pep440 parsed;

    if (!wanted || requirement_parse(wanted, strlen(wanted), &requirement, NULL) < 0 ||
        pep440_parse(version, strlen(version), &parsed) < 0)
        return -EINVAL;
    return requirement_has(&requirement, &parsed, version);
}

int needs_compare_version(const struct image_manifest *image, const struct needs_item *item,
                          char ret_version[NEEDS_VERSION_SIZE])
{
    const bool python = item->kind == NEEDS_PACKAGE;
    const char *version = NULL;

    if (python)
        version = image_manifest_package(image, item->name);
    else if (item->kind == NEEDS_NODE_PACKAGE)
        version = image_manifest_node_module(image, item->name);
    else if (item->kind == NEEDS_LANGUAGE && strcmp(item->name, "Node.js") == 0)
        version = image->node;
    ret_version[0] = '\0';
    if (!is_told(version) || strlen(version) >= NEEDS_VERSION_SIZE)
        return -EINVAL;
    (void)strcpy(ret_version, version);
    return python         ? compare_python(item->wanted, version)
           : item->detail ? semver_has(item->detail, version)
                          : -EINVAL;
}

size_t needs_count_unfit(const struct needs *needs)
{
    size_t n = 0;

    for (size_t i = 0; i < needs->len; i++)
        n += needs->items[i].unfit;
    return n;
}
