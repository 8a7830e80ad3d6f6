/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts may be reached: "api.example.com", "*.example.org:8443", and lists of these as
 * one text with single spaces between them. Names only, never addresses. Nothing here looks a
 * name up.
 */
#ifndef SKILLVM_BASE_HOST_PATTERN_H
#define SKILLVM_BASE_HOST_PATTERN_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_NAME_SIZE    254u /* with its NUL */
#define HOST_PATTERN_SIZE (HOST_NAME_SIZE + 8u)
#define HOST_LIST_MAX     64u /* patterns of a list */
#define HOST_PORTS_MAX    8u  /* that a list may give one name */

/*
 * Writes a host's name as it is compared: of small letters, without a dot at its end. 0, or
 * -EINVAL for what is none, which is what addresses are, too.
 */
int host_name_clean(const char *text, size_t len, char ret_name[HOST_NAME_SIZE]);

/*
 * Writes a pattern as it stands in a list. One that is broad, for what permits and not for what
 * asks, may be "*" for every host, have one label after its "*", and "*" for a port. 0, or
 * -EINVAL with a sentence about it that ends with what to write.
 */
int host_pattern_clean(const char *text, size_t len, bool is_broad,
                       char ret_pattern[HOST_PATTERN_SIZE], struct err *err);

/*
 * Adds the patterns of a text, which spaces or commas are between, to a list in *list; those
 * that it has already are left out. 0; -EINVAL as above; -E2BIG past HOST_LIST_MAX; -ENOMEM.
 */
int host_list_add(struct buf *list, const char *text, size_t len, bool is_broad,
                  struct err *err);

/* True when a clean list has a pattern for a clean name at that port; one without a port is for
 * 80 and 443. */
bool host_list_permits(const char *list, const char *name, uint16_t port);
/* Writes the ports that a list gives a name, each once. How many. "*" gives none. */
size_t host_list_ports(const char *list, const char *name, uint16_t ports[HOST_PORTS_MAX]);

#endif
