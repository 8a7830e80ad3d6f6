/* SPDX-License-Identifier: Apache-2.0 */
#include "api/wheels/resolve.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 3u /* wheels that a message tells of */
#define WHY_SIZE  256u
#define COMPARE   16u /* the work of holding a requirement against a version, beside its text */
#define NAMES     8u  /* that are compared for the work of reading one byte */

/* A requirement that has to be met; borrowed of the wanted ones or of a chosen wheel. */
struct need {
    const struct requirement *requirement;
    const char *by;
};

/* A decision that can be taken back. */
struct choice {
    size_t need;  /* for which it was made */
    size_t needs; /* how many there were */
    size_t first; /* the wheels of that name */
    size_t n;
    size_t next; /* to try: twice over all of them, as of candidate() */
    size_t wheel;
};

struct search {
    const struct resolve *in;
    struct need *needs;
    size_t n_needs;
    struct choice *choices;
    size_t n_choices;
    uint64_t work;
    size_t deepest; /* need that could not be met, plus one */
    char why[ERR_MESSAGE_MAX];
};

int wheel_list_add(struct wheel_list *list, const struct wheel *wheel)
{
    struct wheel *items = reallocarray(list->items, list->n + 1, sizeof(*items)), copy = *wheel;

    if (!items)
        return -ENOMEM;
    list->items = items;
    copy.file = strdup(wheel->file);
    copy.why = wheel->why ? strdup(wheel->why) : NULL;
    items[list->n++] = copy;
    return copy.file && (copy.why || !wheel->why) ? 0 : -ENOMEM;
}

void wheel_list_finish(struct wheel_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].file);
        free(list->items[i].why);
        metadata_finish(&list->items[i].metadata);
    }
    free(list->items);
    *list = (struct wheel_list){.n = 0};
}

/* The order in which they are tried. */
static int compare_wheels(const void *a, const void *b)
{
    const struct wheel *x = a, *y = b;
    const int orders[] = {
        strcmp(x->name, y->name),
        (int)x->from - (int)y->from,
        pep440_compare(&y->version, &x->version),
        x->rank - y->rank,
        (x->build < y->build) - (x->build > y->build),
    };

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (orders[i])
            return orders[i];
    }
    return strcmp(x->file, y->file);
}

/* All that a choice costs is counted before it is done. */
static int spend(struct search *s, uint64_t work, struct err *err)
{
    s->work += work;
    return s->work <= RESOLVE_WORK_MAX
               ? 0
               : err_set(err, EINVAL,
                         "it takes too long to choose its packages: the requirements, their "
                         "markers and the wheels in question are too many together. Give "
                         "versions in requirements.txt (NAME==VERSION), or bring fewer wheels");
}

static int spend_names(struct search *s, size_t n, struct err *err)
{
    return spend(s, 1 + n / NAMES, err);
}

