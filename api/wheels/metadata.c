/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/metadata.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int take_version(struct metadata *m, const char *value, size_t len, struct err *err)
{
    if (len >= sizeof(m->version_text) || pep440_parse(value, len, &m->version) < 0)
        return err_set(err, EINVAL, "its METADATA gives no version that can be read");
    (void)snprintf(m->version_text, sizeof(m->version_text), "%.*s", (int)len, value);
    return 0;
}

static int take_python(struct metadata *m, const char *value, size_t len, struct err *err)
{
    struct pep440_set set;

    if (len >= sizeof(m->python) || pep440_parse_set(value, len, &set) < 0)
        return err_set(err, EINVAL, "its METADATA asks for a Python that cannot be understood");
    (void)snprintf(m->python, sizeof(m->python), "%.*s", (int)len, value);
    return 0;
}

static int take_requirement(struct metadata *m, const char *value, size_t len, struct err *err)
{
    struct requirement *list;
    int r;

    if (m->n_requires == METADATA_REQUIRES_MAX)
        return err_set(err, EINVAL, "its METADATA has more than %u requirements",
                       METADATA_REQUIRES_MAX);
    list = reallocarray(m->requires_dist, m->n_requires + 1, sizeof(*list));
    if (!list)
        return err_no_memory(err);
    m->requires_dist = list;
    r = requirement_parse(value, len, &list[m->n_requires], err);
    if (r == 0)
        m->n_requires++;
    else if (r == -EINVAL)
        err_prefix(err, "its METADATA");
    return r;
}

static int take_field(struct metadata *m, char *line, size_t len, struct err *err)
{
    const char *colon = memchr(line, ':', len), *value;
    size_t key = colon ? (size_t)(colon - line) : 0, n;

    if (!colon)
        return 0;
    value = colon + 1;
    value += strspn(value, " \t");
    n = len - (size_t)(value - line);
    while (n > 0 && strchr(" \t\r", value[n - 1]))
        n--;
    if (key == 4 && strncasecmp(line, "Name", key) == 0)
        return tags_normalize(value, n, m->name) < 0
                   ? err_set(err, EINVAL, "its METADATA gives no name that can be read")
                   : 0;
    if (key == 7 && strncasecmp(line, "Version", key) == 0)
        return take_version(m, value, n, err);
    if (key == 15 && strncasecmp(line, "Requires-Python", key) == 0)
        return take_python(m, value, n, err);
    if (key == 13 && strncasecmp(line, "Requires-Dist", key) == 0)
        return take_requirement(m, value, n, err);
    return 0;
}

/* The end of a field, whose further lines begin with white space; these become one. */
static size_t end_of_field(char *text, size_t len)
{
    size_t at = 0;

    for (;;) {
        char *end = memchr(text + at, '\n', len - at);

        if (!end)
            return len;
        at = (size_t)(end - text);
        if (at + 1 == len || (text[at + 1] != ' ' && text[at + 1] != '\t'))
            return at;
        text[at++] = ' ';
    }
}

static int take_fields(struct metadata *m, char *text, size_t len, struct err *err)
{
    while (len > 0 && text[0] != '\n' && !(len > 1 && text[0] == '\r' && text[1] == '\n')) {
        size_t n = end_of_field(text, len);
        int r;

        text[n] = '\0'; /* there is a byte behind the last */
        r = take_field(m, text, n, err);
        if (r < 0)
            return r;
        n += n < len;
        text += n;
        len -= n;
    }
    if (!m->name[0] || !m->version_text[0])
        return err_set(err, EINVAL, "its METADATA has no Name or no Version");
    return 0;
}

int metadata_parse(const char *text, size_t len, struct metadata *ret, struct err *err)
{
    struct metadata m = {.n_requires = 0};
    _cleanup_free_ char *copy = malloc(len + 1);
    int r;

    if (!copy)
        return err_no_memory(err);
    memcpy(copy, text, len);
    copy[len] = '\0';
    r = take_fields(&m, copy, len, err);
    if (r < 0)
        metadata_finish(&m);
    else
        *ret = m;
    return r;
}

void metadata_finish(struct metadata *metadata)
{
    for (size_t i = 0; i < metadata->n_requires; i++)
        requirement_finish(&metadata->requires_dist[i]);
    free(metadata->requires_dist);
    *metadata = (struct metadata){.n_requires = 0};
}
