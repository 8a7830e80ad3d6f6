/* SPDX-License-Identifier: Apache-2.0 */
/* Where what a skill needs is from, in one image or another. */
#include "api/skill/language.h"
#include "api/skill/needs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool has_program(const struct image_manifest *image, const char *program)
{
    return image_manifest_has(&image->programs, program);
}

/* Whether what a skill calls its language runs there. */
static bool runs(const struct image_manifest *image, const char *name)
{
    const struct language *language = language_of_name(name);

    return language && language->lang && image_manifest_runs(image, language->lang);
}

static enum needs_from module_from(const struct image_manifest *image,
                                   const struct needs_item *item)
{
    if (item->own)
        return NEEDS_OWN;
    if (image_manifest_has(&image->standard, item->name) || strcmp(item->name, "__main__") == 0)
        return NEEDS_STANDARD;
    return image_manifest_has(&image->modules, item->name) ? NEEDS_IMAGE : NEEDS_MISSING;
}

/* By its own name, or by that of the module that it is for. */
static enum needs_from package_from(const struct image_manifest *image,
                                    const struct needs_item *item)
{
    char module[NEEDS_TEXT_MAX + 1];

    if (item->own)
        return NEEDS_OWN;
    if (!needs_applies(image, item))
        return NEEDS_NOT_ASKED;
    if (image_manifest_package(image, item->name))
        return NEEDS_IMAGE;
    needs_module_name(item->name, module);
    if (image_manifest_has(&image->standard, module))
        return NEEDS_STANDARD;
    return image_manifest_has(&image->modules, module) ? NEEDS_IMAGE : NEEDS_MISSING;
}

static enum needs_from node_from(const struct image_manifest *image,
                                 const struct needs_item *item)
{
    if (item->own)
        return NEEDS_OWN;
    return image_manifest_node_module(image, item->name) ? NEEDS_IMAGE : NEEDS_MISSING;
}

static bool has_language(const struct image_manifest *image, const struct needs_item *item)
{
    if (strcmp(item->name, "Node.js") == 0)
        return has_program(image, "node");
    if (strcmp(item->name, "Python") != 0)
        return has_program(image, item->detail);
    return image->python_minor > 0 && item->python_minor <= image->python_minor;
}

/* An image that is named is nobody's need: it was found or not; the network is no image's. */
static bool has_field(const struct image_manifest *image, const struct needs_item *item)
{
    return strcmp(item->name, "lang") != 0 || runs(image, item->detail);
}

enum needs_from needs_from_in(const struct image_manifest *image, const struct needs_item *item)
{
    bool has = false;

    if (!image->known)
        return item->own ? NEEDS_OWN : NEEDS_UNKNOWN;
    switch (item->kind) {
    case NEEDS_MODULE:
        return module_from(image, item);
    case NEEDS_PACKAGE:
        return package_from(image, item);
    case NEEDS_NODE_MODULE:
    case NEEDS_NODE_PACKAGE:
        return node_from(image, item);
    case NEEDS_PROGRAM:
        has = has_program(image, item->name);
        break;
    case NEEDS_LANGUAGE:
        has = has_language(image, item);
        break;
    case NEEDS_FIELD:
        has = has_field(image, item);
        break;
    case NEEDS_HOST:
    case NEEDS_SECRET:
        return NEEDS_UNKNOWN;
    }
    return has ? NEEDS_IMAGE : item->own ? NEEDS_OWN : NEEDS_MISSING;
}

/* That there is a Node is another thing's need: its version is compared. */
static bool is_version_alone(const struct needs_item *item)
{
    return item->kind == NEEDS_LANGUAGE && strcmp(item->name, "Node.js") == 0;
}

bool needs_is_needed(const struct needs_item *item)
{
    return item->kind < NEEDS_HOST && !item->guarded && !is_version_alone(item) &&
           (item->kind != NEEDS_FIELD || strcmp(item->name, "lang") == 0);
}

