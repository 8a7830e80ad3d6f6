/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/requirement.h"

#include "base/package_name.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct part {
    const char *at, *end;
};

static void skip_space(struct part *p)
{
    while (p->at < p->end && isspace((unsigned char)*p->at))
        p->at++;
}

static struct part trim(struct part p)
{
    skip_space(&p);
    while (p.end > p.at && isspace((unsigned char)p.end[-1]))
        p.end--;
    return p;
}

static size_t length(struct part p)
{
    return (size_t)(p.end - p.at);
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.';
}

static int refuse(struct part whole, const char *what, struct err *err)
{
    return err_set(err, EINVAL, "\"%.*s\" is no requirement: %s",
                   (int)(length(whole) < 120 ? length(whole) : 120), whole.at, what);
}

static int take_name(struct part *p, char ret[REQUIREMENT_NAME_MAX + 1])
{
    const char *begin;

    skip_space(p);
    begin = p->at;
    while (p->at < p->end && is_name_byte(*p->at))
        p->at++;
    return package_name_clean(begin, (size_t)(p->at - begin), ret, REQUIREMENT_NAME_MAX + 1);
}

/* What is between brackets, if there are any. */
static int take_extras(struct part *p, struct skill_strings *ret)
{
    char name[REQUIREMENT_NAME_MAX + 1];

    skip_space(p);
    if (p->at == p->end || *p->at != '[')
        return 0;
    p->at++;
    for (skip_space(p); p->at < p->end && *p->at != ']'; skip_space(p)) {
        if (ret->len == REQUIREMENT_EXTRAS_MAX || take_name(p, name) < 0)
            return -EINVAL;
        if (skill_strings_insert(ret, name, REQUIREMENT_EXTRAS_MAX) < 0)
            return -ENOMEM;
        skip_space(p);
        if (p->at < p->end && *p->at == ',')
            p->at++;
        else if (p->at < p->end && *p->at != ']')
            return -EINVAL;
    }
    if (p->at == p->end)
        return -EINVAL;
    p->at++;
    return 0;
}

static int keep(struct part part, char **ret)
{
    *ret = strndup(part.at, length(part));
    return *ret ? 0 : -ENOMEM;
}

/* What is between parentheses, or stands alone. */
static int take_versions(struct part versions, char **ret)
{
    struct pep440_set set;

    versions = trim(versions);
    if (length(versions) > 1 && versions.at[0] == '(' && versions.end[-1] == ')') {
        versions.at++;
        versions.end--;
    }
    if (pep440_parse_set(versions.at, length(versions), &set) < 0)
        return -EINVAL;
    return keep(versions, ret);
}

static int take_all(struct part whole, struct requirement *ret, struct err *err)
{
    struct part p = whole, versions, marker, shown;
    const char *semicolon;
    int r;

    if (take_name(&p, ret->name) < 0)
        return refuse(whole, "it begins with the name of a package", err);
    r = take_extras(&p, &ret->extras);
    if (r < 0)
        return r == -ENOMEM ? r : refuse(whole, "its extras are NAME[A,B]", err);
    skip_space(&p);
    if (p.at < p.end && *p.at == '@')
        return refuse(whole,
                      "it names an address, and nothing is fetched: put the wheel into wheels/ "
                      "and write NAME==VERSION",
                      err);
    semicolon = memchr(p.at, ';', length(p));
    versions = (struct part){p.at, semicolon ? semicolon : p.end};
    r = take_versions(versions, &ret->versions);
    if (r < 0)
        return r == -ENOMEM ? r : refuse(whole, "its versions are such as >=1.0,<2", err);
    shown = trim((struct part){whole.at, versions.end});
    r = keep(shown, &ret->shown);
    if (r < 0 || !semicolon)
        return r;
    marker = trim((struct part){semicolon + 1, p.end});
    /* Read once for whether it can be: later it counts. */
    if (marker_holds(marker.at, length(marker), &(struct marker_python){11, 0}, "") < 0)
        return refuse(whole, "what follows \";\" is no marker", err);
    return keep(marker, &ret->marker);
}

int requirement_parse(const char *text, size_t len, struct requirement *ret, struct err *err)
{
    struct requirement requirement = {.marker = NULL};
    struct part whole = trim((struct part){text, text + len});
    int r;

    if (len > REQUIREMENT_TEXT_MAX || memchr(text, 0, len))
        return err_set(err, EINVAL, "a requirement is too long or holds a NUL");
    r = take_all(whole, &requirement, err);
    if (r < 0)
        requirement_finish(&requirement);
    else
        *ret = requirement;
    return r == -ENOMEM ? err_no_memory(err) : r;
}

void requirement_finish(struct requirement *requirement)
{
    skill_strings_finish(&requirement->extras);
    skill_strings_finish(&requirement->sha256);
    free(requirement->versions);
    free(requirement->marker);
    free(requirement->shown);
    *requirement = (struct requirement){.marker = NULL};
}

bool requirement_has(const struct requirement *requirement, const struct pep440 *version,
                     const char *text)
{
    struct pep440_set set;

    return pep440_parse_set(requirement->versions, strlen(requirement->versions), &set) == 0 &&
           pep440_set_has(&set, version, text);
}

bool requirement_wants_pre(const struct requirement *requirement)
{
    struct pep440_set set;

    return pep440_parse_set(requirement->versions, strlen(requirement->versions), &set) == 0 &&
           pep440_set_wants_pre(&set);
}

int requirement_applies(const struct requirement *requirement,
                        const struct marker_python *python, const struct skill_strings *extras)
{
    const char *marker = requirement->marker;

    if (!marker || marker_holds(marker, strlen(marker), python, "") > 0)
        return 1;
    for (size_t i = 0; extras && i < extras->len; i++) {
        if (marker_holds(marker, strlen(marker), python, extras->items[i]) > 0)
            return 1;
    }
    return 0;
}
