/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/http/http_form.h"

#include "base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BOUNDARY_MAX 70u
#define HEADERS_MAX  (8u * 1024u) /* of a part */
#define AROUND_MAX   (1u << 20)   /* before, between and behind all parts, headers too */
#define CRLF         "\r\n"

enum state { BEFORE, DELIMITED, HEADERS, CONTENT, WHOLE };

struct http_form {
    struct http_form_events events;
    char delimiter[4 + BOUNDARY_MAX + 1]; /* CR LF, two dashes, the boundary */
    size_t delimiter_len;
    enum state state;
    struct buf held; /* came, and was not told of yet */
    uint64_t around; /* of what came: no content */
};

/* The value of a header's parameter, and its length; NULL without it. */
static char *find_parameter(const char *header, const char *name, size_t *ret_len)
{
    const char *at = strchr(header, ';');

    while (at) {
        const char *key = at + 1 + strspn(at + 1, " \t");
        const size_t key_len = strcspn(key, "=;");
        const bool quoted = key[key_len] == '=' && key[key_len + 1] == '"';
        const char *value = key + key_len + (key[key_len] == '=') + quoted;

        *ret_len = strcspn(value, quoted ? "\"" : "; \t");
        if (key_len == strlen(name) && strncasecmp(key, name, key_len) == 0)
            return (char *)(uintptr_t)value;
        at = strchr(value + *ret_len, ';');
    }
    return NULL;
}

struct http_form *http_form_create(const char *type, const struct http_form_events *events)
{
    size_t len = 0;
    const char *boundary = find_parameter(type, "boundary", &len);
    struct http_form *f;

    if (!boundary || len == 0 || len > BOUNDARY_MAX)
        return NULL;
    f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->events = *events;
    memcpy(f->delimiter, CRLF "--", 4);
    memcpy(f->delimiter + 4, boundary, len);
    f->delimiter_len = 4 + len;
    f->held = buf_init(4 * HTTP_FORM_BUFFER);
    /* As if a line had ended before it: then the first delimiter is like every other. */
    if (buf_append(&f->held, CRLF, 2) < 0) {
        http_form_destroy(f);
        return NULL;
    }
    return f;
}

/* Takes the lines of a part's headers, which are cut into strings, and tells of it. */
static int begin_part(struct http_form *f, char *headers)
{
    static const char disposition[] = "Content-Disposition:", type[] = "Content-Type:";
    char *name = NULL, *file_name = NULL, *said = NULL;
    size_t name_len = 0, file_name_len = 0;

    for (char *line = strtok_r(headers, CRLF, &headers); line;
         line = strtok_r(NULL, CRLF, &headers)) {
        if (strncasecmp(line, type, sizeof(type) - 1) == 0)
            said = line + sizeof(type) - 1 + strspn(line + sizeof(type) - 1, " \t");
        if (strncasecmp(line, disposition, sizeof(disposition) - 1) != 0)
            continue;
        name = find_parameter(line, "name", &name_len);
        file_name = find_parameter(line, "filename", &file_name_len);
    }
    if (name)
        name[name_len] = '\0';
    if (file_name)
        file_name[file_name_len] = '\0';
    return f->events.begin(f->events.ctx, name, file_name, said) ? 1 : -ECANCELED;
}

/* These give 1 where there is more to do, 0 where more has to come, or -errno. */
static int take_content(struct http_form *f)
{
    struct buf *held = &f->held;
    const char *end = memmem(held->data, held->len, f->delimiter, f->delimiter_len);
    size_t n = 0;

    if (end)
        n = (size_t)(end - (const char *)held->data);
    else if (held->len >= f->delimiter_len)
        n = held->len - f->delimiter_len + 1;
    if (n > 0 && f->state == BEFORE)
        return -EBADMSG;
    f->around -= n;
    if (n > 0 && !f->events.content(f->events.ctx, (const char *)held->data, n))
        return -ECANCELED;
    buf_consume(held, end ? n + f->delimiter_len : n);
    if (!end)
        return 0;
    f->state = DELIMITED;
    return 1;
}

static int take_headers(struct http_form *f)
{
    struct buf *held = &f->held;
    const size_t max = held->len < HEADERS_MAX ? held->len : HEADERS_MAX;
    char *end = memmem(held->data, max, CRLF CRLF, 4);
    size_t len;
    int r;

    if (!end)
        return max == HEADERS_MAX ? -EBADMSG : 0;
    len = (size_t)(end - (char *)held->data);
    *end = '\0';
    if (strlen((char *)held->data) != len)
        return -EBADMSG;
    r = begin_part(f, (char *)held->data);
    buf_consume(held, len + 4);
    f->state = CONTENT;
    return r;
}

static int take(struct http_form *f)
{
    if (f->state == WHOLE)
        buf_clear(&f->held);
    if (f->state == BEFORE || f->state == CONTENT)
        return take_content(f);
    if (f->held.len < 2)
        return 0;
    if (f->state == HEADERS)
        return take_headers(f);
    /* The line end stays: it is that before the headers, and there may be none of these. */
    f->state = memcmp(f->held.data, "--", 2) == 0 ? WHOLE : HEADERS;
    return f->state == WHOLE || memcmp(f->held.data, CRLF, 2) == 0 ? 1 : -EBADMSG;
}

int http_form_feed(struct http_form *f, const char *data, size_t len)
{
    int r = buf_append(&f->held, data, len) < 0 ? -ENOMEM : 1;

    f->around += len;
    while (r == 1)
        r = take(f);
    /* Or what is no part of it would go on for ever. */
    return r == 0 && f->around > AROUND_MAX ? -EBADMSG : r;
}

bool http_form_is_whole(const struct http_form *f)
{
    return f->state == WHOLE;
}

void http_form_destroy(struct http_form *f)
{
    if (!f)
        return;
    buf_finish(&f->held);
    free(f);
}
