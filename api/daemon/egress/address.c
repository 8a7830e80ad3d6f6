/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/egress/address.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

struct range4 {
    uint32_t base;
    unsigned bits;
    const char *kind;
};

#define IPV4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

/* What IANA's registry of special addresses has as not global, and one cloud's metadata. */
static const struct range4 ranges4[] = {
    {IPV4(0, 0, 0, 0), 8, "no address of a host"},
    {IPV4(10, 0, 0, 0), 8, "a private network"},
    {IPV4(100, 64, 0, 0), 10, "a provider's inner network"},
    {IPV4(127, 0, 0, 0), 8, "loopback"},
    {IPV4(168, 63, 129, 16), 32, "a cloud's metadata"},
    {IPV4(169, 254, 0, 0), 16, "link-local, where clouds have their metadata"},
    {IPV4(172, 16, 0, 0), 12, "a private network"},
    {IPV4(192, 0, 0, 0), 24, "set aside for protocols"},
    {IPV4(192, 0, 2, 0), 24, "set aside for examples"},
    {IPV4(192, 88, 99, 0), 24, "a relay to 6to4"},
    {IPV4(192, 168, 0, 0), 16, "a private network"},
    {IPV4(198, 18, 0, 0), 15, "set aside for measurements"},
    {IPV4(198, 51, 100, 0), 24, "set aside for examples"},
    {IPV4(203, 0, 113, 0), 24, "set aside for examples"},
    {IPV4(224, 0, 0, 0), 4, "multicast"},
    {IPV4(240, 0, 0, 0), 4, "set aside"},
};

struct range6 {
    uint8_t base[16];
    unsigned bits;
    const char *kind;
};

/* Within 2000::/3, which is all that is global. */
static const struct range6 ranges6[] = {
    {{0x20, 0x01, 0x00}, 23, "set aside for protocols"}, /* Teredo, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "set aside for examples"},
    {{0x20, 0x02}, 16, "6to4, with an IPv4 address in it"},
    {{0x3f, 0xff}, 20, "set aside for examples"},
};

/* Of what is not global, those that have a name; the first that fits. */
static const struct range6 others6[] = {
    {{[15] = 1}, 128, "loopback"},
    {{[10] = 0xff, [11] = 0xff}, 96, "an IPv4 address mapped into IPv6"},
    {{0x00, 0x64, 0xff, 0x9b}, 32, "NAT64, with an IPv4 address in it"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfc}, 7, "a private network"},
    {{0xff}, 8, "multicast"},
    {{0}, 0, "not a public address"},
};

static bool is_within(const uint8_t *address, const uint8_t *base, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(address, base, whole) == 0 &&
           (rest == 0 || (address[whole] ^ base[whole]) >> (8 - rest) == 0);
}

static const char *kind_among(const uint8_t *address, const struct range6 *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_within(address, ranges[i].base, ranges[i].bits))
            return ranges[i].kind;
    }
    return NULL;
}

static const char *kind_of_ipv4(uint32_t address)
{
    for (size_t i = 0; i < sizeof(ranges4) / sizeof(ranges4[0]); i++) {
        if ((address ^ ranges4[i].base) >> (32 - ranges4[i].bits) == 0)
            return ranges4[i].kind;
    }
    return NULL;
}

const char *egress_address_kind(const union ip_address *address)
{
    const uint8_t *bytes = address->ipv6.sin6_addr.s6_addr;

    if (address->any.sa_family == AF_INET)
        return kind_of_ipv4(ntohl(address->ipv4.sin_addr.s_addr));
    if (address->any.sa_family != AF_INET6)
        return "not an address of the internet";
    if (bytes[0] >> 5 == 1)
        return kind_among(bytes, ranges6, sizeof(ranges6) / sizeof(ranges6[0]));
    return kind_among(bytes, others6, sizeof(others6) / sizeof(others6[0]));
}

bool egress_address_is_own(const union ip_address *address)
{
    _cleanup_fd_ int fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    union ip_address any_port = *address;
    socklen_t size = egress_address_size(address);

    /* Without IPv6 it has none of these, and nothing is connected to them. */
    if (fd < 0)
        return errno != EAFNOSUPPORT;
    egress_address_set_port(&any_port, 0);
    return bind(fd, &any_port.any, size) == 0 || errno != EADDRNOTAVAIL;
}

socklen_t egress_address_size(const union ip_address *address)
{
    return address->any.sa_family == AF_INET6 ? sizeof(address->ipv6) : sizeof(address->ipv4);
}

void egress_address_set_port(union ip_address *address, uint16_t port)
{
    if (address->any.sa_family == AF_INET6)
        address->ipv6.sin6_port = htons(port);
    else
        address->ipv4.sin_port = htons(port);
}
