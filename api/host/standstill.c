/* SPDX-License-Identifier: Apache-2.0 */
#include "api/host/standstill.h"

#include "base/clock.h"

static uint32_t longer(uint32_t pause_ms)
{
    if (pause_ms == 0)
        return STANDSTILL_PAUSE_MS;
    return pause_ms < STANDSTILL_PAUSE_MAX_MS / 2 ? 2 * pause_ms : STANDSTILL_PAUSE_MAX_MS;
}

bool standstill_begin(struct standstill *s, uint64_t now_ns)
{
    bool is_new = !s->spoken_of;

    /* Each of the writes that found no room says so. */
    if (s->since_ns != 0 && s->asked_ns == 0)
        return false;
    s->pause_ms = is_new ? 0 : longer(s->pause_ms);
    s->next_ns = now_ns + s->pause_ms * NS_PER_MS;
    s->asked_ns = 0;
    s->spoken_of = true;
    if (s->since_ns == 0)
        s->since_ns = now_ns;
    return is_new;
}

uint64_t standstill_end(struct standstill *s, uint64_t now_ns)
{
    uint64_t stood_ns = s->since_ns != 0 ? now_ns - s->since_ns : 0;

    s->since_ns = 0;
    s->asked_ns = 0;
    s->resumed_ns = now_ns;
    return stood_ns;
}

bool standstill_is_over(struct standstill *s, uint64_t now_ns)
{
    if (!s->spoken_of || s->since_ns != 0 ||
        now_ns - s->resumed_ns < STANDSTILL_CALM_MS * NS_PER_MS)
        return false;
    s->spoken_of = false;
    return true;
}

bool standstill_may_ask(const struct standstill *s, uint64_t now_ns)
{
    return s->since_ns != 0 && now_ns >= s->next_ns;
}

void standstill_asked(struct standstill *s, uint64_t now_ns)
{
    if (s->asked_ns == 0)
        s->asked_ns = now_ns;
    if (s->pause_ms == 0)
        s->pause_ms = STANDSTILL_PAUSE_MS;
    s->next_ns = now_ns + s->pause_ms * NS_PER_MS;
}

bool standstill_is_lost(const struct standstill *s, uint32_t patience_ms, uint64_t now_ns)
{
    return s->since_ns != 0 && s->asked_ns != 0 &&
           now_ns > s->asked_ns + patience_ms * NS_PER_MS;
}

void standstill_excuse(struct standstill *s, uint64_t gap_ns)
{
    if (s->since_ns != 0)
        s->since_ns += gap_ns;
    if (s->asked_ns != 0)
        s->asked_ns += gap_ns;
}
