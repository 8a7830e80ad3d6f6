/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/routes/holding.h"

#include "api/daemon/callers/uses.h"

#include <stdlib.h>

struct holding {
    struct daemon *daemon;
    const char *tenant; /* the execution's */
    uint64_t bytes;
    struct use **uses;
    size_t n, size;
};

static void give_back(void *ctx)
{
    struct holding *h = ctx;

    for (size_t i = 0; i < h->n; i++)
        uses_end(h->uses[i]);
    if (h->bytes > 0)
        held_remove(h->daemon->held, h->tenant, HTTP_HELD_BODY, h->bytes);
    free(h->uses);
    free(h);
}

int holding_begin(struct daemon *d, struct execution *e, struct err *err)
{
    struct holding *h = calloc(1, sizeof(*h));

    if (!h)
        return err_no_memory(err);
    h->daemon = d;
    h->tenant = e->tenant;
    e->holding = h;
    e->give_back = give_back;
    return 0;
}

/* For one more. */
static int make_place(struct holding *h, struct err *err)
{
    size_t size = h->size ? 2 * h->size : 4;
    struct use **uses;

    if (h->n < h->size)
        return 0;
    uses = reallocarray(h->uses, size, sizeof(struct use *));
    if (!uses)
        return err_no_memory(err);
    h->uses = uses;
    h->size = size;
    return 0;
}

int holding_use(struct execution *e, int fd, const char *link, struct err *err)
{
    struct holding *h = e->holding;
    int r = make_place(h, err);

    if (r < 0)
        return r;
    r = uses_begin(h->daemon->uses, h->tenant, fd, link, &h->uses[h->n], err);
    h->n += r == 0;
    return r;
}

void holding_keep(struct execution *e, uint64_t bytes)
{
    struct holding *h = e->holding;

    h->bytes += bytes;
}
