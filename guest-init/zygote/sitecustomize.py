# SPDX-License-Identifier: Apache-2.0
"""The python zygote: a started interpreter that waits to be told which skill to run.

Runs as `sitecustomize`, that is inside the interpreter's own start. It imports what is to be
warm, undoes its own traces and returns; when the start is over and the script of the command
line would be run, the extension waits, and puts what it is told on that command line (see
zygote.c). Whatever a script could see of this file would be a fault: no frame, no module, no
variable, no descriptor of it may be left.

The protocol on descriptor 3 is described in guest-init/zygote.h.

Hash seed: the hashes of str and bytes are fixed when the interpreter starts, so machines restored
from one snapshot share them (chosen at random when the snapshot is made). Both ways out cost
more than the zygote saves: starting the interpreter after the restore is 20 of the 25 million
instructions of a plain start, and giving every str, dict and set a new hash in place writes to
some 2,000 pages and turns one missed table into wrong lookups. What remains possible is hash
flooding of one run, within its own time limit, by somebody who learnt the seed in another run of
the same snapshot. Everything else that is random is fresh: see reseed in zygote.c.
"""


def _preload(names):
    """Imports what skills commonly import."""
    import importlib

    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            # A smaller image may lack some; the skill then sees the same ImportError.
            pass


def _warm(names):
    """Imports what the next skill is known to import. Nothing is warm if one is missing."""
    import importlib

    for name in names:
        importlib.import_module(name)


# Nothing here may hold random numbers, times or descriptors from its import on. Left out for
# that reason: multiprocessing (its authkey). Left out because few skills use them and each makes
# every run dearer: what the image's recipe lists as worth warming for the skills that do.
_PRELOAD = (
    "argparse",
    "base64",
    "collections",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "enum",
    "fnmatch",
    "functools",
    "glob",
    "html",
    "inspect",
    "io",
    "itertools",
    "json",
    "logging",
    "math",
    "operator",
    "os",
    "pathlib",
    "random",
    "re",
    "runpy",
    "string",
    "struct",
    "subprocess",
    "textwrap",
    "threading",
    "time",
    "traceback",
    "typing",
    "unicodedata",
    "urllib.parse",
    "warnings",
)


def _clear_caches():
    """Drops what the imports above left in caches that a fresh interpreter would not hold."""
    import linecache
    import re
    import sys
    import typing

    re.purge()
    linecache.clearcache()
    for clear in typing._cleanups:
        clear()
    sys._clear_type_cache()


def _forget():
    """Puts the system's own sitecustomize, if any, in the place of this module.

    Raises the ImportError that `site` expects where there is none.
    """
    import os
    import sys

    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    del sys.modules["_skillvm_zygote"]
    del sys.modules["sitecustomize"]
    import sitecustomize  # noqa: F401


def _main():
    import sys

    import _skillvm_zygote

    prepare = _skillvm_zygote.prepare
    absent = None
    started = set(sys.modules)

    def ready():
        """Everything is imported: the names of the top level modules that are there by now."""
        _clear_caches()
        return {name.partition(".")[0] for name in set(sys.modules) - started}

    def warm(names):
        _warm(names)
        return ready()

    _preload(_PRELOAD)
    try:
        _forget()
    except ImportError as error:
        absent = error
    prepare(3, ready(), warm)
    if absent:
        raise absent


_main()
