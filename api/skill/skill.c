/* SPDX-License-Identifier: Apache-2.0 */
#include "api/skill/skill.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int skill_strings_add(struct skill_strings *list, const char *format, ...)
{
    char **items = reallocarray(list->items, list->len + 1, sizeof(*items));
    va_list args;
    int len = -1;

    if (items) {
        list->items = items;
        va_start(args, format);
        len = vasprintf(&items[list->len], format, args);
        va_end(args);
    }
    if (len < 0)
        return list->error = -ENOMEM;
    list->len++;
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
