# SPDX-License-Identifier: Apache-2.0
"""The python zygote: a started interpreter that waits to be told which skill to run.

Runs as `sitecustomize`, that is inside the interpreter's own start, between `site` and the
script of the command line. Once told what to run it puts that on the command line (see
zygote.c), undoes its own traces and returns; the interpreter then runs the script as it always
does. Whatever a script could see of this file would be a fault: no frame, no module, no
variable, no descriptor of it may be left.

The protocol on descriptor 3 is described in guest-init/zygote.h.

Hash seed: the hashes of str and bytes are fixed when the interpreter starts, so machines restored
from one snapshot share them (chosen at random when the snapshot is made). Both ways out cost
more than the zygote saves: starting the interpreter after the restore is 20 of the 25 million
instructions of a plain start, and giving every str, dict and set a new hash in place writes to
some 2,000 pages and turns one missed table into wrong lookups. What remains possible is hash
flooding of one run, within its own time limit, by somebody who learnt the seed in another run of
the same snapshot. Everything else that is random is fresh: see _reseed.
"""


def _preload():
    """Imports what skills commonly import."""
    import importlib

    for name in _PRELOAD:
        try:
            importlib.import_module(name)
        except ImportError:
            # A smaller image may lack some; the skill then sees the same ImportError.
            pass


# Nothing here may hold random numbers, times or descriptors from its import on. Left out for
# that reason: multiprocessing (its authkey), ssl and hashlib (OpenSSL's generator), asyncio
# (imports ssl). Left out because their libraries make every exit dearer (5 % of a short run) and
# few skills use them: decimal, statistics, and shutil and tempfile (bz2, lzma, zlib).
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


def _receive(fd):
    """Tells that it is warm and waits for the one message. None when nobody is there any more."""
    import os

    os.write(fd, b"w")
    data = b""
    want = 4
    while len(data) < want:
        part = os.read(fd, want - len(data))
        if not part:
            return None
        data += part
        if want == 4 and len(data) == 4:
            want += int.from_bytes(data, "little")
    return data[4:-1].split(b"\0")


def _set_environment(pairs):
    import os
    import posix
    import time

    os.environ.clear()
    posix.environ.clear()
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        os.environb[name] = value
        posix.environ[name] = value
    if b"TZ" in posix.environ:
        time.tzset()


def _reseed():
    """Gives every generator and clock of the preloaded modules the state of a fresh start."""
    import logging
    import random
    import time

    random.seed()
    logging._startTime = time.time()


def _is_shadowed(directory, preloaded):
    """True when the script's own directory, first on its path, has a module of a preloaded name."""
    import os

    try:
        with os.scandir(directory) as entries:
            return any(entry.name.partition(".")[0] in preloaded for entry in entries)
    except OSError:
        return False


def _start_plainly(command):
    """Becomes a plain interpreter: for a script that would see that modules are already there."""
    import os
    import signal
    import sys

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(sys.executable, command)


def _become(become, message, preloaded):
    import os
    import sys

    kind, cwd, target, count = message[:4]
    count = int(count)
    arguments = [os.fsdecode(a) for a in message[4 : 4 + count]]
    _set_environment(message[4 + count :])
    os.chdir(cwd)
    target = os.fsdecode(target)
    if kind == b"module":
        command = [sys.orig_argv[0], "-m", target, *arguments]
        first = "."
    else:
        command = [sys.orig_argv[0], target, *arguments]
        first = os.path.dirname(os.path.realpath(target))
    if os.path.isdir(target) or _is_shadowed(first, preloaded):
        _start_plainly(command)
    if kind == b"module":
        become(None, target, ["-m", *arguments], command)
    else:
        become(target, None, command[1:], command)


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
    import atexit
    import gc
    import os
    import sys

    import _skillvm_zygote

    become = _skillvm_zygote.become
    keep = _skillvm_zygote.keep
    absent = None
    started = set(sys.modules)
    # Before any other module registers: the first one registered runs last.
    atexit.register(_skillvm_zygote.retire)
    _preload()
    try:
        _forget()
    except ImportError as error:
        absent = error
    _clear_caches()
    preloaded = {name.partition(".")[0] for name in set(sys.modules) - started}
    keep({n: m for n, m in sys.modules.items() if n not in ("__main__", "builtins", "sys")})
    gc.collect()
    # Neither the collections of the skill nor the last one touch what was made before it.
    gc.freeze()
    message = _receive(3)
    if message is None:
        os._exit(0)
    os.close(3)
    _reseed()
    _become(become, message, preloaded)
    if absent:
        raise absent


_main()
