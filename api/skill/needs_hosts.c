/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hosts a skill's texts name in URLs. A URL that is the name of an XML namespace or of a
 * schema is asked by nobody: what stands before it tells it, or that it is one of those whose
 * hosts give out such names.
 */
#include "api/skill/needs_internal.h"

#include "api/skill/url_host.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

/* How far before a URL the word that it is given to is looked for. A line may be as long as a
 * file and full of URLs. */
#define KEY_BYTES_MAX 128u

static bool is_host_byte(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == ':';
}

static bool ends_with(struct text_span part, const char *text)
{
    size_t len = strlen(text);

    return part.len >= len && strncasecmp(part.text + part.len - len, text, len) == 0;
}

static bool begins_with(struct text_span part, const char *text)
{
    return part.len >= strlen(text) && strncasecmp(part.text, text, strlen(text)) == 0;
}

/* The word that a value is given to: xmlns:w="…", "$schema": "…", WORD_NS = '…'. */
static struct text_span take_key(struct text_span before)
{
    struct text_span key;

    if (before.len > KEY_BYTES_MAX)
        before = (struct text_span){before.text + before.len - KEY_BYTES_MAX, KEY_BYTES_MAX};
    if (before.len > 0 && strchr("\"'", before.text[before.len - 1]))
        before.len--;
    key = text_trim(before, " \t=:");
    if (key.len == 0 || key.text + key.len == before.text + before.len)
        return (struct text_span){before.text, 0};
    before = text_trim(key, "\"'");
    key = (struct text_span){before.text + before.len, 0};
    while (key.len < before.len &&
           (isalnum((unsigned char)key.text[-1]) || strchr("_$:-", key.text[-1]))) {
        key.text--;
        key.len++;
    }
    return key;
}

/* What is called xmlns, a namespace or a schema, in XML, JSON, Python and JavaScript. */
static bool names_namespace(struct text_span key)
{
    return begins_with(key, "xmlns:") || ends_with(key, "xmlns") ||
           ends_with(key, "namespace") || ends_with(key, "_ns") || ends_with(key, "$schema") ||
           (key.len == 2 && ends_with(key, "ns"));
}

/* "{URL}" or "{URL}name", the names of elements in Clark's notation. */
static bool is_clark(struct text_span before, struct text_span rest)
{
    size_t len = 0;

    if (!ends_with(before, "{"))
        return false;
    while (len < rest.len && !strchr(" \t\"'`{}", rest.text[len]))
        len++;
    return len < rest.len && rest.text[len] == '}';
}

/* Of plain http, what the hosts that names are given out under have below them. */
static bool is_given_out(struct text_span rest)
{
    static const char *const begins[] = {"schemas.",       "ns.",          "purl.org/",
                                         "purl.oclc.org/", "www.w3.org/1", "www.w3.org/2",
                                         "www.w3.org/XML/"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (begins_with(rest, begins[i]))
            return true;
    return false;
}

static int add(struct needs_reader *r, const char *host, const char *file, unsigned line,
               bool connects)
{
    const char *network = r->skill ? r->skill->network : NULL;

    return needs_add(
        r, &(struct needs_item){.kind = NEEDS_HOST,
                                .name = (char *)(uintptr_t)host,
                                .file = (char *)(uintptr_t)file,
                                .line = line,
                                .connects = connects,
                                .declared = network && url_host_is_permitted(network, host)});
}

int needs_add_connection(struct needs_reader *r, const char *host, const char *file,
                         unsigned line)
{
    /* Of others' code only those who call it know what it asks. */
    if (strlen(host) > NEEDS_TEXT_MAX || needs_is_aside(file))
        return 0;
    return add(r, host, file, line, true);
}

/* The host behind "://" in a line. */
static int add_host(struct needs_reader *r, const char *file, unsigned n, struct text_span rest)
{
    char host[NEEDS_TEXT_MAX + 1];
    size_t len = 0;

    while (len < rest.len && is_host_byte(rest.text[len]))
        len++;
    while (len > 0 && (rest.text[len - 1] == '.' || rest.text[len - 1] == ':'))
        len--;
    if (len == 0 || len > NEEDS_TEXT_MAX)
        return 0;
    for (size_t i = 0; i < len; i++)
        host[i] = (char)tolower((unsigned char)rest.text[i]);
    host[len] = '\0';
    if (!strchr(host, '.') && strncmp(host, "localhost", 9) != 0)
        return 0;
    return add(r, host, file, n, false);
}

int needs_read_hosts(struct needs_reader *r, const char *file, unsigned n,
                     struct text_span line)
{
    static const char *const schemes[] = {"https", "http", "wss", "ws"};
    const char *at = line.text, *end = line.text + line.len;

    while ((at = memmem(at, (size_t)(end - at), "://", 3))) {
        struct text_span before = {line.text, (size_t)(at - line.text)}, rest;
        size_t scheme = 0;

        at += 3;
        rest = (struct text_span){at, (size_t)(end - at)};
        while (scheme < 4 && !ends_with(before, schemes[scheme]))
            scheme++;
        if (scheme == 4)
            continue;
        before.len -= strlen(schemes[scheme]);
        if (is_clark(before, rest) || names_namespace(take_key(before)) ||
            (scheme == 1 && is_given_out(rest)))
            continue;
        if (add_host(r, file, n, rest) < 0)
            return -ENOMEM;
    }
    return 0;
}