static void find_name(const struct search *s, const char *name, size_t *ret_first,
                      size_t *ret_n)
{
    const struct wheel_list *list = s->in->wheels;
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (strcmp(list->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (high = low; high < list->n && strcmp(list->items[high].name, name) == 0;)
        high++;
    *ret_first = low;
    *ret_n = high - low;
}

static const struct choice *find_choice(const struct search *s, const char *name)
{
    for (size_t i = 0; i < s->n_choices; i++) {
        if (strcmp(s->in->wheels->items[s->choices[i].wheel].name, name) == 0)
            return &s->choices[i];
    }
    return NULL;
}

static void set_why(struct wheel *wheel, const char *text)
{
    free(wheel->why);
    wheel->why = strdup(text);
}

/* What it took to read a wheel's requirements; what cannot be read may have been long. */
static uint64_t work_of(const struct wheel *wheel, bool is_read)
{
    uint64_t work = wheel->work + (is_read ? 0 : METADATA_BYTES_MAX);

    for (size_t i = 0; is_read && i < wheel->metadata.n_requires; i++) {
        const struct requirement *q = &wheel->metadata.requires_dist[i];

        work += COMPARE + strlen(q->shown) + (q->marker ? strlen(q->marker) : 0);
    }
    return work;
}

/* Reads what a wheel says of itself, once. 0, also where it cannot be taken then; or -errno. */
static int load(struct search *s, struct wheel *wheel, struct err *err)
{
    struct marker_python python = s->in->python;
    struct pep440 guest = {.release = {3, python.minor, python.micro}, .n_release = 3};
    struct err bad = {0};
    struct pep440_set asked;
    char text[WHY_SIZE];
    int r;

    if (wheel->from == WHEEL_OF_IMAGE || wheel->is_loaded || wheel->why)
        return 0;
    r = s->in->load(s->in->ctx, wheel, &bad);
    if (r < 0 && r != -EINVAL)
        return bad.code ? err_set(err, -r, "%s", bad.message) : r;
    wheel->is_loaded = r == 0;
    if (r < 0)
        set_why(wheel, bad.message);
    if (r < 0 && !wheel->why)
        return err_no_memory(err);
    r = spend(s, work_of(wheel, r == 0), err);
    if (r < 0 || wheel->why)
        return r;
    if (strcmp(wheel->metadata.name, wheel->name) != 0 ||
        pep440_compare(&wheel->metadata.version, &wheel->version) != 0) {
        set_why(wheel, "says in its METADATA that it is another package or version");
        return wheel->why ? 0 : err_no_memory(err);
    }
    (void)pep440_parse_set(wheel->metadata.python, strlen(wheel->metadata.python), &asked);
    (void)snprintf(text, sizeof(text), "3.%u.%u", python.minor, python.micro);
    if (!pep440_set_has(&asked, &guest, text)) {
        (void)snprintf(text, sizeof(text), "asks for Python %.100s; the image has 3.%u.%u",
                       wheel->metadata.python, python.minor, python.micro);
        set_why(wheel, text);
        return wheel->why ? 0 : err_no_memory(err);
    }
    return 0;
}

/* 1, or 0 with the reason, or -errno. */
static int meets(struct search *s, const struct requirement *q, struct wheel *wheel,
                 char why[WHY_SIZE], struct err *err)
{
    int r = spend(s, COMPARE + strlen(q->versions) + q->sha256.len, err);

    if (r < 0)
        return r;
    why[0] = '\0';
    if (!requirement_has(q, &wheel->version, wheel->version_text))
        (void)snprintf(why, WHY_SIZE, "is version %.60s", wheel->version_text);
    else if (wheel->from == WHEEL_OF_IMAGE && q->extras.len > 0)
        (void)snprintf(why, WHY_SIZE, "comes without extras");
    else if (wheel->from == WHEEL_OF_IMAGE && q->sha256.len > 0)
        (void)snprintf(why, WHY_SIZE, "is no file with a hash");
    if (why[0] || q->sha256.len == 0)
        return !why[0];
    r = wheel->sha256[0] ? 0 : s->in->digest(s->in->ctx, wheel, err);
    if (r < 0)
        return r;
    if (!skill_strings_has(&q->sha256, wheel->sha256))
        (void)snprintf(why, WHY_SIZE, "has another hash");
    return !why[0];
}

/*
 * Whether a wheel meets all that is known so far of its name, of which the need at is the one
 * in question: 1, 0 with the reason, -errno.
 */
static int fits(struct search *s, struct wheel *wheel, size_t at, char why[WHY_SIZE],
                struct err *err)
{
    int r = spend_names(s, s->n_needs, err);

    if (r < 0)
        return r;
    r = wheel->why ? 0 : load(s, wheel, err);
    if (r < 0)
        return r;
    if (wheel->why) {
        (void)snprintf(why, WHY_SIZE, "%s", wheel->why);
        return 0;
    }
    r = 1;
    for (size_t i = 0; r > 0 && i < s->n_needs; i++) {
        if (strcmp(s->needs[i].requirement->name, wheel->name) == 0)
            r = meets(s, s->needs[i].requirement, wheel, why, err);
        if (r == 0 && i != at)
            (void)snprintf(why + strlen(why), WHY_SIZE - strlen(why),
                           ", and %.100s requires %.60s", s->needs[i].by,
                           s->needs[i].requirement->shown);
    }
    return r;
}

/* Whether what is required of a name has its pre-releases count as any other: 0, 1, -errno. */
static int wants_pre(struct search *s, const char *name, struct err *err)
{
    int r = spend_names(s, s->n_needs, err);

    for (size_t i = 0; r == 0 && i < s->n_needs; i++) {
        const struct requirement *q = s->needs[i].requirement;

        if (strcmp(q->name, name) != 0)
            continue;
        r = spend(s, COMPARE + strlen(q->versions), err);
        if (r < 0)
            return r;
        r = requirement_wants_pre(q);
    }
    return r;
}

/* Adds a requirement where its marker holds, with the extras of who has it (NULL: none). */
static int add_if_applies(struct search *s, const struct requirement *requirement,
                          const char *by, const struct skill_strings *extras, struct err *err)
{
    uint64_t readings = 1 + (extras ? extras->len : 0);
    size_t len = requirement->marker ? strlen(requirement->marker) : 0;
    int r = spend(s, COMPARE + len * readings, err);

    if (r < 0 || !requirement_applies(requirement, &s->in->python, extras))
        return r;
    if (s->n_needs == RESOLVE_REQUIREMENTS_MAX)
        return err_set(err, EINVAL, "there are more than %u requirements",
                       RESOLVE_REQUIREMENTS_MAX);
    s->needs[s->n_needs++] = (struct need){requirement, by};
    return 0;
}

/* What a chosen wheel requires, with these extras of it (NULL: without any). */
static int add_needs_of(struct search *s, const struct wheel *wheel,
                        const struct skill_strings *extras, struct err *err)
{
    for (size_t i = 0; i < wheel->metadata.n_requires; i++) {
        int r = add_if_applies(s, &wheel->metadata.requires_dist[i], wheel->file, extras, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static bool has_all(const struct skill_strings *list, const struct skill_strings *texts)
{
    size_t n = 0;

    while (n < texts->len && skill_strings_has(list, texts->items[n]))
        n++;
    return n == texts->len;
}

/* Whether an earlier need asked for these extras too, where circles end: 1, 0, -errno. */
static int is_asked_before(struct search *s, size_t at, struct err *err)
{
    const struct requirement *q = s->needs[at].requirement;
    int r = spend_names(s, at, err);

    for (size_t i = 0; r == 0 && i < at; i++) {
        const struct requirement *other = s->needs[i].requirement;

        if (strcmp(other->name, q->name) != 0)
            continue;
        r = spend_names(s, q->extras.len * other->extras.len, err);
        if (r < 0)
            return r;
        r = has_all(&other->extras, &q->extras);
    }
    return r;
}

static void explain_wheels(struct search *s, size_t at, struct buf *out)
{
    const char *name = s->needs[at].requirement->name;
    size_t first, n;

    find_name(s, name, &first, &n);
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        struct wheel *wheel = &s->in->wheels->items[first + i];
        char why[WHY_SIZE];
        int r = fits(s, wheel, at, why, NULL);

        if (r < 0)
            return;
        if (r > 0)
            (void)snprintf(why, sizeof(why), "does not go with what else is required");
        (void)buf_printf(out, "%s%s %s", i ? "; " : ": ", wheel->file, why);
    }
    if (n > SHOWN_MAX)
        (void)buf_printf(out, "; and %zu more", n - SHOWN_MAX);
}

/* Keeps why a need cannot be met, and what to do, if nothing got further. */
static void explain(struct search *s, size_t at)
{
    const struct need *need = &s->needs[at];
    struct buf text = buf_init(8192);
    char remedy[128];
    size_t first, n;

    if (at + 1 <= s->deepest)
        return;
    s->deepest = at + 1;
    find_name(s, need->requirement->name, &first, &n);
    (void)buf_printf(&text, "%s, which %s requires, %s", need->requirement->shown, need->by,
                     n == 0 ? "is not there" : "cannot be had");
    explain_wheels(s, at, &text);
    (void)snprintf(remedy, sizeof(remedy), "%s for CPython 3.%u on Linux x86_64 into wheels/%s",
                   n == 0 ? ": put a wheel of it" : "; put one that fits,", s->in->python.minor,
                   n == 0 ? "" : ", or change what is required");
    /* However much there is to tell of wheels, this is told. */
    (void)snprintf(s->why, sizeof(s->why), "%.*s%s", (int)(sizeof(s->why) - 1 - strlen(remedy)),
                   buf_cstr(&text) ? buf_cstr(&text) : "", remedy);
    buf_finish(&text);
}

/* Takes the next wheel that fits. 1, 0 when there is none, or -errno. */
static int choose_next(struct search *s, struct choice *c, struct err *err)
{
    char why[WHY_SIZE];
    int pre = wants_pre(s, s->needs[c->need].requirement->name, err);

    if (pre < 0)
        return pre;
    for (; c->next < 2 * c->n; c->next++) {
        size_t i = c->first + (c->next < c->n ? c->next : c->next - c->n);
        struct wheel *wheel = &s->in->wheels->items[i];
        bool last = !pre && wheel->from != WHEEL_OF_SKILL && pep440_is_pre(&wheel->version);
        int r;

        /* Pre-releases only where nothing else fits; the skill's own were brought to be taken.
         */
        if (last != (c->next >= c->n))
            continue;
        r = fits(s, wheel, c->need, why, err);
        if (r < 0)
            return r;
        if (r > 0) {
            c->wheel = i;
            c->next++;
            return 1;
        }
    }
    return 0;
}

/* Takes decisions back until one can be taken otherwise. The need to go on from, or -errno. */
static int go_back(struct search *s, size_t *ret_at, struct err *err)
{
    while (s->n_choices > 0) {
        struct choice *c = &s->choices[s->n_choices - 1];
        int r;

        s->n_choices--;
        s->n_needs = c->needs;
        r = choose_next(s, c, err);
        if (r < 0)
            return r;
        if (r > 0) {
            *ret_at = c->need;
            s->n_choices++;
            return 0;
        }
    }
    return err_set(err, EINVAL, "%s", s->why);
}

/* A name that comes up for the first time. 1, 0 when no wheel of it fits, or -errno. */
static int decide(struct search *s, size_t at, struct err *err)
{
    struct choice *c = &s->choices[s->n_choices];
    int r;

    *c = (struct choice){.need = at, .needs = s->n_needs};
    find_name(s, s->needs[at].requirement->name, &c->first, &c->n);
    r = spend_names(s, c->n, err);
    if (r < 0)
        return r;
    r = choose_next(s, c, err);
    if (r > 0)
        s->n_choices++;
    return r;
}

/* Meets one need. 1, 0 when it cannot be, or -errno. */
static int meet(struct search *s, size_t at, struct err *err)
{
    const struct requirement *q = s->needs[at].requirement;
    const struct choice *chosen = find_choice(s, q->name);
    /* Chosen otherwise by go_back: it fits. */
    bool again = chosen && chosen->need == at;
    char why[WHY_SIZE];
    int r = spend_names(s, s->n_choices, err);

    if (r < 0)
        return r;
    r = again    ? 1
        : chosen ? meets(s, q, &s->in->wheels->items[chosen->wheel], why, err)
                 : decide(s, at, err);
    if (r <= 0)
        return r;
    chosen = chosen ? chosen : &s->choices[s->n_choices - 1];
    r = is_asked_before(s, at, err);
    if (r != 0)
        return r;
    r = add_needs_of(s, &s->in->wheels->items[chosen->wheel], &q->extras, err);
    return r < 0 ? r : 1;
}

static int search_all(struct search *s, struct err *err)
{
    size_t at = 0;

    while (at < s->n_needs) {
        int r = meet(s, at, err);

        if (r < 0)
            return r;
        at += r > 0;
        if (r > 0)
            continue;
        explain(s, at);
        r = go_back(s, &at, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int compare_places(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return x < y ? -1 : x > y;
}

static int hand_over(const struct search *s, struct resolved *ret, struct err *err)
{
    ret->n = s->n_choices;
    ret->wheels = calloc(s->n_choices + 1, sizeof(*ret->wheels));
    if (!ret->wheels)
        return err_no_memory(err);
    for (size_t i = 0; i < s->n_choices; i++)
        ret->wheels[i] = s->choices[i].wheel;
    qsort(ret->wheels, ret->n, sizeof(*ret->wheels), compare_places);
    return 0;
}

int resolve_run(const struct resolve *resolve, struct resolved *ret, struct err *err)
{
    _cleanup_free_ struct need *needs = calloc(RESOLVE_REQUIREMENTS_MAX, sizeof(*needs));
    _cleanup_free_ struct choice *choices = calloc(RESOLVE_REQUIREMENTS_MAX, sizeof(*choices));
    struct search s = {.in = resolve, .needs = needs, .choices = choices};
    int r = needs && choices ? 0 : err_no_memory(err);

    if (resolve->wheels->n > 0)
        qsort(resolve->wheels->items, resolve->wheels->n, sizeof(struct wheel), compare_wheels);
    for (size_t i = 0; r == 0 && i < resolve->wanted->n; i++) {
        const struct wanted *wanted = &resolve->wanted->items[i];

        r = add_if_applies(&s, &wanted->requirement, wanted->by, NULL, err);
    }
    if (r < 0)
        return r;
    r = search_all(&s, err);
    return r < 0 ? r : hand_over(&s, ret, err);
}
