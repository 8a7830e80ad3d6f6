/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/json_write.h"

#include <stdio.h>
#include <time.h>

struct json_writer json_writer_init(size_t max)
{
    return (struct json_writer){.out = buf_init(max)};
}

static void put(struct json_writer *w, const char *text, size_t len)
{
    (void)buf_append(&w->out, text, len);
}

/* What comes before a value. */
static void begin(struct json_writer *w, const char *key)
{
    if (w->comma)
        put(w, ",", 1);
    if (key) {
        (void)json_append_cstr(&w->out, key);
        put(w, ":", 1);
    }
    w->comma = true;
}

void json_write_open(struct json_writer *w, const char *key, char bracket)
{
    begin(w, key);
    put(w, &bracket, 1);
    w->comma = false;
}

void json_write_close(struct json_writer *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = true;
}

void json_write_string(struct json_writer *w, const char *key, const char *text)
{
    begin(w, key);
    (void)json_append_cstr(&w->out, text);
}

void json_write_strings(struct json_writer *w, const char *key, char *const *texts, size_t n)
{
    json_write_open(w, key, '[');
    for (size_t i = 0; i < n; i++)
        json_write_string(w, NULL, texts[i]);
    json_write_close(w, ']');
}

void json_write_text(struct json_writer *w, const char *key, const void *data, size_t len)
{
    begin(w, key);
    (void)json_append_string(&w->out, data, len);
}

void json_write_value(struct json_writer *w, const char *key, struct json_slice value)
{
    begin(w, key);
    (void)json_append_compact(&w->out, value);
}

void json_write_number(struct json_writer *w, const char *key, uint64_t value)
{
    begin(w, key);
    (void)buf_printf(&w->out, "%llu", (unsigned long long)value);
}

void json_write_ms(struct json_writer *w, const char *key, uint64_t ns)
{
    begin(w, key);
    (void)buf_printf(&w->out, "%.3f", (double)ns / 1e6);
}

void json_write_bool(struct json_writer *w, const char *key, bool value)
{
    begin(w, key);
    (void)buf_printf(&w->out, "%s", value ? "true" : "false");
}

void json_write_time(struct json_writer *w, const char *key, uint64_t ns)
{
    const time_t seconds = (time_t)(ns / 1000000000u);
    char day[32];
    char text[48];
    struct tm tm;

    if (ns == 0 || !gmtime_r(&seconds, &tm)) {
        json_write_string(w, key, NULL);
        return;
    }
    (void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(text, sizeof(text), "%s.%03uZ", day, (unsigned)(ns / 1000000u % 1000u));
    json_write_string(w, key, text);
}

int json_writer_end(struct json_writer *w, struct buf *ret)
{
    int r;

    put(w, "\n", 1);
    r = w->out.error;
    if (r < 0)
        buf_finish(&w->out);
    *ret = r < 0 ? buf_init(0) : w->out;
    w->out = buf_init(0);
    return r;
}
