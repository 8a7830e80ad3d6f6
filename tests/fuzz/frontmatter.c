/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SKILL.md from any bytes: what is taken is text without NUL, with a description. What loading
 * refuses the specification's validator refuses too.
 */
#include "api/skill/frontmatter.h"
#include "api/skill/specification.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    if (text && !utf8_valid(text, strlen(text)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct skill_strings errors = {0};
    struct skill skill;
    struct err err = {0};

    if (specification_check((const char *)data, size, NULL, &errors) < 0)
        abort();
    bool is_strict = errors.len == 0;
    for (size_t i = 0; i < errors.len; i++)
        check_text(errors.items[i]);
    skill_strings_finish(&errors);

    if (frontmatter_parse((const char *)data, size, &skill, &err)) {
        if (!err.code || !err.message[0] || (is_strict && err.code == EINVAL))
            abort();
        return 0;
    }
    if (!skill.description || !skill.instructions || err.code)
        abort();
    check_text(skill.name);
    check_text(skill.description);
    check_text(skill.version);
    check_text(skill.instructions);
    for (size_t i = 0; i < skill.warnings.len; i++)
        check_text(skill.warnings.items[i]);
    skill_finish(&skill);
    return 0;
}