bool needs_knows(const struct needs *needs)
{
    for (size_t i = 0; i < needs->len; i++)
        if (needs_is_needed(&needs->items[i]))
            return true;
    return false;
}

/* Whether an import of a package's module is told, or expected not to be there. */
static bool is_imported(const struct needs *needs, const struct needs_item *package)
{
    enum needs_kind kind =
        package->kind == NEEDS_NODE_PACKAGE ? NEEDS_NODE_MODULE : NEEDS_MODULE;
    char module[NEEDS_TEXT_MAX + 1];

    needs_module_name(package->name, module);
    for (size_t i = 0; i < needs->len; i++)
        if (needs->items[i].kind == kind &&
            strcasecmp(needs->items[i].name, kind == NEEDS_MODULE ? module : package->name) ==
                0)
            return true;
    return false;
}

bool needs_is_repeated(const struct needs *needs, size_t at)
{
    const struct needs_item *item = &needs->items[at];

    for (size_t i = 0; i < at; i++) {
        const struct needs_item *other = &needs->items[i];

        if (other->kind == item->kind && other->from == item->from && !other->guarded &&
            other->connects == item->connects && strcmp(other->name, item->name) == 0 &&
            other->python_minor >= item->python_minor)
            return true;
    }
    return (item->kind == NEEDS_PACKAGE || item->kind == NEEDS_NODE_PACKAGE) &&
           is_imported(needs, item);
}

static void look_at_version(struct needs_item *item, const struct image_manifest *image)
{
    item->version[0] = '\0';
    item->unfit = item->from == NEEDS_IMAGE && !item->guarded &&
                  needs_compare_version(image, item, item->version) == 0;
}

size_t needs_count_missing(struct needs *needs, const struct image_list *images, unsigned place)
{
    bool go = image_set_has(needs->go, place);
    size_t missing = 0;

    for (size_t i = 0; i < needs->len; i++) {
        struct needs_item *item = &needs->items[i];

        item->from = needs_from_in(&images->list[place].manifest, item);
        /* What is brought comes before the image's own, behind the standard library. */
        if (item->brought && go && item->from != NEEDS_STANDARD)
            item->from = NEEDS_OWN;
        look_at_version(item, &images->list[place].manifest);
        if (!needs_is_needed(item) ||
            (item->from != NEEDS_MISSING && item->from != NEEDS_UNKNOWN))
            continue;
        item->scarce = true;
        missing += !needs_is_repeated(needs, i);
    }
    return missing;
}

/* Of two images that have it: one that can be used, then the one that is here, then the first.
 */
static enum needs_help help_of(const struct image_list *images, image_set_t allowed,
                               unsigned place)
{
    if (!images->list[place].here)
        return NEEDS_HELP_AWAY;
    return image_set_has(allowed, place) ? NEEDS_HELP_HERE : NEEDS_HELP_FORBIDDEN;
}

/* Of what is there in another version only one that is known to fit helps. */
static bool has_it(const struct image_manifest *image, const struct needs_item *item)
{
    const enum needs_from from = needs_from_in(image, item);
    char version[NEEDS_VERSION_SIZE];

    return item->unfit ? from == NEEDS_IMAGE && needs_compare_version(image, item, version) > 0
                       : from == NEEDS_IMAGE || from == NEEDS_STANDARD;
}

void needs_find_help(struct needs_item *item, const struct image_list *images,
                     image_set_t allowed)
{
    for (unsigned i = 0; i < images->n; i++) {
        enum needs_help help = help_of(images, allowed, i);

        if (!has_it(&images->list[i].manifest, item) ||
            (item->help != NEEDS_NO_HELP && item->help <= help))
            continue;
        item->help = help;
        memcpy(item->helper, images->list[i].name, sizeof(item->helper));
    }
}

