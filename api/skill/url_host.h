/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that a URL in a stranger's source is for, where all of its name stands there. It
 * looks no name up.
 */
#ifndef SKILLVM_API_SKILL_URL_HOST_H
#define SKILLVM_API_SKILL_URL_HOST_H

#include "base/host_pattern.h"
#include "base/text.h"

#define URL_HOST_SIZE HOST_PATTERN_SIZE /* with a colon and a port */

/*
 * Writes the host of an http, https, ws or wss URL, as "api.example.com" or, where it names a
 * port, "api.example.com:8443". False for what is none of these, for addresses and names of
 * one label, which no skill can declare, and, where something unknown follows the text (not
 * is_whole), for a host that may go on in that.
 */
bool url_host_take(struct text_span url, bool is_whole, char ret[URL_HOST_SIZE]);
/* The same of "api.example.com" or "api.example.com:8443" alone. */
bool url_host_take_bare(struct text_span host, char ret[URL_HOST_SIZE]);
/* Whether a list, as of base/host_pattern.h, permits such a host; without a port at 80 or 443.
 */
bool url_host_is_permitted(const char *list, const char *host);

#endif
