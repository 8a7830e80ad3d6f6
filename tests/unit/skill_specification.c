/* SPDX-License-Identifier: Apache-2.0 */
/* The specification's validator: names of any script, composed or not; its limits; its YAML. */
#include "tests/unit/cmocka_all.h"

#include "api/skill/specification.h"
#include "base/buf.h"

#include <string.h>

/* Checks and expects one error with this part in it, or none where part is NULL. */
static void check(const char *skill_md, const char *folder, const char *part)
{
    struct skill_strings errors = {0};

    assert_int_equal(specification_check(skill_md, strlen(skill_md), folder, &errors), 0);
    if (!part && errors.len > 0)
        fail_msg("%s: %s", skill_md, errors.items[0]);
    if (part && (errors.len != 1 || !strstr(errors.items[0], part)))
        fail_msg("%s: %zu errors, \"%s\" instead of \"%s\"", skill_md, errors.len,
                 errors.len ? errors.items[0] : "", part);
    skill_strings_finish(&errors);
}

static void check_name(const char *name, const char *folder, const char *part)
{
    char text[2048];

    snprintf(text, sizeof(text), "---\nname: %s\ndescription: d\n---\n", name);
    check(text, folder, part);
}

static void names(void **state)
{
    (void)state;
    check_name("pdf-2", "pdf-2", NULL);
    check_name("pdf-2", NULL, NULL);
    check_name("pdf", "PDF", "the folder is called");
    check_name("Pdf", NULL, "lower case");
    check_name("-pdf", NULL, "begins or ends");
    check_name("pdf-", NULL, "begins or ends");
    check_name("p--d", NULL, "two hyphens");
    check_name("p_d", NULL, "other characters");
    check_name("p d", NULL, "other characters");
    check_name("\" pdf \"", "pdf", NULL);
    check_name("\"\"", NULL, "must be a text");
    check_name("\"\\u2003\"", NULL, "must be a text");
    check_name("0123456789012345678901234567890123456789012345678901234567890123", NULL, NULL);
    check_name("01234567890123456789012345678901234567890123456789012345678901234", NULL,
               "over 64");
}

static void scripts(void **state)
{
    (void)state;
    check_name("\xd0\xbd\xd0\xb0\xd0\xb2\xd1\x8b\xd0\xba", NULL, NULL); /* Cyrillic */
    check_name("\xd0\x9d\xd0\xb0\xd0\xb2\xd1\x8b\xd0\xba", NULL, "lower case");
    check_name("\xe6\x8a\x80\xe8\x83\xbd-1", NULL, NULL);                        /* Han */
    check_name("\xe3\x82\xb9\xe3\x82\xad\xe3\x83\xab", NULL, NULL);              /* Katakana */
    check_name("\xd9\x85\xd9\x87\xd8\xa7\xd8\xb1\xd8\xa9-\xd9\xa3", NULL, NULL); /* Arabic */
    check_name("\xce\xbb\xcf\x8c\xce\xb3\xce\xbf\xcf\x82", NULL, NULL); /* a final sigma */
    check_name("stra\xc3\x9f"
               "e",
               NULL, NULL);
    check_name("\xc4\xb0"
               "a",
               NULL, "lower case"); /* a capital I with a dot */
    /* A vowel sign is no letter, as it is none for the reference validator. */
    check_name("\xe0\xa4\x95\xe0\xa5\x8c", NULL, "other characters");
    check_name("\xf0\x9f\x98\x80", NULL, "other characters");
    /* 64 code points are more bytes. */
    char long_name[3 * 65 + 1];
    for (size_t n = 64; n <= 65; n++) {
        for (size_t i = 0; i < n; i++)
            memcpy(long_name + 3 * i, "\xe6\x8a\x80", 3);
        long_name[3 * n] = '\0';
        check_name(long_name, NULL, n > 64 ? "over 64" : NULL);
    }
}

