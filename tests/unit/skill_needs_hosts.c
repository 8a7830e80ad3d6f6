/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts in URLs: which are named, and which are asked by a script that does not declare them. A
 * line as long as a file, full of URLs, is read in the time that its length takes.
 */
#include "api/skill/needs_internal.h"

#include "base/buf.h"
#include "base/fd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/unit/cmocka_all.h"
#include "tests/unit/make_archive.h"

static size_t hosts_in(const char *text)
{
    struct needs_reader *r = calloc(1, sizeof(*r));
    size_t n;

    assert_non_null(r);
    assert_int_equal(needs_read_hosts(r, "a.py", 1, (struct text_span){text, strlen(text)}), 0);
    n = r->needs.len;
    needs_finish(&r->needs);
    free(r);
    return n;
}

/* As an archive packs it into a few KiB. */
static void test_a_line_of_blanks_and_urls(void **state)
{
    _cleanup_buf_ struct buf line = buf_init(NEEDS_FILE_BYTES_MAX + 1);
    clock_t began;

    (void)state;
    buf_printf(&line, "%*s", (int)NEEDS_FILE_BYTES_MAX / 2, "");
    while (line.len < NEEDS_FILE_BYTES_MAX - 32)
        buf_printf(&line, "ws://");
    buf_printf(&line, "api.example.com/");
    assert_non_null(buf_cstr(&line));
    began = clock();
    assert_int_equal(hosts_in(buf_cstr(&line)), 1);
    /* Of the processor's, however busy it is: by the square of the length it is ten seconds. */
    assert_true(clock() - began < 3 * CLOCKS_PER_SEC);
}

