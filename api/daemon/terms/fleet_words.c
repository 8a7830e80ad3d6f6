/* SPDX-License-Identifier: Apache-2.0 */
#include "api/daemon/terms/fleet_words.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX 65535ul

/* How many of the characters at its beginning are letters, digits or of more. */
static size_t span(const char *text, const char *more)
{
    size_t n = 0;

    while (text[n] && (unsigned char)text[n] < 0x80 &&
           (isalnum((unsigned char)text[n]) || strchr(more, text[n])))
        n++;
    return n;
}

bool fleet_node_valid(const char *name)
{
    size_t len = span(name, "-_");

    return len > 0 && len < FLEET_NODE_SIZE && name[len] == '\0';
}

bool fleet_take_word(const char **text, char *ret_word, size_t size)
{
    const char *at = *text + strspn(*text, " ");
    size_t len = strcspn(at, " ");

    *text = at + len;
    ret_word[0] = '\0';
    if (len == 0)
        return false;
    if (len < size) {
        memcpy(ret_word, at, len);
        ret_word[len] = '\0';
    }
    return true;
}

/* Behind the scheme: "user:password@host:port" or less of it, and nothing after the port. */
static bool authority_valid(const char *text)
{
    const char *at = strrchr(text, '@'), *host = at ? at + 1 : text, *end;
    char *port_end;
    unsigned long port;

    for (const char *c = text; *c; c++) {
        if (*c <= ' ' || *c >= 0x7f || strchr("\"\\<>?#/", *c))
            return false;
    }
    if (*host == '[') {
        end = strchr(host, ']');
        if (!end || end == host + 1)
            return false;
        end++;
    } else {
        end = host + span(host, "-._");
        if (end == host)
            return false;
    }
    if (*end == '\0')
        return true;
    if (*end != ':' || end[1] < '0' || end[1] > '9')
        return false;
    port = strtoul(end + 1, &port_end, 10);
    return *port_end == '\0' && port > 0 && port <= PORT_MAX;
}

static bool server_valid(const char *server)
{
    if (strncmp(server, "nats://", 7) == 0)
        return authority_valid(server + 7);
    return strncmp(server, "tls://", 6) == 0 && authority_valid(server + 6);
}

int fleet_servers_check(const char *text)
{
    char server[FLEET_SERVER_SIZE] = "";

    for (size_t n = 0; fleet_take_word(&text, server, sizeof(server)); n++) {
        if (n == FLEET_SERVERS_MAX || !server_valid(server))
            return -EINVAL;
    }
    return 0;
}

void fleet_server_show(const char *server, char ret[FLEET_SERVER_SIZE])
{
    const char *host = strstr(server, "://"), *at = strrchr(server, '@');
    int scheme = host ? (int)(host + 3 - server) : 0;

    (void)snprintf(ret, FLEET_SERVER_SIZE, "%.*s%s", scheme, server,
                   at ? at + 1 : server + scheme);
}

bool fleet_label_valid(const char *key, const char *value)
{
    size_t key_len = span(key, "-_."), value_len = span(value, "-_.");

    return key_len > 0 && key_len < FLEET_LABEL_SIZE && key[key_len] == '\0' &&
           value_len < FLEET_LABEL_SIZE && value[value_len] == '\0';
}

bool fleet_label_part(const char *word, char ret_key[FLEET_LABEL_SIZE],
                      char ret_value[FLEET_LABEL_SIZE])
{
    const char *sign = strchr(word, '=');

    if (!sign || (size_t)(sign - word) >= FLEET_LABEL_SIZE ||
        strlen(sign + 1) >= FLEET_LABEL_SIZE)
        return false;
    (void)snprintf(ret_key, FLEET_LABEL_SIZE, "%.*s", (int)(sign - word), word);
    (void)snprintf(ret_value, FLEET_LABEL_SIZE, "%s", sign + 1);
    return fleet_label_valid(ret_key, ret_value);
}

int fleet_labels_check(const char *text)
{
    char keys[FLEET_LABELS_MAX][FLEET_LABEL_SIZE], value[FLEET_LABEL_SIZE];
    char word[2 * FLEET_LABEL_SIZE];

    for (size_t n = 0; fleet_take_word(&text, word, sizeof(word)); n++) {
        if (n == FLEET_LABELS_MAX || !fleet_label_part(word, keys[n], value))
            return -EINVAL;
        for (size_t i = 0; i < n; i++) {
            if (strcmp(keys[i], keys[n]) == 0)
                return -EINVAL;
        }
    }
    return 0;
}