static void describe(struct needs *needs, const struct image_manifest *image)
{
    const char *python = image->python_minor ? "Python" : "",
               *node = has_program(image, "node") ? "JavaScript" : "",
               *bash = has_program(image, "bash") ? "bash" : "";

    (void)snprintf(needs->runs, sizeof(needs->runs), "%s%s%s%s%s", python,
                   *python && *node ? *bash ? ", " : " and " : "", node,
                   *bash && (*python || *node) ? " and " : "", bash);
}

/* A name that is here, and may be used. */
static void look_at_image(struct needs_item *item, const struct image_list *images,
                          image_set_t allowed)
{
    int place = image_list_find(images, item->detail);

    item->from =
        place >= 0 && image_set_has(allowed, (unsigned)place) ? NEEDS_IMAGE : NEEDS_MISSING;
    item->help = place >= 0                             ? NEEDS_HELP_FORBIDDEN
                 : image_list_any(images, item->detail) ? NEEDS_HELP_AWAY
                                                        : NEEDS_NO_HELP;
    if (item->help == NEEDS_HELP_AWAY)
        (void)snprintf(item->helper, sizeof(item->helper), "%s", item->detail);
}

/* How much of what is missing an image has that is not here. */
static size_t count_help(const struct needs *needs, const struct image_manifest *image)
{
    size_t n = 0;

    for (size_t i = 0; i < needs->len; i++) {
        const struct needs_item *item = &needs->items[i];

        if (item->from == NEEDS_MISSING && needs_is_needed(item) &&
            !needs_is_repeated(needs, i))
            n += needs_from_in(image, item) != NEEDS_MISSING;
    }
    return n;
}

static size_t size_of(const struct image_manifest *image)
{
    return image->modules.len + image->programs.len + image->node_modules.len;
}

/* The one that has the most of it, the smallest of those: there may be what none has. */
static const struct image_listed *find_away(const struct needs *needs,
                                            const struct image_list *images)
{
    const struct image_listed *best = NULL;
    size_t most = 0;

    for (unsigned i = images->n_here; needs->missing > 0 && i < images->n; i++) {
        const struct image_listed *one = &images->list[i];
        size_t n = count_help(needs, &one->manifest);

        if (n > most ||
            (best && n == most && size_of(&one->manifest) < size_of(&best->manifest))) {
            most = n;
            best = one;
        }
    }
    return best;
}

/* Whatever else that one has is there too once it is: nobody is to build two. */
static void name_away(struct needs *needs, const struct image_listed *away)
{
    for (size_t i = 0; away && i < needs->len; i++) {
        struct needs_item *item = &needs->items[i];

        if (item->kind != NEEDS_FIELD && item->help == NEEDS_HELP_AWAY &&
            has_it(&away->manifest, item))
            memcpy(item->helper, away->name, sizeof(item->helper));
    }
    (void)snprintf(needs->away, sizeof(needs->away), "%s", away ? away->name : "");
}

void needs_look(struct needs *needs, const struct image_list *images, image_set_t allowed,
                const struct image_choice *choice)
{
    const struct image_listed *image = &images->list[choice->place];

    needs->missing = needs_count_missing(needs, images, choice->place);
    memcpy(needs->image, image->name, sizeof(needs->image));
    memcpy(needs->why, choice->why, sizeof(needs->why));
    needs->known = image->manifest.known;
    needs->memory_bytes = image->manifest.memory_bytes;
    needs->has_python = image->manifest.python_minor > 0;
    needs->has_node = image_manifest_runs(&image->manifest, "node");
    describe(needs, &image->manifest);
    for (size_t i = 0; needs->known && i < needs->len; i++) {
        struct needs_item *item = &needs->items[i];

        if (item->kind == NEEDS_FIELD && strcmp(item->name, "image") == 0)
            look_at_image(item, images, allowed);
        else if (item->from == NEEDS_MISSING || item->unfit)
            needs_find_help(item, images, allowed);
    }
    name_away(needs, find_away(needs, images));
}
