/* SPDX-License-Identifier: Apache-2.0 */
#include "base/host_pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX 63u
#define ANY_PORT  0x10000u

/* What a pattern without a port is for. */
static const uint16_t web_ports[] = {80, 443};
#define WEB_PORTS (sizeof(web_ports) / sizeof(web_ports[0]))

/* A pattern of a list: "*", "*.suffix" or a name, and its port. Borrowed. */
struct pattern {
    const char *host;
    size_t len;
    uint32_t port; /* 0: the web's */
};

/* The label's length, or 0 for none. */
static size_t label_length(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && (isalnum((unsigned char)text[n]) || text[n] == '-' || text[n] == '_'))
        n++;
    return n > LABEL_MAX || (n > 0 && (text[0] == '-' || text[n - 1] == '-')) ? 0 : n;
}

static bool is_number(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
    }
    return len > 0;
}

/* A last label that is a number makes it an address for whoever looks it up. */
static bool is_hex_number(const char *text, size_t len)
{
    if (len < 2 || text[0] != '0' || tolower((unsigned char)text[1]) != 'x')
        return false;
    for (size_t i = 2; i < len; i++) {
        if (!isxdigit((unsigned char)text[i]))
            return false;
    }
    return true;
}

int host_name_clean(const char *text, size_t len, char ret_name[HOST_NAME_SIZE])
{
    size_t at = 0, label = 0;

    if (len > 0 && text[len - 1] == '.')
        len--;
    if (len == 0 || len >= HOST_NAME_SIZE)
        return -EINVAL;
    for (;;) {
        label = label_length(text + at, len - at);
        if (label == 0)
            return -EINVAL;
        if (at + label == len)
            break;
        if (text[at + label] != '.')
            return -EINVAL;
        at += label + 1;
    }
    if (is_number(text + at, label) || is_hex_number(text + at, label))
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        ret_name[i] = (char)tolower((unsigned char)text[i]);
    ret_name[len] = '\0';
    return 0;
}

/* A port in digits, or -1. */
static int32_t parse_port(const char *text, size_t len)
{
    uint32_t port = 0;

    if (!is_number(text, len) || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++)
        port = port * 10 + (uint32_t)(text[i] - '0');
    return port > 0 && port < ANY_PORT ? (int32_t)port : -1;
}

static int refuse(struct err *err, const char *text, size_t len, const char *why)
{
    return err_set(err, EINVAL, "\"%.*s\" %s", (int)(len < 80 ? len : 80), text, why);
}

static const char *const forms = "is no host: write api.example.com, *.example.com or "
                                 "api.example.com:8443, without https:// or a path";

static bool is_dotted_digits(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]) && text[i] != '.')
            return false;
    }
    return len > 0;
}

static int check_host(const char *text, size_t len, bool is_broad,
                      char ret_name[HOST_NAME_SIZE], struct err *err)
{
    const char *host = text;
    size_t n = len;

    if (n >= 2 && host[0] == '*' && host[1] == '.') {
        host += 2;
        n -= 2;
        if (!is_broad && !memchr(host, '.', n))
            return refuse(err, text, len,
                          "is too wide: give what comes after * two parts at least, as in "
                          "*.example.com");
    }
    if (host_name_clean(host, n, ret_name) == 0)
        return 0;
    if (is_dotted_digits(host, n))
        return refuse(err, text, len, "is an address: hosts are given by name");
    return refuse(err, text, len, forms);
}

int host_pattern_clean(const char *text, size_t len, bool is_broad,
                       char ret_pattern[HOST_PATTERN_SIZE], struct err *err)
{
    const char *colon = memchr(text, ':', len);
    size_t host_len = colon ? (size_t)(colon - text) : len;
    size_t port_len = colon ? len - host_len - 1 : 0;
    char name[HOST_NAME_SIZE] = "", port[8] = "";
    bool is_all = host_len == 1 && *text == '*';
    int r;

    if (is_all && !is_broad)
        return refuse(err, text, len, "is every host: name those that are needed");
    r = is_all ? 0 : check_host(text, host_len, is_broad, name, err);
    if (r < 0)
        return r;
    if (colon && is_broad && port_len == 1 && colon[1] == '*')
        (void)snprintf(port, sizeof(port), ":*");
    else if (colon && parse_port(colon + 1, port_len) < 0)
        return refuse(err, text, len,
                      memchr(text, '/', len) ? forms
                                             : "has no port from 1 to 65535 after its :");
    else if (colon)
        (void)snprintf(port, sizeof(port), ":%d", parse_port(colon + 1, port_len));
    (void)snprintf(ret_pattern, HOST_PATTERN_SIZE, "%s%s%s",
                   is_all                                              ? "*"
                   : host_len >= 2 && text[0] == '*' && text[1] == '.' ? "*."
                                                                       : "",
                   name, port);
    return 0;
}

