/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension module _skillvm_zygote: changes the command line of the running interpreter before
 * it looks at it. sitecustomize runs inside Py_Initialize; the interpreter's own main then runs
 * "the script of its command line", so the skill's code runs with no frame below it and with
 * the interpreter's own handling of paths, exceptions, exit codes and shutdown. It must never
 * be imported by anything but the zygote, and leaves nothing in sys.modules.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

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

/*
 * become(filename | None, module | None, argv, orig_argv). sys.path, already cleaned, is also
 * what interpreters made later (sub-interpreters) start from.
 */
static PyObject *become(PyObject *self, PyObject *args)
{
    const PyConfig *current = _PyInterpreterState_GetConfig(PyInterpreterState_Get());
    PyObject *filename, *module, *argv, *orig_argv;
    PyConfig *config;

    (void)self;
    if (!PyArg_ParseTuple(args, "OOO!O!", &filename, &module, &PyList_Type, &argv, &PyList_Type,
                          &orig_argv))
        return NULL;
    /* Read-only to others; this is the interpreter's start, before main reads it. */
    config = (PyConfig *)(uintptr_t)current;
    if (set_string(config, &config->run_filename, filename) < 0 ||
        set_string(config, &config->run_module, module) < 0 ||
        set_string(config, &config->pythonpath_env, Py_None) < 0 ||
        set_list(config, &config->argv, argv) < 0 ||
        set_list(config, &config->orig_argv, orig_argv) < 0 ||
        set_list(config, &config->module_search_paths, PySys_GetObject("path")) < 0 ||
        PySys_SetObject("argv", argv) < 0 || PySys_SetObject("orig_argv", orig_argv) < 0 ||
        unfreeze_main() < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The modules imported before the wait, by name; never freed. */
static PyObject *preloaded;

/* keep(dict): what retire will spare. */
static PyObject *keep(PyObject *self, PyObject *modules)
{
    (void)self;
    Py_INCREF(modules);
    preloaded = modules;
    Py_RETURN_NONE;
}

/*
 * True inside Py_FinalizeEx: it ends the main thread's object before it calls exit functions,
 * which can also be run by hand (atexit._run_exitfuncs).
 */
static int is_finalizing(void)
{
    PyObject *threading = PyDict_GetItemString(preloaded, "threading");
    PyObject *thread = threading ? PyObject_GetAttrString(threading, "_main_thread") : NULL;
    PyObject *stopped = thread ? PyObject_GetAttrString(thread, "_is_stopped") : NULL;
    int answer = stopped == Py_True;

    Py_XDECREF(stopped);
    Py_XDECREF(thread);
    PyErr_Clear();
    return answer;
}

/*
 * The last exit function. The interpreter now clears every module and frees what they hold; for
 * the preloaded ones that is most of the work of a short run, and it writes to nearly every
 * page of the snapshot. They are taken out of sys.modules the way the interpreter itself does
 * it, by None, and live on until the process ends. The skill's own modules and objects are
 * finalised as ever.
 */
static PyObject *retire(PyObject *self, PyObject *args)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *name, *module;
    Py_ssize_t at = 0;

    (void)self;
    (void)args;
    if (!preloaded || !is_finalizing())
        Py_RETURN_NONE;
    while (PyDict_Next(preloaded, &at, &name, &module)) {
        if (PyDict_GetItemWithError(modules, name) == module &&
            PyDict_SetItem(modules, name, Py_None) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"become", become, METH_VARARGS, NULL},
                                {"keep", keep, METH_O, NULL},
                                {"retire", retire, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {{0, NULL}};

/* Initialised in several phases, so that the interpreter keeps no copy of it. */
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_skillvm_zygote", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__skillvm_zygote(void)
{
    return PyModuleDef_Init(&definition);
}
