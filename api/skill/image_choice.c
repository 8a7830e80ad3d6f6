/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/image_choice.h"

#include "api/skill/file_names.h"
#include "api/skill/needs_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Things that a reason names. */
#define NAMED_MAX 5u

/* Whether it can be chosen: of the usual one nothing need be known. */
static bool is_candidate(const struct image_list *images, image_set_t allowed, unsigned place)
{
    return image_set_has(allowed, place) && (place == 0 || images->list[place].manifest.known);
}

static unsigned count_candidates(const struct image_list *images, image_set_t allowed)
{
    unsigned n = 0;

    for (unsigned i = 0; i < images->n_here; i++)
        n += is_candidate(images, allowed, i);
    return n;
}

static void take(const struct image_list *images, unsigned place, struct image_choice *ret)
{
    ret->place = place;
    memcpy(ret->name, images->list[place].name, sizeof(ret->name));
}

int image_choose_named(const struct image_list *images, image_set_t allowed, const char *name,
                       const char *who, struct image_choice *ret)
{
    int place = image_list_find(images, name);

    if (place < 0)
        return place;
    if (!image_set_has(allowed, (unsigned)place))
        return -EACCES;
    take(images, (unsigned)place, ret);
    (void)snprintf(ret->why, sizeof(ret->why), "%s names it", who);
    return 0;
}

int image_choose_clear(const struct image_list *images, image_set_t allowed,
                       struct image_choice *ret)
{
    unsigned n = count_candidates(images, allowed), place = 0;

    while (place < images->n_here &&
           (n > 0 ? !is_candidate(images, allowed, place) : !image_set_has(allowed, place)))
        place++;
    if (place == images->n_here)
        return -EACCES;
    take(images, place, ret);
    (void)snprintf(ret->why, sizeof(ret->why), "%s",
                   !images->list[place].manifest.known ? "nothing is known of what it has"
                   : images->n_here > 1                ? "the only one to choose from"
                                                       : "the only one that is here");
    return n <= 1 || !images->list[place].manifest.known;
}

/* What speaks for an image. */
struct candidate {
    unsigned place;
    bool runs;  /* the language that is asked for */
    bool takes; /* packages, where the skill has some */
    size_t missing;
    size_t unfit; /* it has, in versions that are not asked for */
};

static bool is_better(const struct image_list *images, bool in_doubt, const struct candidate *a,
                      const struct candidate *b)
{
    const struct image_listed *x = &images->list[a->place], *y = &images->list[b->place];

    if (a->runs != b->runs)
        return a->runs;
    if (a->takes != b->takes)
        return a->takes;
    if (a->missing != b->missing)
        return a->missing < b->missing;
    if (a->unfit != b->unfit)
        return a->unfit < b->unfit;
    /* The usual one is the first: no other takes its place. */
    if ((in_doubt || a->missing > 0) && b->place == 0)
        return false;
    return x->bytes != y->bytes ? x->bytes < y->bytes : strcmp(x->name, y->name) < 0;
}

/* Appends to a text that has room for it. */
__attribute__((format(printf, 3, 4))) static bool append(char *text, size_t size,
                                                         const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text + len, size - len, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < size - len)
        return true;
    text[len] = '\0';
    return false;
}

/* What a reason names. */
enum telling { TELL_HAD, TELL_MISSING, TELL_UNFIT };

/* Two that ask for a thing have it named once. */
static bool is_named_before(const struct needs *needs, size_t at)
{
    const struct needs_item *item = &needs->items[at];

    for (size_t i = 0; i < at; i++)
        if (needs->items[i].unfit && needs->items[i].kind == item->kind &&
            strcmp(needs->items[i].name, item->name) == 0)
            return true;
    return false;
}

/* Whether a reason has a thing in it: of what is there, what not every image has. */
static bool is_telling(const struct needs *needs, size_t at, enum telling what)
{
    const struct needs_item *item = &needs->items[at];

    if (what == TELL_UNFIT)
        return item->unfit && !is_named_before(needs, at);
    /* Who has Python has its library. */
    return needs_is_needed(item) && (item->from == NEEDS_MISSING) == (what == TELL_MISSING) &&
           (what == TELL_MISSING || (item->scarce && item->from == NEEDS_IMAGE)) &&
           !needs_is_repeated(needs, at);
}

