/* SPDX-License-Identifier: Apache-2.0 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#include <signal.h>

#include "guest-init/zygote/finish.h"
#include "guest-init/zygote/left.h"
#include "guest-init/zygote/redirect.h"

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030c0000
#error "written against the end of Python 3.11"
#endif

/* What was there before the wait. Never freed, so that nothing of it is touched at the end. */
static struct {
    PyObject *modules; /* sys.modules as it was */
    PyObject *sys;     /* the names of sys and of builtins, each None */
    PyObject *builtins;
    PyObject *nothing;     /* an empty dict */
    PyObject *held;        /* what the end takes out of sys and the interpreter's state */
    PyObject *run_exit;    /* atexit._run_exitfuncs */
    PyObject *streams;     /* the first sys.stdout and sys.stderr, and what is below them */
    PyObject *get_handler; /* _signal.getsignal and .signal */
    PyObject *set_handler;
    PyObject *restored; /* builtins as the end restores it */
    uint64_t builtins_version;
    PyInterpreterState *interp;
} warm;

static void report(PyObject *where)
{
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(where);
}

static void set_none(PyObject *dict, const char *name)
{
    if (PyDict_SetItemString(dict, name, Py_None) < 0)
        report(NULL);
}

static void join_threads(void)
{
    PyObject *name = PyUnicode_FromString("threading");
    PyObject *threading = name ? PyImport_GetModule(name) : NULL;
    PyObject *done;

    Py_XDECREF(name);
    report(NULL);
    if (!threading)
        return;
    done = PyObject_CallMethod(threading, "_shutdown", NULL);
    if (!done)
        report(threading);
    Py_XDECREF(done);
    Py_DECREF(threading);
}

static int is_open(PyObject *file)
{
    PyObject *closed = PyObject_GetAttrString(file, "closed");
    int answer = closed ? PyObject_IsTrue(closed) : 0;

    Py_XDECREF(closed);
    if (answer < 0 || !closed)
        PyErr_Clear();
    return answer <= 0;
}

/* Flushes one stream of sys. -1 when that failed. */
static int flush(const char *name, int is_told)
{
    PyObject *file = PySys_GetObject(name);
    PyObject *done;

    if (!file || file == Py_None || !is_open(file))
        return 0;
    Py_INCREF(file);
    done = PyObject_CallMethod(file, "flush", NULL);
    if (!done && is_told)
        report(file);
    PyErr_Clear();
    Py_DECREF(file);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int flush_streams(void)
{
    int out = flush("stdout", 1);
    int err = flush("stderr", 0);

    return out < 0 || err < 0 ? -1 : 0;
}

/* Signals that the program handles end it from here on. */
static void drop_signal_handlers(void)
{
    PyObject *plain = PyLong_FromLong(0);

    for (int number = 1; number < NSIG; number++) {
        PyObject *signal = PyLong_FromLong(number);
        PyObject *handler = signal ? PyObject_CallOneArg(warm.get_handler, signal) : NULL;

        if (handler && PyCallable_Check(handler)) {
            PyObject *old = PyObject_CallFunctionObjArgs(warm.set_handler, signal, plain, NULL);

            Py_XDECREF(old);
        }
        Py_XDECREF(handler);
        Py_XDECREF(signal);
        PyErr_Clear();
    }
    Py_XDECREF(plain);
}

/* A collection even where the program has switched them off, and without telling it. */
static void collect(PyInterpreterState *interp)
{
    PyObject *callbacks = interp->gc.callbacks;
    int enabled = interp->gc.enabled;

    interp->gc.callbacks = NULL;
    interp->gc.enabled = 1;
    (void)PyGC_Collect();
    interp->gc.enabled = enabled;
    interp->gc.callbacks = callbacks;
}

/* Places in which a program's values hide. */
static void clear_special(PyInterpreterState *interp)
{
    static const char *const deleted[] = {"path",
                                          "argv",
                                          "ps1",
                                          "ps2",
                                          "last_type",
                                          "last_value",
                                          "last_traceback",
                                          "path_hooks",
                                          "path_importer_cache",
                                          "meta_path",
                                          "__interactivehook__"};
    static const char *const streams[][2] = {
        {"stdin", "__stdin__"}, {"stdout", "__stdout__"}, {"stderr", "__stderr__"}};

    set_none(interp->builtins, "_");
    for (size_t i = 0; i < sizeof(deleted) / sizeof(deleted[0]); i++)
        set_none(interp->sysdict, deleted[i]);
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        PyObject *first = PyDict_GetItemString(interp->sysdict, streams[i][1]);

        if (PyDict_SetItemString(interp->sysdict, streams[i][0], first ? first : Py_None) < 0)
            report(NULL);
    }
}

/*
 * Puts None for each module, in the order of their import. Returns weak references to the
 * program's own, in that order.
 */
