/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/prometheus_text.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERIES_MAX   4096
#define FAMILIES_MAX 128
#define TEXT_MAX     512

struct sample {
    char series[TEXT_MAX]; /* name and labels as they stand there */
    char name[128];
    char labels[TEXT_MAX]; /* without le */
    char le[32];           /* "" without one */
    double value;
};

struct reader {
    char *why;
    size_t why_size;
    int line;
    char family[128]; /* whose samples come now */
    char type[16];    /* "" between HELP and TYPE */
    char families[FAMILIES_MAX][128];
    size_t n_families;
    struct sample *samples;
    size_t n_samples;
    size_t first; /* of the family */
};

static bool complain(struct reader *r, const char *what)
{
    (void)snprintf(r->why, r->why_size, "line %d: %s", r->line, what);
    return false;
}

/* Copies a name at *at; false when there is none. */
static bool take_name(const char **at, char *ret, size_t size, bool colon)
{
    size_t n = 0;

    while ((isalpha((unsigned char)**at) || **at == '_' || (colon && **at == ':') ||
            (n > 0 && isdigit((unsigned char)**at))) &&
           n + 1 < size)
        ret[n++] = *(*at)++;
    ret[n] = '\0';
    return n > 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len > n && strcmp(text + len - n, end) == 0;
}

/* Takes name="value" pairs up to the closing brace. */
static bool take_labels(struct reader *r, const char **at, struct sample *s)
{
    size_t len = 0;

    for (;;) {
        const char *from = *at;
        char name[64], value[256];
        size_t n = 0;

        if (!take_name(at, name, sizeof(name), false) || strncmp(name, "__", 2) == 0)
            return complain(r, "a label without a name");
        if (strncmp(*at, "=\"", 2) != 0)
            return complain(r, "a label without a value");
        for (*at += 2; **at != '"'; (*at)++) {
            if (**at == '\0' || **at == '\n' || n + 1 >= sizeof(value))
                return complain(r, "a label's value does not end");
            if (**at == '\\') {
                (*at)++;
                if (!strchr("\\\"n", **at))
                    return complain(r, "a wrong escape");
            }
            value[n++] = **at;
        }
        value[n] = '\0';
        (*at)++;
        if (strcmp(name, "le") == 0)
            (void)snprintf(s->le, sizeof(s->le), "%.31s", value);
        else
            len += (size_t)snprintf(s->labels + len, sizeof(s->labels) - len, "%.*s;",
                                    (int)(*at - from), from);
        if (**at == '}') {
            (*at)++;
            return true;
        }
        if (*(*at)++ != ',')
            return complain(r, "labels are not separated");
    }
}

static bool parse_value(const char *text, double *ret)
{
    char *end;

    if (strcmp(text, "+Inf") == 0) {
        *ret = INFINITY;
        return true;
    }
    if (!isdigit((unsigned char)text[0]) && text[0] != '-')
        return false;
    *ret = strtod(text, &end);
    return *end == '\0';
}

/* What a sample of this family may be called. */
static bool fits_family(const struct reader *r, const struct sample *s)
{
    size_t len = strlen(r->family);
    const char *rest = s->name + len;

    if (strncmp(s->name, r->family, len) != 0)
        return false;
    if (strcmp(r->type, "histogram") != 0)
        return *rest == '\0' && s->le[0] == '\0';
    if (strcmp(rest, "_bucket") == 0)
        return s->le[0] != '\0';
    return s->le[0] == '\0' && (strcmp(rest, "_sum") == 0 || strcmp(rest, "_count") == 0);
}

static bool read_sample(struct reader *r, const char *line)
{
    struct sample *s = &r->samples[r->n_samples];
    const char *at = line;

    if (r->n_samples == SERIES_MAX)
        return complain(r, "too many series");
    *s = (struct sample){0};
    if (!r->type[0])
        return complain(r, "a sample without HELP and TYPE");
    if (!take_name(&at, s->name, sizeof(s->name), true))
        return complain(r, "neither a comment nor a sample");
    if (*at == '{') {
        at++;
        if (!take_labels(r, &at, s))
            return false;
    }
    (void)snprintf(s->series, sizeof(s->series), "%.*s", (int)(at - line), line);
    if (*at++ != ' ' || !parse_value(at, &s->value))
        return complain(r, "a sample without a value");
    if (!fits_family(r, s))
        return complain(r, "a sample of another family");
    if (strcmp(r->type, "gauge") != 0 && s->value < 0)
        return complain(r, "a count below zero");
    for (size_t i = r->first; i < r->n_samples; i++) {
        if (strcmp(r->samples[i].series, s->series) == 0)
            return complain(r, "a series that is there already");
    }
    r->n_samples++;
    return true;
}

