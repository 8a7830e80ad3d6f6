/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension module _skillvm_zygote: changes the command line of the running interpreter before
 * it looks at it. It takes the place of Py_RunMain, waits there until it is told what to run,
 * and goes on in Py_RunMain, which then runs "the script of its command line": so the skill's
 * code runs with no frame below it and with the interpreter's own handling of paths, exceptions
 * and exit codes. It must never be imported by anything but the zygote, and leaves nothing in
 * sys.modules.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-init/zygote/finish.h"
#include "guest-init/zygote/redirect.h"

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "written against the PyConfig of Python 3.11"
#endif

static void free_wide(wchar_t **items, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        PyMem_Free(items[i]);
    PyMem_Free(items);
}

static int raise_status(PyStatus status)
{
    if (!PyStatus_Exception(status))
        return 0;
    PyErr_SetString(PyExc_RuntimeError, status.err_msg ? status.err_msg : "PyConfig");
    return -1;
}

/* Sets one list of the configuration from a list of str. 0, or -1 with an exception. */
static int set_list(PyConfig *config, PyWideStringList *list, PyObject *strings)
{
    Py_ssize_t count = strings ? PyList_Size(strings) : -1;
    wchar_t **items;
    PyStatus status;

    if (count < 0)
        return -1;
    items = PyMem_Calloc((size_t)count + 1, sizeof(*items));
    if (!items) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        items[i] = PyUnicode_AsWideCharString(PyList_GetItem(strings, i), NULL);
        if (!items[i]) {
            free_wide(items, count);
            return -1;
        }
    }
    status = PyConfig_SetWideStringList(config, list, count, items);
    free_wide(items, count);
    return raise_status(status);
}

/* Sets one string of the configuration from a str, or unsets it for None. */
static int set_string(PyConfig *config, wchar_t **field, PyObject *value)
{
    wchar_t *text = NULL;
    PyStatus status;

    if (value != Py_None) {
        text = PyUnicode_AsWideCharString(value, NULL);
        if (!text)
            return -1;
    }
    status = PyConfig_SetString(config, field, text);
    PyMem_Free(text);
    return raise_status(status);
}

/*
 * gc.freeze() hid __main__ and its dictionary from the collector as well. They are the skill's:
 * what it leaves in cycles with them must be finalised at exit as it always is.
 */
static int unfreeze_main(void)
{
    PyObject *module = PyImport_AddModule("__main__");
    PyObject *dict = module ? PyModule_GetDict(module) : NULL;

    if (!dict)
        return -1;
    PyObject_GC_UnTrack(module);
    PyObject_GC_Track(module);
    PyObject_GC_UnTrack(dict);
    PyObject_GC_Track(dict);
    return 0;
}

/* A script up to this size is looked at for being an archive. */
#define SCRIPT_MAX 65536

/* What the one message says; pointers into it. */
struct message {
    char *data; /* never freed */
    size_t len;
    const char *kind; /* "file", "module" or "warm", which has only names, in environment */
    const char *cwd;
    const char *target;
    char **args;
    size_t n_args;
    const char *environment; /* the rest: NAME=value, each with its NUL */
};

static int control = -1;
/* What the image links its first folder of packages to: the skill's own. */
#define PACKAGES "/sandbox/packages"

static PyObject *preloaded;   /* set of the names of top level modules */
static PyObject *import_all;  /* imports a list of names; the set that is then preloaded */
static PyObject *random_seed; /* random.Random.seed of the module's generator */
static PyObject *environment; /* posix.environ */
static struct redirection main_call;