static PyObject *remove_modules(PyObject *modules)
{
    PyObject *left = PyList_New(0);
    PyObject *name, *module, *weak;
    Py_ssize_t at = 0;

    report(NULL);
    while (PyDict_Next(modules, &at, &name, &module)) {
        if (!PyModule_Check(module))
            continue;
        if (left && PyDict_GetItem(warm.modules, name) != module) {
            weak = PyWeakref_NewRef(module, NULL);
            if (!weak || PyList_Append(left, weak) < 0)
                report(NULL);
            Py_XDECREF(weak);
        }
        if (PyDict_SetItem(modules, name, Py_None) < 0)
            report(NULL);
    }
    return left;
}

/* Exchanges what two plain dicts hold without touching any of it. */
static void swap(PyObject *a, PyObject *b)
{
    PyDictObject *x = (PyDictObject *)a;
    PyDictObject *y = (PyDictObject *)b;
    PyDictKeysObject *keys = x->ma_keys;
    Py_ssize_t used = x->ma_used;

    if (x->ma_values || y->ma_values)
        return;
    x->ma_keys = y->ma_keys;
    x->ma_used = y->ma_used;
    y->ma_keys = keys;
    y->ma_used = used;
}

/* Gives builtins what it had before sys.stdin, `site` and the program added to it. */
static void restore_builtins(PyInterpreterState *interp, int is_changed)
{
    PyObject *names;

    if (!is_changed) {
        swap(interp->builtins, warm.restored);
        return;
    }
    names = PyDict_Keys(interp->builtins);
    for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        PyObject *first = PyDict_GetItem(interp->builtins_copy, name);

        if (!first)
            (void)PyDict_DelItem(interp->builtins, name);
        else if (first != PyDict_GetItem(interp->builtins, name))
            (void)PyDict_SetItem(interp->builtins, name, first);
    }
    Py_XDECREF(names);
    (void)PyDict_Merge(interp->builtins, interp->builtins_copy, 0);
    PyErr_Clear();
}

/* Clears modules that something still holds, the last imported first. */
static void clear_left(PyObject *left)
{
    for (Py_ssize_t i = left ? PyList_GET_SIZE(left) - 1 : -1; i >= 0; i--) {
        PyObject *module = PyWeakref_GetObject(PyList_GET_ITEM(left, i));

        if (!module || !PyModule_Check(module))
            continue;
        Py_INCREF(module);
        _PyModule_Clear(module);
        Py_DECREF(module);
    }
    Py_XDECREF(left);
}

static void end_modules(PyInterpreterState *interp)
{
    int is_changed =
        ((PyDictObject *)interp->builtins)->ma_version_tag != warm.builtins_version;
    PyObject *left;

    clear_special(interp);
    left = remove_modules(interp->modules);
    swap(interp->modules, warm.nothing);
    restore_builtins(interp, is_changed);
    collect(interp);
    clear_left(left);
    left_finalise(interp, warm.streams);
    swap(interp->sysdict, warm.sys);
    swap(interp->builtins, warm.builtins);
    collect(interp);
}

/* Nobody can be told any more when the first streams go and cannot write what they hold. */
static void flush_first(void)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(warm.streams); i++) {
        PyObject *done = PyObject_CallMethod(PyList_GET_ITEM(warm.streams, i), "flush", NULL);

        Py_XDECREF(done);
        PyErr_Clear();
    }
}

/* What the program registered with the interpreter itself, and the thread's own state. */
static void end_state(PyThreadState *tstate)
{
    PyInterpreterState *interp = tstate->interp;

    (void)PySys_Audit("cpython.PyInterpreterState_Clear", NULL);
    PyErr_Clear();
    PyThreadState_Clear(tstate);
    Py_CLEAR(interp->audit_hooks);
    Py_CLEAR(interp->codec_search_path);
    Py_CLEAR(interp->codec_search_cache);
    Py_CLEAR(interp->codec_error_registry);
    Py_CLEAR(interp->dict);
    Py_CLEAR(interp->before_forkers);
    Py_CLEAR(interp->after_forkers_parent);
    Py_CLEAR(interp->after_forkers_child);
    collect(interp);
    Py_CLEAR(interp->gc.callbacks);
    left_finalise(interp, warm.streams);
    flush_first();
}

