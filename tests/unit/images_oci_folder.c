/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images/oci: an OCI layout that is a folder, made here. It is read where it is; what in it is
 * damaged, or is something else than a file, is refused by its own message, also what changes
 * while it is read.
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

#define LAYOUT "{\"imageLayoutVersion\":\"1.0.0\"}"
#define BLOBS  "image/blobs/sha256/"

enum blob { CONFIG, MANIFEST, LAYER, N_BLOBS };

struct fixture {
    char dir[64];
    int spool, root;
    char hex[N_BLOBS][OCI_HEX_SIZE];
    char path[N_BLOBS][128];
    struct oci_origin origin;
    struct err err;
};

static void put(const char *path, const char *data, size_t len)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, data, len), 0);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

static void put_blob(struct fixture *f, enum blob blob, const char *data, size_t len)
{
    _cleanup_fd_ int fd = memfd_create("blob", MFD_CLOEXEC);
    char *path = f->path[blob];

    assert_int_equal(fd_write_full(fd, data, len), 0);
    assert_int_equal(oci_digest_file(fd, f->hex[blob]), 0);
    strcpy(path, BLOBS);
    strcat(path, f->hex[blob]);
    put(path, data, len);
}

/* As `skopeo copy … oci:image` writes it, with a packed layer that puts root/a. */
static void make_layout(struct fixture *f)
{
    static const struct member layer[] = {{.path = "a", .content = "a"}, {0}};
    _cleanup_fd_ int tar = make_archive(TAR, layer), packed = make_archive(TAR_GZ, layer);
    char text[1024], inner[OCI_HEX_SIZE], data[4096];
    ssize_t n = fd_pread_full(packed, data, sizeof(data), 0);
    size_t config_len;

    assert_true(n > 0 && n < (ssize_t)sizeof(data));
    assert_int_equal(oci_digest_file(tar, inner), 0);
    assert_int_equal(system("mkdir -p " BLOBS), 0);
    put_blob(f, LAYER, data, (size_t)n);
    snprintf(text, sizeof(text),
             "{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"sha256:"
             "%s\"]}}",
             inner);
    config_len = strlen(text);
    put_blob(f, CONFIG, text, config_len);
    snprintf(text, sizeof(text),
             "{\"config\":{\"digest\":\"sha256:%s\",\"size\":%zu},\"layers\":[{\"digest\":"
             "\"sha256:%s\",\"size\":%zd}]}",
             f->hex[CONFIG], config_len, f->hex[LAYER], n);
    put_blob(f, MANIFEST, text, strlen(text));
    snprintf(text, sizeof(text),
             "{\"manifests\":[{\"digest\":\"sha256:%s\",\"size\":%zu,\"annotations\":{"
             "\"org.opencontainers.image.ref.name\":\"tools\"}}]}",
             f->hex[MANIFEST], strlen(text));
    put_text("image/index.json", text);
    put_text("image/oci-layout", LAYOUT);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    strcpy(f->dir, "/tmp/images-oci-folder-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(chdir(f->dir), 0);
    assert_int_equal(mkdir("spool", 0700) | mkdir("root", 0755) | mkdir("image", 0755), 0);
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

static int import(struct fixture *f, const char *path)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    assert_true(fd >= 0);
    f->err = (struct err){0};
    return oci_import(fd, f->spool, f->root, &f->origin, &f->err);
}

static void refused(struct fixture *f, const char *path, int result, const char *message)
{
    assert_int_equal(import(f, path), result);
    if (!strstr(f->err.message, message))
        assert_string_equal(f->err.message, message);
    assert_int_equal(access("root/a", F_OK), -1);
}

static void digest_of(const char *path, char ret[OCI_HEX_SIZE])
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(oci_digest_file(fd, ret), 0);
}

static void a_layout_is_read_where_it_is(void **state)
{
    struct fixture *f = *state;
    char text[8], digest[OCI_HEX_SIZE];

    make_layout(f);
    digest_of("image/index.json", digest);
    assert_int_equal(import(f, "image"), 0);
    assert_string_equal(f->origin.title, "tools");
    assert_string_equal(f->origin.digest, digest);
    assert_true(fd_read_text("root/a", text, sizeof(text)) >= 0);
    assert_string_equal(text, "a");
    assert_int_equal(rmdir("spool"), 0); /* nothing was put there */
}