/* Where needs.c puts the host of "a.py". */
static uint32_t seat_of(const char *host)
{
    uint32_t h = 2166136261u ^ NEEDS_HOST;

    for (const char *p = host; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    for (const char *p = "a.py"; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return h % NEEDS_SEATS;
}

/* Each is looked for where all before it are: of 230,000 that would be seconds. */
static void test_hosts_made_for_one_seat(void **state)
{
    _cleanup_buf_ struct buf line = buf_init(NEEDS_FILE_BYTES_MAX + 1);
    char host[32];

    (void)state;
    for (unsigned i = 0, n = 0; n < 3 * NEEDS_PASSED_MAX; i++) {
        (void)snprintf(host, sizeof(host), "h%u.example.com", i);
        if (seat_of(host) == 7 && ++n)
            (void)buf_printf(&line, "ws://%s ", host);
    }
    assert_non_null(buf_cstr(&line));
    assert_int_equal(hosts_in(buf_cstr(&line)), NEEDS_PASSED_MAX);
}

static void test_what_a_url_is_given_to(void **state)
{
    (void)state;
    assert_int_equal(hosts_in("    xmlns   =   \"https://a.example.com/\""), 0);
    assert_int_equal(hosts_in("    MY_NS = 'https://a.example.com/'"), 0);
    assert_int_equal(hosts_in("    MY_URL = 'https://a.example.com/'"), 1);
    assert_int_equal(hosts_in("https://a.example.com/"), 1);
    assert_int_equal(hosts_in("   https://a.example.com/"), 1);
}

/* What a skill of one script is warned of: hosts with their lines, "api.example.com 2", between
 * commas. */
static void warned(const char *network, const char *path, const char *script, const char *want)
{
    char md[256], got[512] = "", *at, host[128], file[64];
    struct member members[] = {
        {.path = "SKILL.md", .content = md}, {.path = path, .content = script}, {.path = NULL}};
    _cleanup_fd_ int in = -1, tar = memfd_create("tar", MFD_CLOEXEC);
    _cleanup_skill_archive_ struct skill_archive archive = {0};
    _cleanup_skill_ struct skill skill = {0};
    _cleanup_needs_ struct needs needs = {0};
    _cleanup_skill_strings_ struct skill_strings warnings = {0};
    unsigned line;

    (void)snprintf(md, sizeof(md), "---\nname: x\ndescription: y\n%s---\n", network);
    in = make_archive(TAR, members);
    assert_int_equal(
        skill_archive_load(in, &archive_limits_default, NULL, tar, &archive, &skill, NULL), 0);
    assert_int_equal(needs_read(tar, &archive, &skill, &needs, NULL), 0);
    assert_int_equal(needs_warn(&needs, &warnings), 0);
    for (size_t i = 0; i < warnings.len; i++) {
        if (sscanf(warnings.items[i], "%63s line %u: it connects to %127[^, ]", file, &line,
                   host) != 3)
            fail_msg("%s", warnings.items[i]);
        assert_string_equal(file, path);
        assert_non_null(strstr(warnings.items[i], "network: ["));
        at = got + strlen(got);
        (void)snprintf(at, sizeof(got) - strlen(got), "%s%s %u", i > 0 ? ", " : "", host, line);
    }
    if (strcmp(got, want) != 0)
        fail_msg("%s: of \"%s\" it warns of \"%s\", not of \"%s\"", path, script, got, want);
}

static void test_python_that_asks(void **state)
{
    static const char *const cases[][2] = {
        {"requests.get('https://a.example.com/x', timeout=3)", "a.example.com 1"},
        {"x = 1\nr = requests.post(url='https://a.example.com')", "a.example.com 2"},
        {"requests.request('GET', \"http://A.example.com:8443/\")", "a.example.com:8443 1"},
        {"requests.get(f'https://a.example.com/{x}')", "a.example.com 1"},
        {"requests.get('https://a.example.com/' + x)", "a.example.com 1"},
        {"requests.get('https://u:p@a.example.com?x')", "a.example.com 1"},
        {"urllib.request.urlopen('https://a.example.com')", "a.example.com 1"},
        {"urlopen(Request('https://a.example.com', headers=h))", "a.example.com 1"},
        {"http.client.HTTPSConnection('a.example.com', 443)", "a.example.com 1"},
        {"try:\n    urlopen('https://a.example.com')\nexcept OSError:\n    pass",
         "a.example.com 2"},
        {"os.system('curl -s https://a.example.com/x | wc')", "a.example.com 1"},
        {"requests.get('https://a.example.com')\nrequests.get('https://a.example.com/y')\n"
         "requests.get('https://b.example.com')",
         "a.example.com 1, b.example.com 3"},
        /* Named before it is asked. */
        {"# https://a.example.com\nrequests.get('https://a.example.com')", "a.example.com 2"},
        {"# requests.get('https://a.example.com')", ""},
        {"\"\"\"requests.get('https://a.example.com')\"\"\"", ""},
        {"print('<a href=\"https://a.example.com/\">')", ""},
        {"URL = 'https://a.example.com/'", ""},
        {"d.get('https://a.example.com/'); self.requests.get('https://a.example.com/')", ""},
        {"requests.get('https://a.example.com' + x)", ""},
        {"requests.get(f'https://{x}.example.com/')", ""},
        {"requests.get('https://{}.example.com/'.format(x))", ""},
        {"requests.get('https://%s/x' % x)", ""},
        {"requests.get('http://localhost:8000/'); requests.get('http://127.0.0.1/')", ""},
        {"requests.get('http://[::1]/'); requests.get('ftp://a.example.com/')", ""},
        {"requests.get('https://a.example.com:99999/'); requests.get('https://')", ""},
        {"requests.get(name, 'https://a.example.com')", ""},
        {"os.system('echo https://a.example.com')", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        warned("", "main.py", cases[i][0], cases[i][1]);
    /* Others' code, and what is no script. */
    warned("", "vendor/main.py", "requests.get('https://a.example.com')", "");
    warned("", "notes.md", "requests.get('https://a.example.com')", "");
}

static void test_shells_that_ask(void **state)
{
    static const char *const cases[][2] = {
        {"curl https://a.example.com/$1", "a.example.com 1"},
        {"x=1\ncurl -fsSL -o x \"https://a.example.com/$x\" | tar x", "a.example.com 2"},
        {"x=$(timeout 5 curl --url https://a.example.com)", "a.example.com 1"},
        {"curl -e https://b.example.com -H 'X: y' https://a.example.com", "a.example.com 1"},
        {"curl --data https://b.example.com -X POST https://a.example.com/", "a.example.com 1"},
        {"git clone --depth 1 https://a.example.com/x.git", "a.example.com 1"},
        {"git -C x fetch https://a.example.com/x.git", "a.example.com 1"},
        {"# curl https://a.example.com", ""},
        {"echo curl https://a.example.com", ""},
        {"echo 'curl https://a.example.com'", ""},
        {"cat <<END\ncurl https://a.example.com\nEND", ""},
        {"curl \"https://$x.example.com/\"; curl https://a.example.com$x", ""},
        {"curl \"https://a$x.example.com/y\"", ""},
        {"curl -x http://a.example.com:3128 http://localhost/", ""},
        {"git remote add origin https://a.example.com/x.git", ""},
        {"git commit -m https://a.example.com; git config x https://a.example.com", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        warned("", "main.sh", cases[i][0], cases[i][1]);
}

static void test_javascript_that_asks(void **state)
{
    static const char *const cases[][2] = {
        {"await fetch('https://a.example.com/x', {})", "a.example.com 1"},
        {"fetch(\n`https://a.example.com/x/${y}`)", "a.example.com 2"},
        {"axios.get('https://a.example.com/' + x); new WebSocket('wss://b.example.com')",
         "a.example.com 1, b.example.com 1"},
        {"https.request('https://a.example.com', f)", "a.example.com 1"},
        {"// fetch('https://a.example.com')", ""},
        {"const x = \"<script>fetch('https://a.example.com')</script>\"", ""},
        {"const x = `<script>fetch('https://a.example.com/${y}')</script>`", ""},
        {"page.fetch('https://a.example.com/'); axios.isAxiosError('https://a.example.com')",
         ""},
        {"fetch(`https://a.${x}.example.com/`); fetch('https://a.example.com' + x)", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        warned("lang: node\n", "main.mjs", cases[i][0], cases[i][1]);
}

static void test_what_is_declared(void **state)
{
    static const char script[] = "requests.get('https://api.example.com/')\n"
                                 "requests.get('https://api.example.com:8443/')\n"
                                 "requests.get('http://x.example.org/')\n";
    static const struct {
        const char *network, *want;
    } cases[] = {
        {"", "api.example.com 1, api.example.com:8443 2, x.example.org 3"},
        {"network: [api.example.com]\n", "api.example.com:8443 2, x.example.org 3"},
        {"network: api.example.com api.example.com:8443 *.example.org\n", ""},
        {"network: [\"*.example.com:8443\", x.example.org:80]\n", "api.example.com 1"},
        {"network: none\n", ""},
        {"network: []\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        warned(cases[i].network, "main.py", script, cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_of_blanks_and_urls),
        cmocka_unit_test(test_hosts_made_for_one_seat),
        cmocka_unit_test(test_what_a_url_is_given_to),
        cmocka_unit_test(test_python_that_asks),
        cmocka_unit_test(test_shells_that_ask),
        cmocka_unit_test(test_javascript_that_asks),
        cmocka_unit_test(test_what_is_declared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