/* The order is Py_FinalizeEx's. */
static int finish(void)
{
    _PyRuntimeState *runtime = &_PyRuntime;
    PyThreadState *tstate;
    PyObject *done;
    int status;

    if (!runtime->initialized)
        return 0;
    tstate = PyThreadState_Get();
    if (tstate->interp != warm.interp)
        Py_FatalError("the end of an interpreter that is not the first");
    join_threads();
    if (Py_MakePendingCalls() < 0)
        PyErr_Print();
    done = PyObject_CallNoArgs(warm.run_exit);
    report(NULL);
    Py_XDECREF(done);

    _PyRuntimeState_SetFinalizing(runtime, tstate);
    runtime->initialized = 0;
    runtime->core_initialized = 0;
    _PyThreadState_DeleteExcept(runtime, tstate);
    status = flush_streams();
    drop_signal_handlers();
    (void)PyGC_Collect();
    end_modules(tstate->interp);
    if (flush_streams() < 0)
        status = -1;
    end_state(tstate);
    while (runtime->nexitfuncs > 0)
        runtime->exitfuncs[--runtime->nexitfuncs]();
    (void)fflush(stdout);
    (void)fflush(stderr);
    return status;
}

/* A dict of the same names, each None. */
static PyObject *copy_names(PyObject *dict)
{
    PyObject *copy = PyDict_Copy(dict);
    PyObject *name, *value;
    Py_ssize_t at = 0;

    while (copy && PyDict_Next(dict, &at, &name, &value))
        if (PyDict_SetItem(copy, name, Py_None) < 0)
            Py_CLEAR(copy);
    return copy;
}

/* Keeps what an object holds as well when it is a dict or a list. */
static int hold(PyObject *object)
{
    PyObject *values;
    int r = 0;

    if (!object)
        return 0;
    if (PyList_Append(warm.held, object) < 0)
        return -1;
    values = PyDict_Check(object)   ? PyDict_Values(object)
             : PyList_Check(object) ? PyList_GetSlice(object, 0, PY_SSIZE_T_MAX)
                                    : NULL;
    if (values)
        r = PyList_Append(warm.held, values);
    Py_XDECREF(values);
    return PyErr_Occurred() ? -1 : r;
}

static int hold_state(PyInterpreterState *interp)
{
    static const char *const names[] = {"path", "argv", "path_hooks", "path_importer_cache",
                                        "meta_path"};
    PyObject *const state[] = {
        interp->codec_search_path,    interp->codec_search_cache,
        interp->codec_error_registry, interp->dict,
        interp->before_forkers,       interp->after_forkers_parent,
        interp->after_forkers_child,
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (hold(PySys_GetObject(names[i])) < 0)
            return -1;
    for (size_t i = 0; i < sizeof(state) / sizeof(state[0]); i++)
        if (hold(state[i]) < 0)
            return -1;
    return 0;
}

static int hold_streams(void)
{
    static const char *const names[] = {"stdout", "stderr"};
    static const char *const below[] = {"buffer", "raw"};

    warm.streams = PyList_New(0);
    if (!warm.streams)
        return -1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        PyObject *stream = PySys_GetObject(names[i]);
        int r = stream ? PyList_Append(warm.streams, stream) : -1;

        for (size_t k = 0; r == 0 && k < sizeof(below) / sizeof(below[0]); k++) {
            stream = PyObject_GetAttrString(stream, below[k]);
            r = stream ? PyList_Append(warm.streams, stream) : -1;
            Py_XDECREF(stream);
        }
        if (r < 0)
            return -1;
    }
    return 0;
}

int finish_prepare(void)
{
    PyInterpreterState *interp = PyInterpreterState_Get();
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *signals = PyImport_ImportModule("_signal");
    int r;

    warm.interp = interp;
    warm.run_exit = atexit ? PyObject_GetAttrString(atexit, "_run_exitfuncs") : NULL;
    Py_XDECREF(atexit);
    warm.get_handler = signals ? PyObject_GetAttrString(signals, "getsignal") : NULL;
    warm.set_handler = signals ? PyObject_GetAttrString(signals, "signal") : NULL;
    Py_XDECREF(signals);
    warm.restored = PyDict_Copy(interp->builtins_copy);
    warm.builtins_version = ((PyDictObject *)interp->builtins)->ma_version_tag;
    warm.modules = PyDict_Copy(interp->modules);
    warm.sys = copy_names(interp->sysdict);
    warm.builtins = copy_names(interp->builtins);
    warm.nothing = PyDict_New();
    warm.held = PyList_New(0);
    if (!warm.run_exit || !warm.get_handler || !warm.set_handler || !warm.restored ||
        !warm.modules || !warm.sys || !warm.builtins || !warm.nothing || !warm.held ||
        hold_state(interp) < 0 || hold_streams() < 0)
        return -1;
    /* The program's, not ours: it is finalised as ever. */
    if (PyDict_DelItemString(warm.modules, "__main__") < 0)
        return -1;
    /* Another patch release may have laid its state out differently. */
    if (Py_Version != PY_VERSION_HEX)
        return 0;
    r = redirect((void *)(uintptr_t)Py_FinalizeEx, (void *)(uintptr_t)finish, NULL);
    if (r < 0) {
        errno = -r;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    return r;
}