static const struct sample *find(const struct reader *r, const char *end, const char *labels)
{
    for (size_t i = r->first; i < r->n_samples; i++) {
        if (ends_with(r->samples[i].name, end) && strcmp(r->samples[i].labels, labels) == 0)
            return &r->samples[i];
    }
    return NULL;
}

/* The buckets of one histogram grow, and the last has everything. */
static bool check_buckets(struct reader *r, const char *labels)
{
    const struct sample *count = find(r, "_count", labels), *sum = find(r, "_sum", labels);
    double bound = -INFINITY, value = 0;

    if (!count || !sum)
        return complain(r, "a histogram without its sum or count");
    for (size_t i = r->first; i < r->n_samples; i++) {
        const struct sample *s = &r->samples[i];
        double le;

        if (!s->le[0] || strcmp(s->labels, labels) != 0)
            continue;
        if (!parse_value(s->le, &le) || le <= bound || s->value < value)
            return complain(r, "buckets that do not grow");
        bound = le;
        value = s->value;
    }
    if (!isinf(bound) || value != count->value)
        return complain(r, "a histogram that does not add up");
    return true;
}

static bool end_family(struct reader *r)
{
    if (r->family[0] && !r->type[0])
        return complain(r, "HELP without TYPE");
    for (size_t i = r->first; i < r->n_samples; i++) {
        if (strcmp(r->type, "histogram") == 0 && !check_buckets(r, r->samples[i].labels))
            return false;
    }
    r->first = r->n_samples;
    r->family[0] = '\0';
    r->type[0] = '\0';
    return true;
}

static bool read_help(struct reader *r, const char *line)
{
    const char *at = line + strlen("# HELP ");
    char name[128];

    if (!end_family(r))
        return false;
    if (!take_name(&at, name, sizeof(name), true) || *at++ != ' ' || !*at)
        return complain(r, "HELP without a name or a text");
    for (size_t i = 0; i < r->n_families; i++) {
        if (strcmp(r->families[i], name) == 0)
            return complain(r, "a family in two pieces");
    }
    if (r->n_families == FAMILIES_MAX)
        return complain(r, "too many families");
    memcpy(r->families[r->n_families++], name, sizeof(name));
    memcpy(r->family, name, sizeof(name));
    return true;
}

static bool read_type(struct reader *r, const char *line)
{
    const char *at = line + strlen("# TYPE ");
    char name[128];
    bool total;

    if (!take_name(&at, name, sizeof(name), true) || *at++ != ' ' ||
        strcmp(name, r->family) != 0 || r->type[0])
        return complain(r, "TYPE does not follow its HELP");
    (void)snprintf(r->type, sizeof(r->type), "%.15s", at);
    total = ends_with(name, "_total");
    if (strcmp(r->type, "counter") == 0)
        return total || complain(r, "a counter without _total");
    if (strcmp(r->type, "gauge") != 0 && strcmp(r->type, "histogram") != 0)
        return complain(r, "an unknown type");
    if (total || ends_with(name, "_count") || ends_with(name, "_sum"))
        return complain(r, "a name for another type");
    return true;
}

static bool read_line(struct reader *r, const char *line)
{
    r->line++;
    if (strncmp(line, "# HELP ", 7) == 0)
        return read_help(r, line);
    if (strncmp(line, "# TYPE ", 7) == 0)
        return read_type(r, line);
    return read_sample(r, line);
}

static bool read_all(struct reader *r, const char *text)
{
    char line[1024];

    while (*text) {
        const char *end = strchr(text, '\n');
        size_t len = end ? (size_t)(end - text) : 0;

        if (!end)
            return complain(r, "the last line does not end");
        if (len >= sizeof(line))
            return complain(r, "a line that is too long");
        memcpy(line, text, len);
        line[len] = '\0';
        if (!read_line(r, line))
            return false;
        text = end + 1;
    }
    return end_family(r);
}

/* The caller frees reader.samples. */
static bool load(struct reader *r, const char *text, char *why, size_t size)
{
    *r = (struct reader){.why = why, .why_size = size};
    r->samples = calloc(SERIES_MAX, sizeof(*r->samples));
    return r->samples && read_all(r, text);
}

bool prometheus_check(const char *text, char *ret_why, size_t size)
{
    struct reader r;
    bool ok = load(&r, text, ret_why, size);

    free(r.samples);
    return ok;
}

bool prometheus_value(const char *text, const char *series, double *ret)
{
    struct reader r;
    char why[128];
    bool found = false;

    (void)load(&r, text, why, sizeof(why));
    for (size_t i = 0; i < r.n_samples && !found; i++) {
        found = strcmp(r.samples[i].series, series) == 0;
        if (found)
            *ret = r.samples[i].value;
    }
    free(r.samples);
    return found;
}

size_t prometheus_count(const char *text)
{
    struct reader r;
    char why[128];
    size_t n;

    (void)load(&r, text, why, sizeof(why));
    n = r.n_samples;
    free(r.samples);
    return n;
}
