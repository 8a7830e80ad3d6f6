/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/reachable.h"

#include "api/daemon/egress/address.h"
#include "api/daemon/egress/fixed_names.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/* A lookup may take this long, and what it found is used for so long. */
#define LOOKUP_NS (6 * NS_PER_SECOND)
#define KEPT_NS   (60 * NS_PER_SECOND)

struct names names_init(const struct egress_settings *settings,
                        const struct egress_rules *rules, int epoll_fd)
{
    return (struct names){.settings = settings, .rules = *rules, .epoll_fd = epoll_fd};
}

void names_finish(struct names *names)
{
    lookup_destroy(names->lookup);
    names->lookup = NULL;
}

static void set_bad(struct name *name, enum egress_refusal refusal, const char *why)
{
    name->state = NAME_BAD;
    name->refusal = refusal;
    (void)snprintf(name->refused, sizeof(name->refused), "%s", why);
}

/* True for an address that may be connected to; of others the name says what they are. */
static bool check_address(struct name *name, const union ip_address *found)
{
    const char *kind = egress_address_kind(found);
    char text[INET6_ADDRSTRLEN] = "", why[EGRESS_REFUSED_SIZE];
    bool is_ipv6 = found->any.sa_family == AF_INET6;

    if (!kind && egress_address_is_own(found))
        kind = "this machine's own";
    if (!kind)
        return true;
    (void)inet_ntop(found->any.sa_family,
                    is_ipv6 ? (const void *)&found->ipv6.sin6_addr
                            : (const void *)&found->ipv4.sin_addr,
                    text, sizeof(text));
    (void)snprintf(why, sizeof(why), "it resolves to %s: %s", text, kind);
    set_bad(name, EGRESS_BAD_ADDRESS, why);
    return false;
}

/* The place of the first one that is left, of another family than the last where there is one.
 */
static size_t next_address(const union ip_address *found, size_t n, const bool *is_kept,
                           sa_family_t last)
{
    size_t first = n;

    for (size_t i = 0; i < n; i++) {
        if (!is_kept[i] && found[i].any.sa_family != last)
            return i;
        if (!is_kept[i] && first == n)
            first = i;
    }
    return first;
}

/* Families take turns (RFC 8305): where one of them leads nowhere the other one is near. */
static void keep_addresses(struct name *name, const union ip_address *found, size_t n)
{
    bool is_kept[LOOKUP_ADDRESSES_MAX] = {false};
    sa_family_t last = AF_UNSPEC;

    while (name->n_addresses < n && name->n_addresses < NAME_ADDRESSES_MAX) {
        size_t at = next_address(found, n, is_kept, last);

        is_kept[at] = true;
        last = found[at].any.sa_family;
        name->addresses[name->n_addresses++] = found[at];
    }
}

static void set_not_found(struct name *name, int result)
{
    char why[EGRESS_REFUSED_SIZE];

    (void)snprintf(why, sizeof(why), "it has more than %u addresses", LOOKUP_ADDRESSES_MAX);
    if (result == -ENOENT)
        set_bad(name, EGRESS_NO_SUCH_NAME, "there is no such name");
    else if (result == -E2BIG)
        set_bad(name, EGRESS_BAD_ADDRESS, why);
    else
        set_bad(name, EGRESS_FAILED, "it cannot be looked up now");
}

static void on_found(void *ctx, unsigned key, int result, const union ip_address *found,
                     size_t n)
{
    struct names *names = ctx;
    struct name *name = &names->all[key];

    /* It took too long, and this was said. */
    if (name->state != NAME_LOOKING)
        return;
    name->since_ns = clock_monotonic_ns();
    name->n_addresses = 0;
    if (result < 0) {
        set_not_found(name, result);
        return;
    }
    /* A name with a bad address beside a good one is nobody's honest name. */
    for (size_t i = 0; i < n; i++) {
        if (!check_address(name, &found[i]))
            return;
    }
    keep_addresses(name, found, n);
    name->state = NAME_GOOD;
}

static int open_lookup(struct names *names)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = UINT32_MAX};

    if (names->lookup)
        return 0;
    names->lookup =
        lookup_create(names->settings->servers, PROTO_NET_NAMES, on_found, names, NULL);
    if (!names->lookup)
        return -EIO;
    return epoll_ctl(names->epoll_fd, EPOLL_CTL_ADD, lookup_fd(names->lookup), &event) < 0
               ? -errno
               : 0;
}

