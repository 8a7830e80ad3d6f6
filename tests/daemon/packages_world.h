/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon with a wheelhouse, and skills with wheels for it. Packages may have 10 entries and
 * one MiB. Only for test programs of cmocka.
 */
#ifndef SKILLVM_TESTS_DAEMON_PACKAGES_WORLD_H
#define SKILLVM_TESTS_DAEMON_PACKAGES_WORLD_H

#include "tests/daemon/daemon_harness.h"

#include <stddef.h>

#define expect harness_expect
#define TYPE   "Content-Type: application/octet-stream\r\n"
#define PUSH   "/v1/skills"

struct world {
    struct harness h;
    char house[128];
};

/* Content that may hold NULs; data is owned. */
struct bytes {
    char *data;
    size_t len;
};

struct part {
    const char *path;
    struct bytes content;
};

/* For cmocka: with the image python alone; with newer, bare, old and large beside it; the end.
 */
int packages_start(void **state);
int packages_start_with_images(void **state);
int finish(void **state);

struct bytes text(const char *content);
/* A wheel with one module that has its own name. */
struct bytes make_wheel(const char *name, const char *requires, const char *content);
/* One with more entries than packages may have. */
struct bytes make_busy_wheel(const char *name);
/* A tar of a skill with these files, which are freed. */
struct bytes make_skill(const char *name, const char *script, struct part *parts);
/* With "top", which requires "base" of its wheels and "yaml-one" of the image. */
struct bytes good_skill(const char *name);
/* Sends it to a path and frees it. */
struct answer send_skill(const struct world *w, const char *path, struct bytes skill);
/* Puts a wheel into the wheelhouse, and frees it. */
void put_in_house(const struct world *w, const char *file, struct bytes wheel);
void has(const struct answer *a, const char *part);

#endif
