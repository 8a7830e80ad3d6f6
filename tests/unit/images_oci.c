/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images/oci: containers that were saved, made here. What layers say of each other holds,
 * nothing leaves the folder, and each archive that is damaged or attacks is refused by its own
 * message.
 */
#include "images/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "images/oci_stream.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/make_archive.h"

#define LAYERS_MAX 3

struct fixture {
    char dir[64];
    int spool, root;
    struct oci_origin origin;
    struct err err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    strcpy(f->dir, "/tmp/images-oci-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(mkdir("spool", 0700) | mkdir("root", 0755), 0);
    f->spool = open("spool", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->root = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];

    close(f->spool);
    close(f->root);
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static char *bytes_of(int fd, size_t *ret_len)
{
    struct stat st;
    char *data;

    assert_int_equal(fstat(fd, &st), 0);
    data = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(data);
    assert_int_equal(fd_pread_full(fd, data, (size_t)st.st_size, 0), st.st_size);
    *ret_len = (size_t)st.st_size;
    return data;
}

/* What goes into the archive besides layers, and what is wrong with it. */
struct saved {
    const struct member *layers[LAYERS_MAX];
    enum kind kind;            /* of the layers; none is TAR */
    const char *config;        /* in place of the right one */
    const char *manifest;      /* the same */
    const struct member *more; /* entries beside these */
    const char *raw_layer;     /* in place of the first one's bytes */
    bool wrong_content;        /* the configuration tells of other layers */
    bool without_layers;       /* they are not in the archive */
};

static void put(struct archive *a, const char *name, const void *data, size_t len)
{
    struct archive_entry *entry = archive_entry_new();

    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)len);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, data, len), len);
    archive_entry_free(entry);
}

/* A layer, with the digest of its tar. */
static char *make_layer(const struct saved *saved, size_t i, char digest[OCI_HEX_SIZE],
                        size_t *ret_len)
{
    _cleanup_fd_ int tar = make_archive(TAR, saved->layers[i]);
    _cleanup_fd_ int packed = make_archive(saved->kind ? saved->kind : TAR, saved->layers[i]);

    assert_int_equal(oci_digest_file(tar, digest), 0);
    return bytes_of(packed, ret_len);
}

/* As `docker save` writes it. */
static int make_saved(const struct saved *saved)
{
    int fd = memfd_create("saved", MFD_CLOEXEC);
    struct archive *a = archive_write_new();
    char ids[512] = "", names[256] = "", config[1024], manifest[1024];
    size_t n = 0;

    archive_write_set_format_pax_restricted(a);
    assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
    for (; n < LAYERS_MAX && saved->layers[n]; n++) {
        char digest[OCI_HEX_SIZE], name[32];
        size_t len;
        char *data = make_layer(saved, n, digest, &len);

        if (saved->wrong_content)
            digest[0] = digest[0] == 'a' ? 'b' : 'a';
        snprintf(name, sizeof(name), "l%zu/layer.tar", n);
        snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s\"sha256:%s\"", n ? "," : "",
                 digest);
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\"%s\"", n ? "," : "",
                 name);
        if (n == 0 && saved->raw_layer)
            put(a, name, saved->raw_layer, strlen(saved->raw_layer));
        else if (!saved->without_layers)
            put(a, name, data, len);
        free(data);
    }
    snprintf(config, sizeof(config),
             "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[%s]}}",
             ids);
    snprintf(manifest, sizeof(manifest),
             "[{\"Config\":\"c.json\",\"RepoTags\":[\"own:1\"],\"Layers\":[%s]}]", names);
    if (!saved->config || *saved->config)
        put(a, "c.json", saved->config ? saved->config : config,
            strlen(saved->config ? saved->config : config));
    if (!saved->manifest || *saved->manifest)
        put(a, "manifest.json", saved->manifest ? saved->manifest : manifest,
            strlen(saved->manifest ? saved->manifest : manifest));
    for (const struct member *m = saved->more; m && m->path; m++) {
        struct archive_entry *entry = archive_entry_new();

        archive_entry_set_pathname(entry, m->path);
        archive_entry_set_filetype(entry, m->link ? AE_IFLNK : AE_IFREG);
        if (m->link)
            archive_entry_set_symlink(entry, m->link);
        archive_entry_set_size(entry, m->link ? 0 : (la_int64_t)strlen(m->content));
        assert_true(archive_write_header(a, entry) >= ARCHIVE_WARN);
        if (!m->link)
            assert_int_equal(archive_write_data(a, m->content, strlen(m->content)),
                             strlen(m->content));
        archive_entry_free(entry);
    }
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
    return fd;
}

