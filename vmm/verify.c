/* SPDX-License-Identifier: Apache-2.0 */
#include "vmm/verify.h"

#include <errno.h>
#include <string.h>

#include "vmm/arch/arch.h"
#include "vmm/snapshot.h"
#include "vmm/state.h"

/* Every so many resets all of guest memory is compared, not only what the page map names. */
#define WHOLE_MEMORY_EVERY 64u

const bool verify_is_on = true;

static struct {
    struct state_writer restored; /* kept until the process ends */
    struct state state;           /* of it */
    uint64_t n_resets;
} reference;

static int save(struct machine *m, struct state_writer *w, struct state *ret_state,
                struct err *err)
{
    int r = snapshot_save_state(m, w, err);

    return r < 0 ? r : state_parse(w->out.data, w->out.len, w->schema, ret_state, err);
}

int verify_restored(struct machine *m, struct err *err)
{
    int r = save(m, &reference.restored, &reference.state, err);

    return r < 0 ? r : arch_verify_note(&m->kvm, err);
}

static int compare_section(const struct state *now, size_t i, struct err *err)
{
    const uint8_t *want = reference.state.sections[i].data;
    const uint8_t *got = now->sections[i].data;
    size_t len = reference.state.sections[i].len;

    if (now->sections[i].len != len)
        return err_set(err, EILSEQ, "section %s has another length after the reset",
                       now->schema->kinds[i].name);
    for (size_t at = 0; at < len; at++) {
        if (got[at] != want[at] && !arch_verify_moves(now->schema->kinds[i].tag, at))
            return err_set(err, EILSEQ,
                           "section %s, byte %zu: %#04x after the reset, %#04x after a restore",
                           now->schema->kinds[i].name, at, got[at], want[at]);
    }
    return 0;
}

static int compare_state(struct machine *m, struct err *err)
{
    _cleanup_state_writer_ struct state_writer w = {0};
    struct state now;
    int r = save(m, &w, &now, err);

    for (size_t i = 0; r >= 0 && i < now.schema->n_kinds; i++)
        r = compare_section(&now, i, err);
    return r < 0 ? r : arch_verify_compare(&m->kvm, err);
}

int verify_reset(struct machine *m, const struct private_pages *pages, struct err *err)
{
    bool whole = reference.n_resets++ % WHOLE_MEMORY_EVERY == 0;
    int r = compare_state(m, err);

    return r < 0 ? r : private_pages_verify(pages, whole, err);
}
