/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/skill.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 0))) static int add(struct skill_strings *list,
                                                     const char *format, va_list args)
{
    char **items = reallocarray(list->items, list->len + 1, sizeof(*items));

    list->items = items ? items : list->items;
    if (!items || vasprintf(&items[list->len], format, args) < 0)
        return list->error = -ENOMEM;
    list->len++;
    return 0;
}

int skill_strings_add(struct skill_strings *list, const char *format, ...)
{
    va_list args;
    int r;

    va_start(args, format);
    r = add(list, format, args);
    va_end(args);
    return r;
}

int skill_warn(struct skill_strings *warnings, const char *format, ...)
{
    va_list args;
    int r;

    if (warnings->len >= SKILL_WARNINGS_MAX)
        return 0;
    if (warnings->len == SKILL_WARNINGS_MAX - 1)
        return skill_strings_add(warnings, "there is more to warn of, which is left out");
    va_start(args, format);
    r = add(warnings, format, args);
    va_end(args);
    return r;
}

int skill_strings_append(struct skill_strings *list, const struct skill_strings *more)
{
    for (size_t i = 0; i < more->len; i++)
        (void)skill_strings_add(list, "%s", more->items[i]);
    return list->error;
}

bool skill_strings_has(const struct skill_strings *list, const char *text)
{
    for (size_t i = 0; i < list->len; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

int skill_strings_insert(struct skill_strings *list, const char *text, size_t max)
{
    size_t low = 0, high = list->len;
    char *added;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(list->items[middle], text);

        if (order == 0)
            return 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (list->len == max)
        return 0;
    if (skill_strings_add(list, "%s", text) < 0)
        return -ENOMEM;
    added = list->items[list->len - 1];
    memmove(list->items + low + 1, list->items + low,
            (list->len - 1 - low) * sizeof(*list->items));
    list->items[low] = added;
    return 0;
}

void skill_strings_finish(struct skill_strings *list)
{
    for (size_t i = 0; i < list->len; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct skill_strings){0};
}

void skill_finish(struct skill *skill)
{
    free(skill->name);
    free(skill->description);
    free(skill->license);
    free(skill->compatibility);
    free(skill->allowed_tools);
    free(skill->version);
    free(skill->lang);
    free(skill->entry_point);
    free(skill->image);
    free(skill->network);
    for (size_t i = 0; i < skill->n_metadata; i++) {
        free(skill->metadata[i].key);
        free(skill->metadata[i].value);
    }
    free(skill->metadata);
    free(skill->input_schema);
    free(skill->instructions);
    skill_strings_finish(&skill->warnings);
    *skill = (struct skill){0};
}
