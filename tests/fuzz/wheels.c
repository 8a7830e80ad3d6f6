/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stranger's wheels and requirements say. The first byte chooses the reader: of a
 * version and of clauses, a wheel's name, a requirement with its marker, METADATA,
 * requirements.txt, a script's block.
 */
#include "api/wheels/metadata.h"
#include "api/wheels/tags.h"
#include "api/wheels/wanted.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const char *text;
    size_t len;
};

/* Every file that is asked for is this one. */
static int text_of(void *ctx, const char *path, const char **ret_text, size_t *ret_len)
{
    const struct input *in = ctx;

    (void)path;
    *ret_text = in->text;
    *ret_len = in->len;
    return 0;
}

static void read_version(const struct input *in)
{
    struct pep440 version, again;
    struct pep440_set set;

    if (pep440_parse(in->text, in->len, &version) == 0 &&
        (pep440_parse(in->text, in->len, &again) < 0 || pep440_compare(&version, &again) != 0))
        abort();
    if (pep440_parse_set(in->text, in->len, &set) == 0 &&
        pep440_parse("1.0rc1", 6, &version) == 0)
        (void)(pep440_set_has(&set, &version, "1.0rc1") || pep440_set_wants_pre(&set));
}

static void read_name(const struct input *in)
{
    char file[512], why[TAGS_WHY_SIZE];
    struct tags_wheel wheel;

    if (in->len >= sizeof(file) || memchr(in->text, 0, in->len))
        return;
    memcpy(file, in->text, in->len);
    file[in->len] = '\0';
    if (tags_parse(file, &wheel, NULL) == 0)
        (void)tags_rank(&wheel, 11, why);
}

static void read_requirement(const struct input *in)
{
    const struct marker_python python = {11, 2};
    _cleanup_requirement_ struct requirement q = {.marker = NULL};

    if (requirement_parse(in->text, in->len, &q, NULL) < 0)
        return;
    (void)requirement_applies(&q, &python, &q.extras);
    (void)requirement_wants_pre(&q);
}

static void read_metadata(const struct input *in)
{
    _cleanup_metadata_ struct metadata metadata = {.n_requires = 0};

    if (metadata_parse(in->text, in->len, &metadata, NULL) == 0 && !metadata.name[0])
        abort();
}

static void read_files(const struct input *in, bool script)
{
    const struct wanted_source source = {text_of, (void *)(uintptr_t)in};
    _cleanup_wanted_ struct wanted_list list = {.n = 0};

    (void)(script ? wanted_read_script(&list, "main.py", in->text, in->len, NULL)
                  : wanted_read_file(&list, "requirements.txt", &source, NULL));
    if (list.n > WANTED_MAX || list.warnings.len > SKILL_WARNINGS_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in;
    char *copy;

    if (size == 0)
        return 0;
    /* Of its own length, so that a byte too many is found. */
    copy = malloc(size > 1 ? size - 1 : 1);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1);
    in = (struct input){copy, size - 1};
    switch (data[0]) {
    case 'v':
        read_version(&in);
        break;
    case 'n':
        read_name(&in);
        break;
    case 'q':
        read_requirement(&in);
        break;
    case 'm':
        read_metadata(&in);
        break;
    default:
        read_files(&in, data[0] == 's');
    }
    free(copy);
    return 0;
}
