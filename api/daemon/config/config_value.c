/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/config/config_value.h"

#include "api/daemon/egress/fixed_names.h"
#include "api/daemon/terms/fleet_words.h"
#include "api/daemon/terms/tenant.h"
#include "api/json/json_text.h"
#include "api/skill/duration.h"
#include "base/ip_address.h"
#include "base/log.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4000u /* a path of the system, less what is added to some */
#define URL_MAX  256u
#define DAY_MS   86400000ull

/* The word for a value of a type whose values are words; NULL past the last one. */
static const char *word(enum config_type type, uint64_t value)
{
    static const char *const levels[] = {
        [LOG_LEVEL_ERROR] = "error",
        [LOG_LEVEL_WARN] = "warn",
        [LOG_LEVEL_INFO] = "info",
        [LOG_LEVEL_DEBUG] = "debug",
    };
    static const char *const scopes[] = {"shared", "tenant"};
    static const char *const isolations[] = {"best-effort", "strict"};
    static const char *const replicas[] = {"1", "3"};

    switch (type) {
    case CONFIG_REUSE:
        return value < TENANT_REUSES ? tenant_reuse_name((enum tenant_reuse)value) : NULL;
    case CONFIG_SCOPE:
        return value < sizeof(scopes) / sizeof(scopes[0]) ? scopes[value] : NULL;
    case CONFIG_ISOLATION:
        return value < sizeof(isolations) / sizeof(isolations[0]) ? isolations[value] : NULL;
    case CONFIG_REPLICAS:
        return value < sizeof(replicas) / sizeof(replicas[0]) ? replicas[value] : NULL;
    default:
        return value < sizeof(levels) / sizeof(levels[0]) ? levels[value] : NULL;
    }
}

static int parse_word(enum config_type type, const char *text, uint64_t *ret)
{
    const char *each;

    for (uint64_t value = 0; (each = word(type, value)); value++) {
        if (strcmp(text, each) == 0) {
            *ret = value;
            return 0;
        }
    }
    return -EINVAL;
}

/* "never, skill or tenant". */
static void print_words(enum config_type type, uint64_t min, uint64_t max, char *text,
                        size_t size)
{
    size_t len = 0;

    for (uint64_t value = min; value <= max && len < size; value++) {
        const char *before = value == min ? "" : value == max ? " or " : ", ";

        len += (size_t)snprintf(text + len, size - len, "%s%s", before, word(type, value));
    }
}

/* Digits and then the suffix, nothing else. */
static int parse_number(const char *text, int base, const char *suffix, uint64_t *ret)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, base);
    if (errno != 0 || *text < '0' || *text > '9' || strcmp(end, suffix) != 0)
        return -EINVAL;
    *ret = value;
    return 0;
}

/* Whole days ("7d") besides what a skill may say of its timeout. */
static int parse_duration(const char *text, uint64_t *ret_ms)
{
    uint64_t days;

    if (parse_number(text, 10, "d", &days) < 0)
        return duration_parse(text, ret_ms);
    if (days > UINT64_MAX / DAY_MS)
        return -EINVAL;
    *ret_ms = days * DAY_MS;
    return 0;
}

static int parse_amount(const char *text, struct config_amount *ret)
{
    struct config_amount amount = {0};
    uint64_t percent = 0;

    if (parse_number(text, 10, "%", &percent) < 0 && size_parse(text, &amount.bytes) < 0)
        return -EINVAL;
    if (percent > 100)
        return -EINVAL;
    amount.percent = (unsigned)percent;
    *ret = amount;
    return 0;
}

/* http or https, a host, perhaps a path; what JSON takes as it is, and no slash at the end. */
static int check_url(const char *text)
{
    size_t scheme = strncmp(text, "https://", 8) == 0 ? 8 : 7;
    size_t len = strlen(text);

    if (!*text)
        return 0;
    if ((scheme == 7 && strncmp(text, "http://", 7) != 0) || len == scheme || len >= URL_MAX ||
        text[scheme] == '/' || text[len - 1] == '/')
        return -EINVAL;
    for (; *text; text++) {
        if (*text <= ' ' || *text >= 0x7f || strchr("\"\\<>?#", *text))
            return -EINVAL;
    }
    return 0;
}