/* The next pattern of a clean list, from *list on. False at its end. */
static bool next_pattern(const char **list, struct pattern *ret)
{
    const char *end, *colon;

    if (!**list)
        return false;
    end = strchrnul(*list, ' ');
    colon = memchr(*list, ':', (size_t)(end - *list));
    *ret = (struct pattern){*list, (size_t)((colon ? colon : end) - *list), 0};
    if (colon)
        ret->port = colon[1] == '*'
                        ? ANY_PORT
                        : (uint32_t)parse_port(colon + 1, (size_t)(end - colon - 1));
    *list = *end ? end + 1 : end;
    return true;
}

static bool has_item(const char *list, const char *item, size_t *ret_n)
{
    size_t n = 0, len = strlen(item);

    for (const char *at = list; *at; n++) {
        const char *end = strchrnul(at, ' ');

        if ((size_t)(end - at) == len && memcmp(at, item, len) == 0)
            return true;
        at = *end ? end + 1 : end;
    }
    *ret_n = n;
    return false;
}

static int add_item(struct buf *list, const char *text, size_t len, bool is_broad,
                    struct err *err)
{
    char pattern[HOST_PATTERN_SIZE];
    size_t n = 0;
    int r = host_pattern_clean(text, len, is_broad, pattern, err);

    if (r < 0)
        return r;
    if (list->len > 0 && has_item(buf_cstr(list), pattern, &n))
        return 0;
    if (n >= HOST_LIST_MAX)
        return err_set(err, E2BIG, "there are more than %u hosts", HOST_LIST_MAX);
    if (buf_printf(list, "%s%s", list->len > 0 ? " " : "", pattern) < 0 || !buf_cstr(list))
        return err_set(err, ENOMEM, "no memory for a list of hosts");
    return 0;
}

int host_list_add(struct buf *list, const char *text, size_t len, bool is_broad,
                  struct err *err)
{
    const char *end = text + len;

    while (text < end) {
        size_t n = 0;
        int r;

        while (text + n < end && !strchr(" ,\t\r\n", text[n]))
            n++;
        r = n > 0 ? add_item(list, text, n, is_broad, err) : 0;
        if (r < 0)
            return r;
        text += n < (size_t)(end - text) ? n + 1 : n;
    }
    return 0;
}

static bool matches(const struct pattern *p, const char *name)
{
    size_t len = strlen(name);

    if (p->len == 1 && p->host[0] == '*')
        return true;
    /* "*.example.com" has its dot in the name too, with something before it. */
    if (p->host[0] == '*')
        return len > p->len - 1 &&
               memcmp(name + len - (p->len - 1), p->host + 1, p->len - 1) == 0;
    return len == p->len && memcmp(name, p->host, len) == 0;
}

static bool permits_port(const struct pattern *p, uint16_t port)
{
    if (p->port == 0) {
        for (size_t i = 0; i < WEB_PORTS; i++) {
            if (web_ports[i] == port)
                return true;
        }
    }
    return p->port == port || p->port == ANY_PORT;
}

bool host_list_permits(const char *list, const char *name, uint16_t port)
{
    struct pattern p;

    while (next_pattern(&list, &p)) {
        if (matches(&p, name) && permits_port(&p, port))
            return true;
    }
    return false;
}

static size_t add_port(uint16_t ports[HOST_PORTS_MAX], size_t n, uint16_t port)
{
    for (size_t i = 0; i < n; i++) {
        if (ports[i] == port)
            return n;
    }
    if (n < HOST_PORTS_MAX)
        ports[n++] = port;
    return n;
}

size_t host_list_ports(const char *list, const char *name, uint16_t ports[HOST_PORTS_MAX])
{
    struct pattern p;
    size_t n = 0;

    while (next_pattern(&list, &p)) {
        if (!matches(&p, name) || p.port == ANY_PORT)
            continue;
        if (p.port != 0)
            n = add_port(ports, n, (uint16_t)p.port);
        for (size_t i = 0; p.port == 0 && i < WEB_PORTS; i++)
            n = add_port(ports, n, web_ports[i]);
    }
    return n;
}
