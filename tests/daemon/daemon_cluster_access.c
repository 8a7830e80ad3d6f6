/* SPDX-License-Identifier: Apache-2.0 */
/* How a node is let in: files of credentials, TLS with an authority, a certificate of its own.
 */
#include "tests/unit/cmocka_all.h"

#include "tests/daemon/nats_keys.h"
#include "tests/daemon/nats_world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define expect harness_expect

#define JOINED       "\"state\":\"joined\",\"reason\":null"
#define CUT_OFF(why) "\"state\":\"cut_off\",\"reason\":\"" why "\""

static char folder[] = "/tmp/skillvm-access-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf --one-file-system '%s'", folder);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Copies a text with the folder for each '@'. */
static void place(const char *text, char *ret, size_t size)
{
    size_t len = 0;

    for (; *text; text++) {
        int n = *text == '@' ? snprintf(ret + len, size - len, "%s", folder)
                             : snprintf(ret + len, size - len, "%c", *text);

        len += (size_t)n;
        assert_true(len < size);
    }
}

/* A node whose `cluster:` has these lines, and how it is. */
static void try_node(const struct nats_world *w, const char *more, bool init, const char *part)
{
    struct harness h = {0};
    char lines[1024] = "";

    place(more, lines, sizeof(lines));
    nats_start_node(&h, w, "a", lines);
    if (init)
        nats_make(&h);
    nats_wait_node(&h, part);
    assert_int_equal(harness_stop(&h, SIGTERM), 0);
    harness_finish(&h);
}

static void a_file_of_credentials_lets_in(void **state)
{
    char settings[8192], credentials[4096], others[4096], unused[8192];
    struct nats_world w = {.more = settings, .takes_nobody = true};

    (void)state;
    nats_keys_make(settings, sizeof(settings), credentials, sizeof(credentials));
    nats_keys_make(unused, sizeof(unused), others, sizeof(others));
    write_file("node.creds", credentials);
    write_file("others.creds", others);
    write_file("bad.creds", "no credentials\n");
    nats_begin(&w, 1);
    try_node(&w, "", false, CUT_OFF("credentials"));
    try_node(&w, "  credentials: @/others.creds\n", false, CUT_OFF("credentials"));
    try_node(&w, "  credentials: @/bad.creds\n", false, CUT_OFF("credentials"));
    try_node(&w, "  credentials: @/node.creds\n", true, JOINED);
    nats_end(&w);
}

/* An authority with a certificate for 127.0.0.1 and one for a node, and another authority. */
static void make_certificates(void)
{
    static const char commands[] =
        "cd '@' && exec 2>/dev/null && key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 "
        "-nodes' && "
        "for ca in ca other; do openssl req -x509 $key -days 2 -subj /CN=$ca -keyout $ca.key "
        "-out $ca.pem; done && "
        "for who in server node; do openssl req $key -subj /CN=$who -keyout $who.key -out "
        "$who.csr && printf 'subjectAltName=IP:127.0.0.1\\n' > $who.ext && openssl x509 -req "
        "-in "
        "$who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile $who.ext -out "
        "$who.pem; done";
    char command[1024];

    place(commands, command, sizeof(command));
    assert_int_equal(system(command), 0);
}

static void tls_is_checked_on_both_sides(void **state)
{
    char settings[1024] = "";
    struct nats_world w = {.more = settings, .takes_nobody = true};

    (void)state;
    make_certificates();
    place("tls { cert_file: \"@/server.pem\", key_file: \"@/server.key\", "
          "ca_file: \"@/ca.pem\", verify: true }\n",
          settings, sizeof(settings));
    nats_begin(&w, 1);
    try_node(&w, "  tls_ca: @/other.pem\n", false, CUT_OFF("tls"));
    try_node(&w, "  tls_ca: @/ca.pem\n  tls_cert: @/node.pem\n  tls_key: @/node.key\n", true,
             JOINED);
    nats_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_credentials_lets_in),
        cmocka_unit_test(tls_is_checked_on_both_sides),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