/* A numeric host, since a name could mean another one tomorrow, and a port. */
static int check_address(const char *text)
{
    union ip_address address;

    return !*text || ip_address_parse(text, &address) > 0 ? 0 : -EINVAL;
}

/*
 * UTF-8 that YAML takes as it is: no control characters, line separators, byte order marks and
 * code points that are no characters.
 */
static bool is_printable(const char *text)
{
    size_t len = strlen(text);

    if (!utf8_valid(text, len))
        return false;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0) ||
            (c[0] == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9)) ||
            (c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf) ||
            (c[0] == 0xef && c[1] == 0xbf && c[2] >= 0xbe))
            return false;
    }
    return true;
}

static int take_text(const char *text, size_t max, char **value)
{
    char *copy;

    if (strlen(text) > max || !is_printable(text))
        return -EINVAL;
    copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*value);
    *value = copy;
    return 0;
}

static int parse_scalar(enum config_type type, const char *text, uint64_t *ret)
{
    switch (type) {
    case CONFIG_COUNT:
        return parse_number(text, 10, "", ret);
    case CONFIG_MODE:
        return parse_number(text, 8, "", ret);
    case CONFIG_BYTES:
        return size_parse(text, ret);
    case CONFIG_DURATION:
        return parse_duration(text, ret);
    default:
        return parse_word(type, text, ret);
    }
}

bool config_type_is_text(enum config_type type)
{
    return type == CONFIG_TEXT || type == CONFIG_ADDRESS || type == CONFIG_URL ||
           type == CONFIG_HOSTS || type == CONFIG_NAMES || type == CONFIG_SERVERS ||
           type == CONFIG_LABELS || type == CONFIG_NODE;
}

int config_value_parse(enum config_type type, uint64_t min, uint64_t max, const char *text,
                       void *value)
{
    char hosts[TENANT_NETWORK_SIZE] = "";
    uint64_t number = 0;
    int r;

    if (type == CONFIG_HOSTS)
        return tenant_network_clean(text, strlen(text), hosts, NULL) < 0 || !hosts[0]
                   ? -EINVAL
                   : take_text(hosts, TEXT_MAX, value);
    if ((type == CONFIG_NAMES && fixed_names_check(text, NULL) < 0) ||
        (type == CONFIG_ADDRESS && check_address(text) < 0) ||
        (type == CONFIG_URL && check_url(text) < 0) ||
        (type == CONFIG_SERVERS && fleet_servers_check(text) < 0) ||
        (type == CONFIG_LABELS && fleet_labels_check(text) < 0) ||
        (type == CONFIG_NODE && *text && !fleet_node_valid(text)))
        return -EINVAL;
    if (config_type_is_text(type))
        return take_text(text, TEXT_MAX, value);
    if (type == CONFIG_AMOUNT)
        return parse_amount(text, value);
    r = parse_scalar(type, text, &number);
    if (r < 0)
        return r;
    if (number < min || number > max)
        return -EINVAL;
    *(uint64_t *)value = number;
    return 0;
}

struct unit {
    const char *name;
    uint64_t size;
};

/* Writes a number in the largest unit that divides it; the last one does. */
static void print_unit(char *text, size_t size, uint64_t value, const struct unit *unit)
{
    while (unit->size > 1 && value % unit->size != 0)
        unit++;
    (void)snprintf(text, size, "%llu%s", (unsigned long long)(value / unit->size), unit->name);
}

static void print_bytes(char *text, size_t size, uint64_t value)
{
    static const struct unit units[] = {{"TiB", 1ull << 40},
                                        {"GiB", 1ull << 30},
                                        {"MiB", 1ull << 20},
                                        {"KiB", 1ull << 10},
                                        {"", 1}};

    print_unit(text, size, value, value == 0 ? &units[4] : units);
}