/* All of len bytes. 0, or -1 at the end of the stream or with errno. */
static int read_all(void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = read(control, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The next string of the message, or NULL when there is none. */
static const char *take(const struct message *m, const char **at)
{
    const char *text = *at;

    if (text >= m->data + m->len)
        return NULL;
    *at = text + strlen(text) + 1;
    return text;
}

/* Waits for the message. False when nobody is there any more, or it is malformed. */
static int receive(struct message *m)
{
    uint8_t head[4];
    const char *at, *count;

    if (write(control, "w", 1) != 1 || read_all(head, sizeof(head)) < 0)
        return 0;
    m->len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    m->data = malloc(m->len + 1);
    if (!m->data || m->len == 0 || read_all(m->data, m->len) < 0)
        return 0;
    m->data[m->len] = 0;
    at = m->data;
    m->kind = take(m, &at);
    if (strcmp(m->kind, "warm") == 0) {
        m->environment = at;
        return 1;
    }
    m->cwd = take(m, &at);
    m->target = take(m, &at);
    count = take(m, &at);
    if (!count)
        return 0;
    m->n_args = strtoul(count, NULL, 10);
    m->args = reallocarray(NULL, m->n_args + 1, sizeof(*m->args));
    if (!m->args)
        return 0;
    for (size_t i = 0; i < m->n_args; i++) {
        const char *text = take(m, &at);

        if (!text)
            return 0;
        m->args[i] = (char *)(uintptr_t)text;
    }
    m->environment = at;
    return 1;
}

/* NumPy's own generator is drawn when it is imported, which for a warm one was before a
 * snapshot. */
static int reseed_numpy(void)
{
    PyObject *name = PyUnicode_FromString("numpy.random");
    PyObject *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *done = module ? PyObject_CallMethod(module, "seed", NULL) : NULL;

    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(done);
    return PyErr_Occurred() ? -1 : 0;
}

/* Gives every generator and clock of the preloaded modules the state of a fresh start. */
static int reseed(void)
{
    uint8_t seed[64];
    PyObject *number, *done, *logging, *now;
    struct timespec t;
    int r = -1;

    if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed) ||
        clock_gettime(CLOCK_REALTIME, &t) < 0)
        return -1;
    number = _PyLong_FromByteArray(seed, sizeof(seed), 1, 0);
    done = number ? PyObject_CallOneArg(random_seed, number) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(done);
    logging = done ? PyImport_AddModule("logging") : NULL;
    now = logging ? PyFloat_FromDouble((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) : NULL;
    if (now)
        r = PyObject_SetAttrString(logging, "_startTime", now);
    Py_XDECREF(now);
    return r;
}

/* One NAME=value for os.environ, which shares its dict with posix.environ. */
static int add_variable(const char *text)
{
    const char *equals = strchr(text, '=');
    PyObject *name, *value;
    int r = -1;

    if (!equals)
        return 0;
    name = PyBytes_FromStringAndSize(text, equals - text);
    value = PyBytes_FromString(equals + 1);
    if (name && value && PyDict_SetItem(environment, name, value) == 0)
        r = setenv(PyBytes_AS_STRING(name), equals + 1, 1);
    Py_XDECREF(name);
    Py_XDECREF(value);
    return r;
}

static int set_environment(const struct message *m)
{
    const char *at = m->environment;
    const char *text;
    PyObject *time, *done;

    PyDict_Clear(environment);
    if (clearenv() != 0)
        return -1;
    while ((text = take(m, &at)))
        if (add_variable(text) < 0)
            return -1;
    if (!getenv("TZ"))
        return 0;
    time = PyImport_ImportModule("time");
    done = time ? PyObject_CallMethod(time, "tzset", NULL) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(time);
    return done ? 0 : -1;
}

/* True when the script's own directory, first on its path, has a module of a preloaded name. */
static int is_shadowed(const char *directory)
{
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    int answer = 0;

    while (dir && !answer && (entry = readdir(dir))) {
        Py_ssize_t len = (Py_ssize_t)(strchrnul(entry->d_name, '.') - entry->d_name);
        PyObject *name = len > 0 ? PyUnicode_DecodeFSDefaultAndSize(entry->d_name, len) : NULL;

        answer = name && PySet_Contains(preloaded, name) > 0;
        Py_XDECREF(name);
        PyErr_Clear();
    }
    if (dir)
        (void)closedir(dir);
    return answer;
}

/* True for packages that have a say in the interpreter's own start. */
static int shape_start(const char *directory)
{
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    int answer = 0;

    while (dir && !answer && (entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);

        answer = (len > 4 && strcmp(entry->d_name + len - 4, ".pth") == 0) ||
                 strncmp(entry->d_name, "sitecustomize", 13) == 0 ||
                 strncmp(entry->d_name, "usercustomize", 13) == 0;
    }
    if (dir)
        (void)closedir(dir);
    return answer;
}

/* True for a script that would see that modules are already there. */
static int needs_plain_start(const struct message *m)
{
    char real[PATH_MAX];
    struct stat st;
    char *slash;

    if (stat(m->target, &st) == 0 && S_ISDIR(st.st_mode))
        return 1;
    if (shape_start(PACKAGES) || is_shadowed(PACKAGES))
        return 1;
    if (strcmp(m->kind, "module") == 0)
        return is_shadowed(".");
    slash = realpath(m->target, real) ? strrchr(real, '/') : NULL;
    if (!slash)
        return 0;
    *slash = 0;
    return is_shadowed(slash == real ? "/" : real);
}

/*
 * Spares a script the question whether it is a zip archive, which the interpreter asks in
 * Python: the answer is noted where it looks first, if the end of one is nowhere in the file.
 */
static int note_script(const char *target)
{
    static char content[SCRIPT_MAX + 1];
    PyObject *cache = PySys_GetObject("path_importer_cache");
    PyObject *name;
    int fd = open(target, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, content, sizeof(content));
    int r;

    if (fd >= 0)
        (void)close(fd);
    if (len < 0 || len > SCRIPT_MAX || memmem(content, (size_t)len, "PK\5\6", 4))
        return 0;
    name = PyUnicode_DecodeFSDefault(target);
    r = name ? PyDict_SetItem(cache, name, Py_None) : -1;
    Py_XDECREF(name);
    return r;
}

static int append(PyObject *list, const char *text)
{
    PyObject *item = PyUnicode_DecodeFSDefault(text);
    int r = item ? PyList_Append(list, item) : -1;

    Py_XDECREF(item);
    return r;
}

/* The command line as a plain interpreter would have been given it: argv[0] to the end. */
static PyObject *command_line(const struct message *m, int is_module)
{
    PyObject *program = PyList_GetItem(PySys_GetObject("orig_argv"), 0);
    PyObject *list = program ? PyList_New(0) : NULL;
    int r = -1;

    if (list && PyList_Append(list, program) == 0 && (!is_module || append(list, "-m") == 0))
        r = append(list, m->target);
    for (size_t i = 0; r == 0 && i < m->n_args; i++)
        r = append(list, m->args[i]);
    if (r < 0)
        Py_CLEAR(list);
    return list;
}

/* Becomes a plain interpreter; returns only when that failed. */
static void start_plainly(const struct message *m, int is_module)
{
    PyObject *executable = PyUnicode_EncodeFSDefault(PySys_GetObject("executable"));
    char **argv = reallocarray(NULL, m->n_args + 4, sizeof(*argv));
    size_t count = 0;

    if (!executable || !argv)
        return;
    /* The interpreter ignored these for itself. */
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    argv[count++] = Py_EncodeLocale(
        _PyInterpreterState_GetConfig(PyInterpreterState_Get())->orig_argv.items[0], NULL);
    if (is_module)
        argv[count++] = (char *)(uintptr_t) "-m";
    argv[count++] = (char *)(uintptr_t)m->target;
    memcpy(argv + count, m->args, m->n_args * sizeof(*argv));
    argv[count + m->n_args] = NULL;
    (void)execv(PyBytes_AS_STRING(executable), argv);
}

/* sys.path is also what interpreters made later (sub-interpreters) start from. */
static int set_command_line(const struct message *m, int is_module)
{
    const PyConfig *current = _PyInterpreterState_GetConfig(PyInterpreterState_Get());
    PyObject *orig_argv = command_line(m, is_module);
    PyObject *argv = orig_argv ? PyList_GetSlice(orig_argv, 1, PY_SSIZE_T_MAX) : NULL;
    PyObject *target = argv ? PyUnicode_DecodeFSDefault(m->target) : NULL;
    /* Read-only to others; Py_RunMain has not read it yet. */
    PyConfig *config = (PyConfig *)(uintptr_t)current;
    int r = -1;

    /* As the interpreter's own start leaves it: "-m" in place of the module's file. */
    if (target && (!is_module || PyList_SetSlice(argv, 1, 2, NULL) == 0) &&
        set_string(config, &config->run_filename, is_module ? Py_None : target) == 0 &&
        set_string(config, &config->run_module, is_module ? target : Py_None) == 0 &&
        set_string(config, &config->pythonpath_env, Py_None) == 0 &&
        set_list(config, &config->argv, argv) == 0 &&
        set_list(config, &config->orig_argv, orig_argv) == 0 &&
        set_list(config, &config->module_search_paths, PySys_GetObject("path")) == 0 &&
        PySys_SetObject("argv", argv) == 0)
        r = PySys_SetObject("orig_argv", orig_argv);
    Py_XDECREF(target);
    Py_XDECREF(argv);
    Py_XDECREF(orig_argv);
    return r;
}

static int become(const struct message *m)
{
    int is_module = strcmp(m->kind, "module") == 0;

    if (reseed() < 0 || reseed_numpy() < 0 || set_environment(m) < 0 || chdir(m->cwd) < 0)
        return -1;
    if (needs_plain_start(m)) {
        start_plainly(m, is_module);
        return -1;
    }
    if (!is_module && note_script(m->target) < 0)
        return -1;
    return set_command_line(m, is_module) < 0 ? -1 : unfreeze_main();
}

static int freeze(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *collected = gc ? PyObject_CallMethod(gc, "collect", NULL) : NULL;
    PyObject *frozen = collected ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;

    Py_XDECREF(frozen);
    Py_XDECREF(collected);
    Py_XDECREF(gc);
    return frozen ? 0 : -1;
}

/* Imports what the next skill is known to import. */
static int warm(const struct message *m)
{
    const char *at = m->environment;
    PyObject *names = PyList_New(0);
    const char *name;
    int r = names ? 0 : -1;

    while (r == 0 && (name = take(m, &at)))
        r = append(names, name);
    if (r == 0)
        Py_SETREF(preloaded, PyObject_CallOneArg(import_all, names));
    Py_XDECREF(names);
    return r == 0 && preloaded ? 0 : -1;
}

/* Not by _exit, which waits for guest-init to look at a program's end: this is none. */
static _Noreturn void end(int status)
{
    for (;;)
        (void)syscall(SYS_exit_group, status);
}

static _Noreturn void give_up(void)
{
    PyErr_Print();
    end(127);
}

/* Maps all of one program's or library's code, so that no page of it is a fault later. */
static int map_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t first = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;

        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            (void)madvise((void *)first, end - first, MADV_POPULATE_READ);
    }
    return 0;
}

