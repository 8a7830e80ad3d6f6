/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/daemon/answer.h"

#include "tests/unit/cmocka_all.h"

#include "base/cleanup.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CLEANUP_WITH(cJSON *, cJSON_Delete)

void answer_finish(struct answer *a)
{
    free(a->headers);
    free(a->body);
    *a = (struct answer){0};
}

/* True for an object with all members of another, or for one that holds such an object. */
static bool holds(const cJSON *tree, const cJSON *wanted)
{
    const cJSON *item;
    bool all = cJSON_IsObject(tree);

    cJSON_ArrayForEach(item, wanted) {
        const cJSON *own = cJSON_GetObjectItemCaseSensitive(tree, item->string);

        all = all && own && cJSON_Compare(own, item, true);
    }
    if (all)
        return true;
    cJSON_ArrayForEach(item, tree) {
        if (holds(item, wanted))
            return true;
    }
    return false;
}

bool answer_has(const struct answer *a, const char *part)
{
    _cleanup_(cJSON_Delete) cJSON *tree = NULL, *wanted = NULL;
    char members[1024];

    if (!a->body)
        return false;
    /* A name is the least that there is to ask for: a piece of text is not taken for JSON. */
    if (*part == '"' && strstr(part, "\":")) {
        (void)snprintf(members, sizeof(members), "{%s}", part);
        wanted = cJSON_Parse(members);
        tree = wanted ? cJSON_Parse(a->body) : NULL;
    }
    return tree ? holds(tree, wanted) : strstr(a->body, part) != NULL;
}

/* How many members have a name, in the order of the text; *ret_first gets the first of them. */
static unsigned find(const cJSON *tree, const char *name, const cJSON **ret_first)
{
    const cJSON *item;
    unsigned n = 0;

    cJSON_ArrayForEach(item, tree) {
        const bool is_it = item->string && strcmp(item->string, name) == 0;

        if (is_it && !*ret_first)
            *ret_first = item;
        n += is_it + find(item, name, ret_first);
    }
    return n;
}

unsigned answer_count(const struct answer *a, const char *name)
{
    _cleanup_(cJSON_Delete) cJSON *tree = cJSON_Parse(a->body);
    const cJSON *first = NULL;

    if (!tree)
        fail_msg("no JSON: %s", a->body);
    return find(tree, name, &first);
}

double answer_number(const struct answer *a, const char *name)
{
    _cleanup_(cJSON_Delete) cJSON *tree = cJSON_Parse(a->body);
    const cJSON *first = NULL;

    (void)find(tree, name, &first);
    if (!cJSON_IsNumber(first))
        fail_msg("no number %s: %s", name, a->body);
    return cJSON_GetNumberValue(first);
}

void answer_text(const struct answer *a, const char *name, char *ret, size_t size)
{
    _cleanup_(cJSON_Delete) cJSON *tree = cJSON_Parse(a->body);
    const cJSON *first = NULL;

    (void)find(tree, name, &first);
    if (!cJSON_IsString(first))
        fail_msg("no text %s: %s", name, a->body);
    assert_true((size_t)snprintf(ret, size, "%s", cJSON_GetStringValue(first)) < size);
}

void answer_execution_path(const struct answer *a, char *ret, size_t size)
{
    char id[38];

    answer_text(a, "execution_id", id, sizeof(id));
    assert_true((size_t)snprintf(ret, size, "/v1/executions/%s", id) < size);
}