static int import(struct fixture *f, const struct saved *saved)
{
    _cleanup_fd_ int fd = make_saved(saved);

    return oci_import(fd, f->spool, f->root, &f->origin, &f->err);
}

/* By all of its bytes. */
static void is_told_as_it_was_read(const struct fixture *f, int fd)
{
    char digest[OCI_HEX_SIZE];

    assert_int_equal(oci_digest_file(fd, digest), 0);
    assert_string_equal(f->origin.digest, digest);
}

static void holds(const char *path, const char *content, unsigned mode)
{
    char text[64];
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 07777, mode);
    assert_true(fd_read_text(path, text, sizeof(text)) >= 0);
    assert_string_equal(text, content);
}

static void layers_lie_over_one_another(void **state)
{
    struct fixture *f = *state;
    static const struct member first[] = {{.path = "./", .type = AE_IFDIR, .mode = 0755},
                                          {.path = "usr/", .type = AE_IFDIR, .mode = 0755},
                                          {.path = "usr/a", .content = "a"},
                                          {.path = "usr/secret", .content = "s", .mode = 04001},
                                          {.path = "gone", .content = "g"},
                                          {.path = "full/one", .content = "1"},
                                          {.path = "full/deep/two", .content = "2"},
                                          {.path = "becomes", .content = "a file"},
                                          {.path = "lib", .link = "usr/lib"},
                                          {.path = "usr/lib/", .type = AE_IFDIR, .mode = 0700},
                                          {.path = "null", .type = AE_IFCHR},
                                          {.path = "pipe", .type = AE_IFIFO},
                                          {0}};
    /* Its marks come last, and mean the layer below alone. */
    static const struct member second[] = {{.path = "full/three", .content = "3"},
                                           {.path = "lib/new", .content = "n"},
                                           {.path = "usr/same", .hard = "usr/a"},
                                           {.path = "becomes/a-folder", .content = "f"},
                                           {.path = ".wh.becomes"},
                                           {.path = ".wh.gone"},
                                           {.path = "full/.wh..wh..opq"},
                                           {.path = "never/.wh.there"},
                                           {0}};
    struct stat st, other;
    const enum kind kinds[] = {TAR, TAR_GZ, TAR_ZSTD};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct saved saved = {.layers = {first, second}, .kind = kinds[i]};

        assert_int_equal(import(f, &saved), 0);
        assert_string_equal(f->origin.title, "own:1");
        holds("root/usr/a", "a", 0644);
        holds("root/usr/secret", "s", 0601);
        holds("root/full/three", "3", 0644);
        holds("root/usr/lib/new", "n", 0644);
        holds("root/becomes/a-folder", "f", 0644);
        assert_int_equal(access("root/gone", F_OK), -1);
        assert_int_equal(access("root/full/one", F_OK), -1);
        assert_int_equal(access("root/full/deep", F_OK), -1);
        assert_int_equal(access("root/null", F_OK), -1);
        assert_int_equal(access("root/pipe", F_OK), -1);
        assert_int_equal(access("root/never", F_OK), -1);
        assert_int_equal(stat("root/usr/a", &st) | stat("root/usr/same", &other), 0);
        assert_int_equal(st.st_ino, other.st_ino);
        assert_int_equal(system("rm -rf root/* spool/*"), 0);
    }
}