/* In place of Py_RunMain: the interpreter is ready, and nothing of Python's is running. */
static int run_main(void)
{
    struct message message = {0};

    redirect_undo(&main_call);
    for (;;) {
        /* Neither the collections of the skill nor the last one touch what was made before. */
        if (finish_prepare() < 0 || freeze() < 0)
            give_up();
        (void)dl_iterate_phdr(map_code, NULL);
        if (!receive(&message))
            end(0);
        if (strcmp(message.kind, "warm") != 0)
            break;
        if (warm(&message) < 0)
            give_up();
    }
    (void)close(control);
    if (become(&message) < 0)
        give_up();
    return Py_RunMain();
}

static int fail(int error)
{
    errno = -error;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

static int find_objects(void)
{
    PyObject *random = PyImport_ImportModule("random");
    PyObject *posix = PyImport_ImportModule("posix");

    random_seed = random ? PyObject_GetAttrString(random, "seed") : NULL;
    environment = posix ? PyObject_GetAttrString(posix, "environ") : NULL;
    Py_XDECREF(random);
    Py_XDECREF(posix);
    return random_seed && environment ? 0 : -1;
}

static int take_over(void)
{
    int r = leave_prepare(control);

    if (r < 0)
        return r;
    return redirect((void *)(uintptr_t)Py_RunMain, (void *)(uintptr_t)run_main, &main_call);
}

/*
 * prepare(socket, names, import_all): everything is imported, and what comes once the
 * interpreter is started is the program's. names: the set of the top level modules that are
 * there by now; import_all takes a list of more and returns that set anew.
 */
static PyObject *prepare(PyObject *self, PyObject *args)
{
    int r;

    (void)self;
    if (!PyArg_ParseTuple(args, "iO!O", &control, &PySet_Type, &preloaded, &import_all) ||
        find_objects() < 0)
        return NULL;
    Py_INCREF(preloaded);
    Py_INCREF(import_all);
    r = take_over();
    if (r < 0 && fail(r) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"prepare", prepare, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{0, NULL}};

/* Initialised in several phases, so that the interpreter keeps no copy of it. */
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_skillvm_zygote", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__skillvm_zygote(void)
{
    return PyModuleDef_Init(&definition);
}