/* Which version of a thing a reason names: that of the image, or of Python what is wanted. */
static const char *version_of(const struct needs_item *item, enum telling what)
{
    if (what == TELL_UNFIT)
        return item->version;
    return item->kind == NEEDS_LANGUAGE && strcmp(item->name, "Python") == 0 ? item->detail
                                                                             : NULL;
}

/* " that has a, b and 3 more" */
static void append_things(char why[IMAGE_WHY_SIZE], const struct needs *needs,
                          enum telling what, const char *before)
{
    const size_t room = IMAGE_WHY_SIZE - sizeof(" and 1024 more");
    size_t named = 0, more = 0;

    for (size_t i = 0; i < needs->len; i++) {
        const struct needs_item *item = &needs->items[i];
        const char *version = version_of(item, what);

        if (!is_telling(needs, i, what))
            continue;
        if (more == 0 && named < NAMED_MAX &&
            append(why, room, "%s%s%s%s", named ? ", " : before, names_shown(item->name).text,
                   version ? " " : "", version ? names_shown(version).text : ""))
            named++;
        else
            more++;
    }
    if (more > 0)
        (void)append(why, IMAGE_WHY_SIZE, "%s%zu more", named ? " and " : before, more);
}

/* picky: it takes the skill's packages, and another one does not. */
static void give_reason(const struct needs *needs, unsigned n, const struct candidate *best,
                        bool in_doubt, bool picky, char ret[IMAGE_WHY_SIZE])
{
    const char *takes = picky ? " takes its packages and" : "";
    bool is_usual = in_doubt && best->place == 0;

    if (best->missing > 0) {
        (void)snprintf(ret, IMAGE_WHY_SIZE, "none of %u%s has all", n, takes);
        append_things(ret, needs, TELL_MISSING, ": this one lacks ");
    } else if (best->unfit > 0) {
        (void)snprintf(ret, IMAGE_WHY_SIZE, "none of %u%s has the versions", n, takes);
        append_things(ret, needs, TELL_UNFIT, ": this one has ");
    } else {
        (void)snprintf(ret, IMAGE_WHY_SIZE, "%s of %u%s",
                       is_usual ? "the usual one" : "smallest", n,
                       picky && !is_usual ? " that takes its packages" : "");
        append_things(ret, needs, TELL_HAD, picky ? " and has " : " that has ");
    }
}

void image_choose(struct needs *needs, const struct image_list *images, image_set_t allowed,
                  const char *lang, struct image_choice *ret)
{
    unsigned n = count_candidates(images, allowed);
    bool in_doubt = !needs_knows(needs), none = true, picky = false;
    struct candidate best = {0};

    /* Which another look left behind. */
    for (size_t i = 0; i < needs->len; i++)
        needs->items[i].scarce = false;
    for (unsigned i = 0; i < images->n_here; i++) {
        const struct image_manifest *manifest = &images->list[i].manifest;
        struct candidate one = {.place = i,
                                .runs = !lang || image_manifest_runs(manifest, lang),
                                .takes =
                                    !needs->has_packages || !image_manifest_obstacle(manifest)};

        if (!is_candidate(images, allowed, i))
            continue;
        one.missing = needs_count_missing(needs, images, i);
        one.unfit = needs_count_unfit(needs);
        picky = picky || !one.takes;
        if (none || is_better(images, in_doubt, &one, &best))
            best = one;
        none = false;
    }
    (void)needs_count_missing(needs, images, best.place);
    take(images, best.place, ret);
    give_reason(needs, n, &best, in_doubt, picky && best.takes, ret->why);
}

void image_list_names(const struct image_list *images, image_set_t allowed, char *ret,
                      size_t size)
{
    ret[0] = '\0';
    for (unsigned i = 0; i < images->n_here; i++)
        if (is_candidate(images, allowed, i))
            (void)append(ret, size, "%s%s", ret[0] ? ", " : "", images->list[i].name);
}