/* What takes a file's place. Each is of the same name and would lead to the same bytes. */
static void as_a_link(const char *path)
{
    char *here = get_current_dir_name(), target[192];

    assert_int_equal(rename(path, "moved"), 0);
    snprintf(target, sizeof(target), "%s/moved", here);
    free(here);
    assert_int_equal(symlink(target, path), 0);
}

static void as_a_folder(const char *path)
{
    assert_int_equal(unlink(path) | mkdir(path, 0755), 0);
}

static void as_a_pipe(const char *path)
{
    assert_int_equal(unlink(path) | mkfifo(path, 0600), 0);
}

static void as_nothing(const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static void as_other_bytes(const char *path)
{
    _cleanup_fd_ int fd = open(path, O_RDWR | O_CLOEXEC);
    char c;

    assert_int_equal(pread(fd, &c, 1, 0), 1);
    c ^= 1;
    assert_int_equal(pwrite(fd, &c, 1, 0), 1);
}

static void as_a_longer_one(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st) | truncate(path, st.st_size + 1), 0);
}

static void as_an_endless_one(const char *path)
{
    assert_int_equal(truncate(path, (off_t)OCI_BYTES_MAX + 1), 0);
}

static void what_is_damaged_is_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        void (*damage)(const char *path);
        int result;
        const char *message;
    } cases[] = {
        {as_a_link, -ELOOP, "is a link, and none is followed in a folder"},
        {as_a_folder, -EINVAL, "is no file"},
        {as_a_pipe, -EINVAL, "is no file"},
        {as_nothing, -ENOENT, "the folder has no blobs/sha256/"},
        {as_other_bytes, -EBADMSG, "is not what its digest says"},
        {as_a_longer_one, -EBADMSG, "bytes, not the"},
        {as_an_endless_one, -E2BIG, "the folder holds files of more bytes than may be"},
    };
    static const char *const documents[] = {"image/oci-layout", "image/index.json"};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int blob = 0; blob < N_BLOBS; blob++) {
            make_layout(f);
            cases[i].damage(f->path[blob]);
            refused(f, "image", cases[i].result, cases[i].message);
            assert_int_equal(system("rm -rf image/* moved"), 0);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        for (size_t document = 0; document < 2; document++) {
            make_layout(f);
            cases[i].damage(documents[document]);
            refused(f, "image", cases[i].result, cases[i].message);
            assert_int_equal(system("rm -rf image/* moved"), 0);
        }
    }
}

/* Nor is one followed on the way to a blob, in the folder or out of it. */
static void folders_that_are_links_are_refused(void **state)
{
    struct fixture *f = *state;

    make_layout(f);
    assert_int_equal(rename("image/blobs", "image/elsewhere"), 0);
    assert_int_equal(symlink("elsewhere", "image/blobs"), 0);
    refused(f, "image", -ELOOP, "is a link, and none is followed in a folder");
    assert_int_equal(unlink("image/blobs") | rename("image/elsewhere", "blobs"), 0);
    assert_int_equal(symlink("../blobs", "image/blobs"), 0);
    refused(f, "image", -ELOOP, "is a link, and none is followed in a folder");
}

static void what_is_no_layout_is_refused(void **state)
{
    struct fixture *f = *state;

    refused(f, "image", -EINVAL, "this folder is no container image: it has no oci-layout");
    /* What `docker save` puts into an archive tells of no digests. */
    put_text("image/manifest.json", "[{\"Config\":\"c.json\",\"Layers\":[]}]");
    refused(f, "image", -EINVAL, "this folder is no container image: it has no oci-layout");
    put_text("image/oci-layout", LAYOUT);
    refused(f, "image", -ENOENT, "the folder has no index.json");
    put_text("image/index.json", "{\"manifests\":[]}");
    refused(f, "image", -ENOENT, "");
    put_text("image/oci-layout", "{}");
    refused(f, "image", -EINVAL, "oci-layout has no imageLayoutVersion");
    assert_int_equal(truncate("image/oci-layout", OCI_JSON_MAX + 1), 0);
    refused(f, "image", -EFBIG, "oci-layout is over");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    refused(f, "pipe", -EINVAL, "it is neither a file nor a folder");
}

