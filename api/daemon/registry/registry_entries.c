/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/registry/registry_entries.h"

#include "api/daemon/registry/registry_internal.h"
#include "api/daemon/terms/ids.h"

#include <stdio.h>

enum statement {
    PAST_SKILLS,
    PAST_FILES,
    PAST_SESSIONS,
    COUNT_SKILLS,
    COUNT_FILES,
    COUNT_SESSIONS,
    N_STATEMENTS
};

/* Of entries that are numbers; of more than these no bucket has room. */
#define PAST_NUMBERS(table, prefix)                                                            \
    "SELECT COALESCE((SELECT CAST(substr(entry, 5) AS INTEGER) + 1 FROM " table                \
    " WHERE entry BETWEEN '" prefix "00000000000000000000000000000000'"                        \
    " AND '" prefix "00000000000000000000000999999999'"                                        \
    " AND substr(entry, 5) NOT GLOB '*[^0-9]*' ORDER BY entry DESC LIMIT 1), 0)"
#define COUNT(table) "SELECT COUNT(*) FROM " table " WHERE entry BETWEEN ?1 AND ?2"

static const char *const text[N_STATEMENTS] = {
    [PAST_SKILLS] = PAST_NUMBERS("skills", ID_SKILL),
    [PAST_FILES] = PAST_NUMBERS("files", ID_FILE_ROW),
    [PAST_SESSIONS] = PAST_NUMBERS("sessions", ID_SESSION),
    [COUNT_SKILLS] = COUNT("skills"),
    [COUNT_FILES] = COUNT("files"),
    [COUNT_SESSIONS] = COUNT("sessions"),
};

/* Of those kinds whose rows tenants make. */
static const struct {
    const char *prefix;
    enum statement past, count;
} kinds[] = {
    [CHANGE_SKILL] = {ID_SKILL, PAST_SKILLS, COUNT_SKILLS},
    [CHANGE_FILE] = {ID_FILE_ROW, PAST_FILES, COUNT_FILES},
    [CHANGE_SESSION] = {ID_SESSION, PAST_SESSIONS, COUNT_SESSIONS},
};

const struct registry_statements registry_entry_statements = {text, N_STATEMENTS};

static void name_entry(enum change_kind kind, uint64_t number, char ret[CHANGE_ID_SIZE])
{
    (void)snprintf(ret, CHANGE_ID_SIZE, "%s%032llu", kinds[kind].prefix,
                   (unsigned long long)number);
}

static int number_of(struct registry *registry, enum statement which,
                     const struct registry_value *values, uint64_t *ret, struct err *err)
{
    return registry_read_number(registry, REGISTRY_ENTRIES, which, values, "look up entries",
                                ret, err);
}

static int count(struct registry *registry, enum change_kind kind, uint64_t first,
                 uint64_t last, uint64_t *ret, struct err *err)
{
    char from[CHANGE_ID_SIZE], to[CHANGE_ID_SIZE];

    name_entry(kind, first, from);
    name_entry(kind, last, to);
    return number_of(registry, kinds[kind].count,
                     REGISTRY_VALUES(registry_text(from), registry_text(to)), ret, err);
}

/*
 * A number that no row has: the least, but where somebody wrote entries that are no numbers and
 * lie between; then it may be one past all.
 */
static int find_free(struct registry *registry, enum change_kind kind, uint64_t *ret,
                     struct err *err)
{
    uint64_t past = 0, low = 0, high, n = 0;
    int r = number_of(registry, kinds[kind].past, REGISTRY_VALUES({0}), &past, err);

    for (high = past; r == 0 && low < high;) {
        uint64_t middle = low + (high - low) / 2;

        r = count(registry, kind, low, middle, &n, err);
        if (n > middle - low)
            low = middle + 1;
        else
            high = middle;
    }
    if (r < 0)
        return r;
    r = count(registry, kind, low, low, &n, err);
    if (r == 0)
        *ret = n == 0 ? low : past;
    return r;
}

int registry_entry_make(struct registry *registry, enum change_kind kind, struct change *ret,
                        struct err *err)
{
    uint64_t number = 0;
    int r = find_free(registry, kind, &number, err);

    if (r < 0)
        return r;
    ret->kind = kind;
    name_entry(kind, number, ret->id);
    return 0;
}