/* What a layer says of the root is of all below it, and of nothing that it brings itself. */
static void the_root_may_begin_anew(void **state)
{
    struct fixture *f = *state;
    static const struct member first[] = {{.path = "etc/passwd", .content = "p"},
                                          {.path = "link", .link = "/etc"},
                                          {.path = "file", .content = "f"},
                                          {0}};
    static const struct member second[] = {
        {.path = "etc/own", .content = "o"}, {.path = "./.wh..wh..opq"}, {0}};
    static const struct member third[] = {{.path = "later", .content = "l"}, {0}};
    const struct saved saved = {.layers = {first, second, third}};

    assert_int_equal(import(f, &saved), 0);
    holds("root/etc/own", "o", 0644);
    holds("root/later", "l", 0644);
    assert_int_equal(access("root/etc/passwd", F_OK), -1);
    assert_int_equal(faccessat(AT_FDCWD, "root/link", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(access("root/file", F_OK), -1);
}

/* A link of a layer leads a later entry to where it leads in the container, not here. */
static void links_are_followed_inside(void **state)
{
    struct fixture *f = *state;
    static const struct member first[] = {{.path = "root-of-all", .link = "/"},
                                          {.path = "up", .link = "../../../../../.."},
                                          {.path = "etc/", .type = AE_IFDIR, .mode = 0755},
                                          {.path = "tmp", .link = "/etc"},
                                          {.path = "file", .link = "/etc/passwd"},
                                          {0}};
    static const struct member second[] = {{.path = "root-of-all/one", .content = "1"},
                                           {.path = "up/two", .content = "2"},
                                           {.path = "tmp/three", .content = "3"},
                                           {.path = "file", .content = "4"},
                                           {.path = "up/.wh.etc"},
                                           {0}};
    const struct saved saved = {.layers = {first, second}};

    assert_int_equal(import(f, &saved), -ELOOP); /* etc is gone, to which tmp leads */
    assert_int_equal(system("rm -rf root/* spool/*"), 0);
    const struct member more[] = {second[0], second[1], second[2], second[3], {0}};
    const struct saved again = {.layers = {first, more}};
    f->err = (struct err){0};
    assert_int_equal(import(f, &again), 0);
    holds("root/one", "1", 0644);
    holds("root/two", "2", 0644);
    holds("root/etc/three", "3", 0644);
    holds("root/file", "4", 0644);
    assert_int_equal(access("/one", F_OK), -1);
    assert_int_equal(access("/etc/three", F_OK), -1);
}

static void what_attacks_is_refused(void **state)
{
    struct fixture *f = *state;
    static char deep[700];
    static const struct member good[] = {{.path = "a", .content = "a"}, {0}};
    static const struct member up[] = {{.path = "x/../../a", .content = "a"}, {0}};
    static const struct member absolute[] = {{.path = "/etc/a", .content = "a"}, {0}};
    static const struct member no_target[] = {{.path = "b", .hard = "nothing"}, {0}};
    static const struct member far_target[] = {{.path = "b", .hard = "/etc/passwd"}, {0}};
    static const struct member up_target[] = {{.path = "b", .hard = "../../etc/passwd"}, {0}};
    static const struct member to_folder[] = {
        {.path = "d/", .type = AE_IFDIR, .mode = 0755}, {.path = "b", .hard = "d"}, {0}};
    static const struct member mark[] = {{.path = "a/.wh."}, {0}};
    static const struct member mark_up[] = {{.path = "a/.wh..."}, {0}};
    static const struct member in_file[] = {
        {.path = "a", .content = "a"}, {.path = "a/b", .content = "b"}, {0}};
    static const struct member nowhere[] = {
        {.path = "a", .link = "not/there"}, {.path = "a/b", .content = "b"}, {0}};
    static const struct member loop[] = {
        {.path = "a", .link = "a"}, {.path = "a/b", .content = "b"}, {0}};
    static const struct member too_deep[] = {{.path = deep, .content = "x"}, {0}};
    static const struct member bomb[] = {{.path = "zeros", .zeros = 200u << 20}, {0}};
    static const struct member twice[] = {{.path = "c.json", .content = "{}"}, {0}};
    static const struct member out[] = {{.path = "l9/x", .link = "../../y"}, {0}};
    static const struct member named_up[] = {{.path = "../y", .content = ""}, {0}};
    static const struct member layout[] = {{.path = "oci-layout", .content = "{}"}, {0}};
    static const struct member bare_layout[] = {
        {.path = "oci-layout", .content = "{\"imageLayoutVersion\":\"1.0.0\"}"}, {0}};
    const struct {
        struct saved saved;
        int result;
        const char *message;
    } cases[] = {
        {{.layers = {up}}, -EINVAL, "the layer l0/layer.tar: \"..\" in the path \"x/../../a\""},
        {{.layers = {absolute}}, -EINVAL, "the absolute path \"/etc/a\""},
        {{.layers = {no_target}}, -ENOENT, "b is the same file as nothing, which is not there"},
        {{.layers = {far_target}}, -EINVAL, "the absolute path \"/etc/passwd\""},
        {{.layers = {up_target}}, -EINVAL, "\"..\" in the path \"../../etc/passwd\""},
        {{.layers = {to_folder}}, -ENOENT, "b is the same file as d, which is not there"},
        {{.layers = {mark}}, -EINVAL, "the whiteout \"a/.wh.\" is of nothing"},
        {{.layers = {mark_up}}, -EINVAL, "the whiteout \"a/.wh...\" is of nothing"},
        {{.layers = {in_file}}, -ENOTDIR, "a/b lies in what is no folder"},
        {{.layers = {nowhere}}, -ELOOP, "a/b lies behind a link that leads nowhere"},
        {{.layers = {loop}}, -ELOOP, "a/b lies behind a link that leads nowhere"},
        {{.layers = {too_deep}}, -E2BIG, "more than 128 folders in one another"},
        {{.layers = {bomb}, .kind = TAR_GZ}, -E2BIG, "unpacks to more than 200 times its size"},
        {{.layers = {bomb}, .kind = TAR_ZSTD},
         -E2BIG,
         "unpacks to more than 200 times its size"},
        {{.layers = {good}, .raw_layer = "no tar at all"},
         -EINVAL,
         "the layer l0/layer.tar: it"},
        {{.layers = {good}, .raw_layer = ""}, -EINVAL, "is empty or cannot be unpacked"},
        {{.layers = {good}, .raw_layer = "\x1f\x8b\x08"},
         -EINVAL,
         "the layer l0/layer.tar: it"},
        {{.layers = {good}, .wrong_content = true},
         -EBADMSG,
         "what is in it is not what the configuration says"},
        {{.layers = {good}, .without_layers = true},
         -ENOENT,
         "the archive has no l0/layer.tar"},
        {{.layers = {good}, .config = ""}, -ENOENT, "the archive has no c.json"},
        {{.layers = {good}, .manifest = ""}, -EINVAL, "neither oci-layout nor manifest.json"},
        {{.layers = {good}, .more = twice}, -EEXIST, "the archive holds c.json twice"},
        {{.layers = {good}, .more = out},
         -EINVAL,
         "the link \"l9/x\" leads out of the archive"},
        {{.layers = {good}, .more = named_up}, -EINVAL, "\"..\" in the path \"../y\""},
        {{.layers = {good}, .more = layout}, -EINVAL, "oci-layout has no imageLayoutVersion"},
        {{.layers = {good}, .more = bare_layout}, -ENOENT, "the archive has no index.json"},
    };

    for (unsigned i = 0; i <= OCI_DEPTH_MAX; i++)
        strcat(deep, "d/");
    strcat(deep, "x");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f->err = (struct err){0};
        assert_int_equal(import(f, &cases[i].saved), cases[i].result);
        if (!strstr(f->err.message, cases[i].message))
            assert_string_equal(f->err.message, cases[i].message);
        assert_int_equal(system("rm -rf root/* spool/*"), 0);
    }
}

/* `docker save` writes a layer that comes again as a link to where it was first. */
static void a_layer_may_be_a_link(void **state)
{
    struct fixture *f = *state;
    static const struct member first[] = {{.path = "a", .content = "a"}, {0}};
    static const struct member links[] = {{.path = "l1/layer.tar", .link = "../l0/layer.tar"},
                                          {0}};
    _cleanup_fd_ int tar = make_archive(TAR, first);
    char digest[OCI_HEX_SIZE], config[512];
    struct saved saved = {
        .layers = {first},
        .more = links,
        .config = config,
        .manifest = "[{\"Config\":\"c.json\",\"Layers\":[\"l0/layer.tar\",\"l1/layer.tar\"]}]"};

    assert_int_equal(oci_digest_file(tar, digest), 0);
    snprintf(config, sizeof(config),
             "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":["
             "\"sha256:%s\",\"sha256:%s\"]}}",
             digest, digest);
    assert_int_equal(import(f, &saved), 0);
    holds("root/a", "a", 0644);
    assert_string_equal(f->origin.title, "");
}

static void an_index_leads_to_blobs_that_are_checked(void **state)
{
    struct fixture *f = *state;
    static const struct member layer[] = {{.path = "a", .content = "a"}, {0}};
    char layer_hex[OCI_HEX_SIZE], hex[3][OCI_HEX_SIZE], text[3][1024], name[4][96];
    _cleanup_fd_ int tar = make_archive(TAR, layer);
    size_t len;
    char *data = bytes_of(tar, &len);
    const char *expected[] = {NULL, "is not what its digest says", "bytes, not the"};

    assert_int_equal(oci_digest_file(tar, layer_hex), 0);
    for (int wrong = 0; wrong < 3; wrong++) {
        _cleanup_fd_ int fd = memfd_create("oci", MFD_CLOEXEC);
        struct archive *a = archive_write_new();

        snprintf(text[0], 1024,
                 "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":["
                 "\"sha256:%s\"]}}",
                 layer_hex);
        for (int i = 0; i < 3; i++) {
            _cleanup_fd_ int blob = memfd_create("blob", MFD_CLOEXEC);

            if (i == 1)
                snprintf(text[1], 1024,
                         "{\"config\":{\"digest\":\"sha256:%s\",\"size\":%zu},\"layers\":[{"
                         "\"digest\":\"sha256:%s\",\"size\":%zu}]}",
                         hex[0], strlen(text[0]), layer_hex, len + (wrong == 2));
            if (i == 2)
                snprintf(text[2], 1024,
                         "{\"manifests\":[{\"digest\":\"sha256:%s\",\"size\":%zu,"
                         "\"annotations\":{\"io.containerd.image.name\":\"tools\"}}]}",
                         hex[1], strlen(text[1]));
            assert_int_equal(fd_write_full(blob, text[i], strlen(text[i])), 0);
            assert_int_equal(oci_digest_file(blob, hex[i]), 0);
            snprintf(name[i], sizeof(name[i]), "blobs/sha256/%.64s", hex[i]);
        }
        snprintf(name[3], sizeof(name[3]), "blobs/sha256/%.64s", layer_hex);
        archive_write_set_format_pax_restricted(a);
        archive_write_add_filter_gzip(a);
        assert_int_equal(archive_write_open_fd(a, fd), ARCHIVE_OK);
        put(a, "oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", 30);
        put(a, "index.json", text[2], strlen(text[2]));
        if (wrong == 1)
            text[0][2] = 'O';
        put(a, name[0], text[0], strlen(text[0]));
        put(a, name[1], text[1], strlen(text[1]));
        put(a, name[3], data, len);
        assert_int_equal(archive_write_free(a), ARCHIVE_OK);
        f->err = (struct err){0};
        assert_int_equal(oci_import(fd, f->spool, f->root, &f->origin, &f->err),
                         wrong ? -EBADMSG : 0);
        if (wrong) {
            assert_non_null(strstr(f->err.message, expected[wrong]));
        } else {
            assert_string_equal(f->origin.title, "tools");
            is_told_as_it_was_read(f, fd);
        }
        assert_int_equal(access("root/a", F_OK), wrong ? -1 : 0);
        assert_int_equal(system("rm -rf root/* spool/*"), 0);
    }
    free(data);
}

/* Behind the end of what unpacks there may be more, which is read for this alone. */
static void an_archive_is_told_with_what_lies_behind_it(void **state)
{
    struct fixture *f = *state;
    static const struct member layer[] = {{.path = "a", .content = "a"}, {0}};
    const struct saved saved = {.layers = {layer}};
    static const char more[200000];
    _cleanup_fd_ int fd = make_saved(&saved);

    assert_true(lseek(fd, 0, SEEK_END) > 0);
    assert_int_equal(fd_write_full(fd, more, sizeof(more)), 0);
    assert_int_equal(fd_write_full(fd, "end", 3), 0);
    assert_int_equal(oci_import(fd, f->spool, f->root, &f->origin, &f->err), 0);
    is_told_as_it_was_read(f, fd);
}

static void what_is_no_archive_is_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *bytes, *message;
    } cases[] = {{"", "the archive is empty or cannot be unpacked"},
                 {"hello", "the archive: "},
                 {"PK\x03\x04 a zip", "the archive: "}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_fd_ int fd = memfd_create("none", MFD_CLOEXEC);

        assert_int_equal(fd_write_full(fd, cases[i].bytes, strlen(cases[i].bytes)), 0);
        f->err = (struct err){0};
        assert_int_equal(oci_import(fd, f->spool, f->root, &f->origin, &f->err), -EINVAL);
        assert_non_null(strstr(f->err.message, cases[i].message));
    }
}

#define OCI_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OCI_TEST(layers_lie_over_one_another),
        OCI_TEST(the_root_may_begin_anew),
        OCI_TEST(links_are_followed_inside),
        OCI_TEST(what_attacks_is_refused),
        OCI_TEST(a_layer_may_be_a_link),
        OCI_TEST(an_index_leads_to_blobs_that_are_checked),
        OCI_TEST(an_archive_is_told_with_what_lies_behind_it),
        OCI_TEST(what_is_no_archive_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
