/* SPDX-License-Identifier: Apache-2.0 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>

#include "guest-init/zygote/left.h"

/* What outlived the collection. Objects are noted by their addresses. */
struct left {
    PyObject *objects; /* list: those with a finalizer that was not called */
    PyObject *all;     /* set: everything of the program's */
    PyObject *later;   /* set: what the interpreter, sys and builtins lead to */
    PyObject *inner;   /* set: what another of `objects` holds */
    PyObject *reached; /* list: of `later`, still to be followed */
    PyObject *except;  /* list, borrowed: never finalised here */
};

static int note(PyObject *set, PyObject *object)
{
    PyObject *address = PyLong_FromVoidPtr(object);
    int r = address ? PySet_Add(set, address) : -1;

    Py_XDECREF(address);
    return r;
}

static int is_noted(PyObject *set, PyObject *object)
{
    PyObject *address = PyLong_FromVoidPtr(object);
    int r = address ? PySet_Contains(set, address) : -1;

    Py_XDECREF(address);
    return r > 0;
}

static int is_in(PyObject *list, PyObject *object)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
        if (PyList_GET_ITEM(list, i) == object)
            return 1;
    return 0;
}

static int visit_later(PyObject *object, void *context)
{
    struct left *left = context;

    if (!is_noted(left->all, object) || is_noted(left->later, object))
        return 0;
    return note(left->later, object) < 0 || PyList_Append(left->reached, object) < 0;
}

static int visit_inner(PyObject *object, void *context)
{
    struct left *left = context;

    return note(left->inner, object);
}

static void each_left(PyInterpreterState *interp, struct left *left,
                      void (*call)(struct left *left, PyObject *object))
{
    for (int i = 0; i < NUM_GENERATIONS; i++) {
        PyGC_Head *head = &interp->gc.generations[i].head;

        for (PyGC_Head *gc = _PyGCHead_NEXT(head); gc != head; gc = _PyGCHead_NEXT(gc))
            call(left, (PyObject *)(gc + 1));
    }
}

static void take_object(struct left *left, PyObject *object)
{
    if (Py_TYPE(object)->tp_finalize && !PyObject_GC_IsFinalized(object) &&
        !is_in(left->except, object))
        (void)PyList_Append(left->objects, object);
}

static void take_any(struct left *left, PyObject *object)
{
    (void)note(left->all, object);
}

/* Notes everything that the interpreter itself, sys and builtins lead to. */
static void follow(PyInterpreterState *interp, struct left *left)
{
    PyObject *const roots[] = {
        interp->sysdict,
        interp->builtins,
        interp->gc.callbacks,
        interp->audit_hooks,
        interp->codec_search_path,
        interp->codec_error_registry,
        interp->before_forkers,
        interp->after_forkers_parent,
        interp->after_forkers_child,
    };

    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
        if (roots[i])
            (void)Py_TYPE(roots[i])->tp_traverse(roots[i], visit_later, left);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(left->reached); i++) {
        PyObject *object = PyList_GET_ITEM(left->reached, i);

        (void)Py_TYPE(object)->tp_traverse(object, visit_later, left);
    }
}

/* What holds another goes first: a text file before its buffer, an object before its file. */
static int turn_of(const struct left *left, PyObject *object)
{
    if (is_noted(left->inner, object))
        return 2;
    return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) ? 0 : 1;
}

static void finalise(PyInterpreterState *interp, struct left *left)
{
    PyObject *object;

    each_left(interp, left, take_object);
    if (PyList_GET_SIZE(left->objects) == 0)
        return;
    each_left(interp, left, take_any);
    follow(interp, left);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(left->objects); i++) {
        object = PyList_GET_ITEM(left->objects, i);
        if (!is_noted(left->later, object))
            (void)Py_TYPE(object)->tp_traverse(object, visit_inner, left);
    }
    for (int turn = 0; turn < 3; turn++) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(left->objects); i++) {
            object = PyList_GET_ITEM(left->objects, i);
            if (turn_of(left, object) == turn && !is_noted(left->later, object))
                PyObject_CallFinalizer(object);
        }
    }
}

void left_finalise(PyInterpreterState *interp, PyObject *except)
{
    struct left left = {.objects = PyList_New(0),
                        .all = PySet_New(NULL),
                        .later = PySet_New(NULL),
                        .inner = PySet_New(NULL),
                        .reached = PyList_New(0),
                        .except = except};

    if (left.objects && left.all && left.later && left.inner && left.reached)
        finalise(interp, &left);
    PyErr_Clear();
    Py_XDECREF(left.objects);
    Py_XDECREF(left.all);
    Py_XDECREF(left.later);
    Py_XDECREF(left.inner);
    Py_XDECREF(left.reached);
}