static void normal_form(void **state)
{
    (void)state;
    /* Composed and decomposed are the same, in the name and in the folder. */
    check_name("caf\xc3\xa9", "cafe\xcc\x81", NULL);
    check_name("cafe\xcc\x81", "caf\xc3\xa9", NULL);
    check_name("cafe\xcc\x81", "cafe", "the folder is called");
    check_name("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c", NULL); /* Hangul */
    /* Wide letters, a ligature, a raised digit. */
    check_name("\xef\xbd\x93\xef\xbd\x8b", "sk", NULL);
    check_name("\xef\xac\x81t", "fit", NULL);
    check_name("m\xc2\xb2", "m2", NULL);
    check_name("\xef\xbc\xb3k", NULL, "lower case");
    /* A mark that composes with nothing stays, and is no letter. */
    check_name("x\xcc\x81", NULL, "other characters");
    /* One half becomes a fraction with a slash. */
    check_name("a\xc2\xbd", NULL, "other characters");
}

static void fields(void **state)
{
    struct buf text = buf_init(8192);

    (void)state;
    check("---\nname: a\ndescription: d\nlicense: MIT\ncompatibility: c\nmetadata:\n  version: "
          "\"1\"\nallowed-tools: Bash Read\n---\n",
          "a", NULL);
    check("---\nname: a\ndescription: d\nallowed-tools:\n  - Bash\n  - Read\n---\n", "a", NULL);
    check("---\nname: a\ndescription: d\nallowed-tools:\n  - a: b\n---\n", "a",
          "allowed-tools");
    check("---\nname: a\ndescription: d\nversion: 1.0\n---\n", "a",
          "line 4: the specification has no field \"version\"");
    check("---\nname: a\ndescription: d\nNAME: a\n---\n", "a", "no field \"NAME\"");
    check("---\nname: a\ndescription: d\nname: b\n---\n", "a", "twice");
    check("---\nname: a\ndescription: d\nmetadata:\n  k: 1\n  k: 2\n---\n", "a",
          "line 6: \"k\" is there twice");
    check("---\nname: a\ndescription: d\nmetadata: {k: 1}\n---\n", "a", "brackets");
    check("---\nname: !!str a\ndescription: d\n---\n", "a", "line 2: a tag");
    check("---\nname: a\ndescription: d\nmetadata: !x\n  k: 1\n---\n", "a", "a tag");
    check("---\nname: a\ndescription: &d d\n---\n", "a", "line 3: an anchor");
    check("---\nname: a\ndescription: d\nallowed-tools: &t\n  - x\n---\n", "a", "an anchor");
    check("---\nname: a\ndescription: &d d\nlicense: *d\n---\n", "a", "aliases");
    check("\xef\xbb\xbf---\nname: a\ndescription: d\n---\n", "a", "byte order mark");
    check("\n---\nname: a\ndescription: d\n---\n", "a", "without an empty line before");
    check("---\ndescription: d\n---\n", "a", "no name");
    check("---\nname: a\n---\n", "a", "no description");
    check("---\nname: a\ndescription: ' '\n---\n", "a", "description must be a text");
    check("---\nname: a\ndescription:\n  - x\n---\n", "a", "description must be a text");
    check("---\nname: a\ndescription: d\ncompatibility:\n  - x\n---\n", "a",
          "compatibility must be a text");
    /* Scalars are the texts they were written as. */
    check("---\nname: 1.10\ndescription: 0x1f\n---\n", NULL, "other characters");
    check("---\nname: 110\ndescription: true\n---\n", "110", NULL);
    check("---\nname: a\ndescription: a: b\n---\n", "a", "line");
    check("---\n- a\n---\n", "a", "key: value");
    check("---\n---\n", "a", "key: value");
    check("---\nname: a\n", "a", "closing");
    check("\xff", "a", "UTF-8");

    for (size_t n = 1024; n <= 1025; n++) {
        buf_clear(&text);
        assert_int_equal(buf_printf(&text, "---\nname: a\ndescription: "), 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(buf_append(&text, "\xc3\xa4", 2), 0);
        assert_int_equal(buf_printf(&text, "\n---\n"), 0);
        check(buf_cstr(&text), "a", n > 1024 ? "over 1024" : NULL);
    }
    for (int n = 500; n <= 501; n++) {
        buf_clear(&text);
        assert_int_equal(
            buf_printf(&text, "---\nname: a\ndescription: d\ncompatibility: %0*d\n---\n", n, 1),
            0);
        check(buf_cstr(&text), "a", n > 500 ? "over 500" : NULL);
    }
    buf_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(scripts),
        cmocka_unit_test(normal_form),
        cmocka_unit_test(fields),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