/* Looks a name up, unless it is known well enough. */
static void refresh(struct names *names, unsigned at)
{
    struct name *name = &names->all[at];
    uint64_t now = clock_monotonic_ns();

    if (name->since_ns != 0 && (name->state == NAME_LOOKING || now - name->since_ns < KEPT_NS))
        return;
    name->since_ns = now;
    name->state = NAME_LOOKING;
    /* Nobody is connected to what was checked a while ago. */
    name->n_addresses = 0;
    if (fixed_names_find(names->settings->fixed_names, name->text, &name->addresses[0])) {
        name->n_addresses = 1;
        name->state = NAME_GOOD;
    } else if (open_lookup(names) < 0) {
        set_bad(name, EGRESS_FAILED, "it cannot be looked up here");
    } else {
        lookup_start(names->lookup, at, name->text);
    }
}

/* The ports of a name; why there are none. */
static enum egress_refusal find_ports(const struct egress_rules *rules, const char *name,
                                      uint16_t ports[HOST_PORTS_MAX], size_t *ret_n)
{
    enum egress_refusal refusal = EGRESS_UNDECLARED;
    uint16_t declared[HOST_PORTS_MAX];
    size_t n = host_list_ports(rules->declared, name, declared);

    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        if (rules->policy && !host_list_permits(rules->policy, name, declared[i])) {
            refusal = EGRESS_NOT_IN_POLICY;
        } else if (rules->asked && !host_list_permits(rules->asked, name, declared[i])) {
            refusal = EGRESS_NOT_ASKED;
        } else {
            ports[(*ret_n)++] = declared[i];
        }
    }
    return *ret_n > 0 ? EGRESS_REACHED : refusal;
}

static const char *const rule_texts[] = {
    [EGRESS_UNDECLARED] = "it is not declared",
    [EGRESS_NOT_IN_POLICY] = "the tenant's policy does not permit it",
    [EGRESS_NOT_ASKED] = "the request leaves it out",
};

unsigned names_ask(struct names *names, const char *text, enum egress_refusal *ret_refusal,
                   char refused[EGRESS_REFUSED_SIZE])
{
    struct name fresh = {.state = NAME_LOOKING};
    unsigned at = 0;

    while (at < names->n && strcmp(names->all[at].text, text) != 0)
        at++;
    if (at == names->n) {
        *ret_refusal = find_ports(&names->rules, text, fresh.ports, &fresh.n_ports);
        if (*ret_refusal != EGRESS_REACHED) {
            (void)snprintf(refused, EGRESS_REFUSED_SIZE, "%s", rule_texts[*ret_refusal]);
            return NAMES_NONE;
        }
        if (names->n == PROTO_NET_NAMES) {
            *ret_refusal = EGRESS_OVER_LIMIT;
            (void)snprintf(refused, EGRESS_REFUSED_SIZE, "there were %u names before it",
                           PROTO_NET_NAMES);
            return NAMES_NONE;
        }
        (void)snprintf(fresh.text, sizeof(fresh.text), "%s", text);
        names->all[names->n++] = fresh;
    }
    refresh(names, at);
    return at;
}

bool names_has_port(const struct name *name, uint16_t port)
{
    for (size_t i = 0; i < name->n_ports; i++) {
        if (name->ports[i] == port)
            return true;
    }
    return false;
}

uint64_t names_deadline_ns(const struct names *names)
{
    uint64_t first = names->lookup ? lookup_deadline_ns(names->lookup) : UINT64_MAX;

    for (unsigned i = 0; i < names->n; i++) {
        const struct name *name = &names->all[i];

        if (name->state == NAME_LOOKING && name->since_ns + LOOKUP_NS < first)
            first = name->since_ns + LOOKUP_NS;
    }
    return first;
}

void names_work(struct names *names)
{
    uint64_t now = clock_monotonic_ns();

    if (names->lookup)
        lookup_work(names->lookup);
    for (unsigned i = 0; i < names->n; i++) {
        struct name *name = &names->all[i];

        if (name->state == NAME_LOOKING && now - name->since_ns >= LOOKUP_NS)
            set_bad(name, EGRESS_FAILED, "it took too long to look it up");
    }
}
