/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which image a skill runs in: the one that the request names, else the skill's own, else the
 * smallest that has everything the skill needs. It decides by what is read and by nothing else:
 * the same skill and the same images give the same choice.
 */
#ifndef SKILLVM_API_SKILL_IMAGE_CHOICE_H
#define SKILLVM_API_SKILL_IMAGE_CHOICE_H

#include "api/skill/image_list.h"

#define IMAGE_WHY_SIZE 160u

struct needs;

struct image_choice {
    unsigned place; /* in the list */
    char name[IMAGE_NAME_SIZE];
    char why[IMAGE_WHY_SIZE]; /* a few words, such as "smallest of 3 that has numpy" */
};

/* One that somebody ("SKILL.md", "the request") names. 0; -ENOENT: it is not here; -EACCES. */
int image_choose_named(const struct image_list *images, image_set_t allowed, const char *name,
                       const char *who, struct image_choice *ret);
/*
 * Where the choice is clear without a look at the skill: there is one, or nothing is known of
 * them. 1 with *ret; 0: look; -EACCES: none is here that is allowed.
 */
int image_choose_clear(const struct image_list *images, image_set_t allowed,
                       struct image_choice *ret);
/*
 * The smallest that has everything unguarded that is needed and that packages do not bring
 * (needs_bring()). lang is what the script that is to
 * run is in, or NULL: where some image runs it no other is taken. Of these, where the skill has
 * packages and some image takes such, no other is. Where none has everything,
 * one with the fewest missing; IMAGE_USUAL among equals of these, and where nothing is known to
 * be needed. For what image_choose_clear() leaves open. Where things are from is any image's on
 * return.
 */
void image_choose(struct needs *needs, const struct image_list *images, image_set_t allowed,
                  const char *lang, struct image_choice *ret);

/* "data, python": the images that are here and allowed, cut where they do not fit. */
void image_list_names(const struct image_list *images, image_set_t allowed, char *ret,
                      size_t size);

#endif