static void print_duration(char *text, size_t size, uint64_t value)
{
    static const struct unit units[] = {
        {"d", DAY_MS}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

    print_unit(text, size, value, value == 0 ? &units[3] : units);
}

/* A value of those types that are a number in a struct config. */
static void print_scalar(enum config_type type, uint64_t value, char *text, size_t size)
{
    switch (type) {
    case CONFIG_COUNT:
        (void)snprintf(text, size, "%llu", (unsigned long long)value);
        break;
    case CONFIG_MODE:
        (void)snprintf(text, size, "%04llo", (unsigned long long)value);
        break;
    case CONFIG_BYTES:
        print_bytes(text, size, value);
        break;
    case CONFIG_DURATION:
        print_duration(text, size, value);
        break;
    default:
        (void)snprintf(text, size, "%s", word(type, value));
        break;
    }
}

void config_value_range(enum config_type type, uint64_t min, uint64_t max, char *text,
                        size_t size)
{
    char low[32], high[32];

    *text = '\0';
    if (type >= CONFIG_LEVEL) {
        print_words(type, min, max, text, size);
    } else if (type != CONFIG_AMOUNT && !config_type_is_text(type)) {
        print_scalar(type, min, low, sizeof(low));
        print_scalar(type, max, high, sizeof(high));
        (void)snprintf(text, size, "from %s to %s", low, high);
    }
}

void config_value_allowed(enum config_type type, uint64_t min, uint64_t max, char *text,
                          size_t size)
{
    static const char *const kinds[] = {
        [CONFIG_TEXT] = "printable text of at most 4000 bytes",
        [CONFIG_ADDRESS] = "an address and port such as 127.0.0.1:8080 or [::1]:8080, or \"\"",
        [CONFIG_URL] =
            "an URL such as https://skills.example.org, no slash at its end, or \"\"",
        [CONFIG_HOSTS] = "off, declared, or hosts such as api.example.com, *.example.org:8443",
        [CONFIG_NAMES] = "names with addresses such as wiki.example.org=10.0.0.5, or \"\"",
        [CONFIG_SERVERS] = ("up to 8 addresses such as nats://10.0.0.1:4222 tls://example.org, "
                            "or \"\""),
        [CONFIG_LABELS] = "up to 16 labels such as rack=a7 disk=nvme, or \"\"",
        [CONFIG_NODE] = "at most 64 letters, digits, - and _, or \"\"",
        [CONFIG_COUNT] = "a whole number ",
        [CONFIG_MODE] = "octal permissions ",
        [CONFIG_BYTES] = "a size such as 512MiB or 10GiB, ",
        [CONFIG_DURATION] = "a duration such as 30s, 12h or 7d, ",
        [CONFIG_AMOUNT] = "a size such as 512MiB, or a percentage such as 5%",
        [CONFIG_LEVEL] = "",
        [CONFIG_REUSE] = "",
        [CONFIG_SCOPE] = "",
        [CONFIG_ISOLATION] = "",
        [CONFIG_REPLICAS] = "",
    };
    char range[96];

    _Static_assert(TEXT_MAX == 4000, "as it is said");
    config_value_range(type, min, max, range, sizeof(range));
    (void)snprintf(text, size, "%s%s", kinds[type], range);
}

int config_value_write(enum config_type type, const void *value, struct buf *out)
{
    const struct config_amount *amount = value;
    char text[32];

    if (config_type_is_text(type))
        return json_append_cstr(out, *(char *const *)value);
    if (type == CONFIG_AMOUNT && amount->percent > 0)
        return buf_printf(out, "%u%%", amount->percent);
    if (type == CONFIG_AMOUNT)
        print_bytes(text, sizeof(text), amount->bytes);
    else
        print_scalar(type, *(const uint64_t *)value, text, sizeof(text));
    return buf_printf(out, type == CONFIG_MODE ? "\"%s\"" : "%s", text);
}

uint64_t config_amount_of(const struct config_amount *amount, uint64_t whole_bytes)
{
    if (amount->percent > 0)
        return whole_bytes / 100 * amount->percent + whole_bytes % 100 * amount->percent / 100;
    return amount->bytes;
}