/* Called at each reading of bytes: behind the first of a document somebody writes to its file.
 */
static const char *changing_document;
static struct stat document;

ssize_t __real_fd_pread_full(int fd, void *data, size_t len, uint64_t offset);
ssize_t __wrap_fd_pread_full(int fd, void *data, size_t len, uint64_t offset);
ssize_t __wrap_fd_pread_full(int fd, void *data, size_t len, uint64_t offset)
{
    ssize_t n = __real_fd_pread_full(fd, data, len, offset);
    struct stat st;

    if (changing_document && fstat(fd, &st) == 0 && st.st_ino == document.st_ino) {
        as_other_bytes(changing_document);
        changing_document = NULL;
    }
    return n;
}

/* What is read is what was digested, whatever is in the file by then. */
static void documents_are_read_once(void **state)
{
    struct fixture *f = *state;
    const char *const documents[] = {"image/oci-layout", "image/index.json", f->path[MANIFEST],
                                     f->path[CONFIG]};

    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        char digest[OCI_HEX_SIZE];

        make_layout(f);
        digest_of("image/index.json", digest);
        assert_int_equal(stat(documents[i], &document), 0);
        changing_document = documents[i];
        if (import(f, "image") < 0)
            fail_msg("%s: %s", documents[i], f->err.message);
        assert_null(changing_document);
        assert_string_equal(f->origin.digest, digest);
        assert_int_equal(access("root/a", F_OK), 0);
        assert_int_equal(system("rm -rf image/* root/*"), 0);
    }
}

/* Called at each opening of a layer: between two readings of it, somebody writes to its file.
 */
static const char *changing;
static int openings;

int __real_oci_stream_open(int fd, const char *what, struct oci_room *room,
                           struct oci_stream **ret, struct err *err);
int __wrap_oci_stream_open(int fd, const char *what, struct oci_room *room,
                           struct oci_stream **ret, struct err *err);
int __wrap_oci_stream_open(int fd, const char *what, struct oci_room *room,
                           struct oci_stream **ret, struct err *err)
{
    static const struct member other[] = {{.path = "a", .content = "b"}, {0}};
    static const struct member bomb[] = {{.path = "a", .zeros = 10u << 20}, {0}};
    const struct member *const layers[] = {other, bomb};

    if (changing && openings++ % 2) {
        _cleanup_fd_ int packed = make_archive(TAR_GZ, layers[openings / 2 - 1]);
        char data[65536];
        ssize_t n = fd_pread_full(packed, data, sizeof(data), 0);

        assert_true(n > 0 && n < (ssize_t)sizeof(data));
        put(changing, data, (size_t)n);
    }
    return __real_oci_stream_open(fd, what, room, ret, err);
}

static void what_changes_while_it_is_read_is_refused(void **state)
{
    struct fixture *f = *state;

    make_layout(f);
    changing = f->path[LAYER];
    assert_int_equal(import(f, "image"), -EBADMSG);
    assert_non_null(strstr(f->err.message, "what is in it is not what the configuration says"));
    assert_int_equal(system("rm -rf image/* root/*"), 0);
    make_layout(f);
    assert_int_equal(import(f, "image"), -E2BIG);
    assert_int_equal(openings, 4);
    changing = NULL;
}

#define OCI_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OCI_TEST(a_layout_is_read_where_it_is),
        OCI_TEST(what_is_damaged_is_refused),
        OCI_TEST(folders_that_are_links_are_refused),
        OCI_TEST(what_is_no_layout_is_refused),
        OCI_TEST(what_changes_while_it_is_read_is_refused),
        OCI_TEST(documents_are_read_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
