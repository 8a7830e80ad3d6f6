# SPDX-License-Identifier: Apache-2.0
import ctypes
import importlib


def load():
    sys.path.insert(0, GIVEN["modules"])
    try:
        return importlib.import_module("canary_module").SECRET
    except ModuleNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "no such module") from None


def by_ctypes():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.open(GIVEN["module"].encode(), os.O_RDONLY)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "open")
    return os.read(fd, TEXT_MAX)


begin()
attempt("modules that do harm", lambda: [importlib.import_module(x) for x in ("os", "socket", "mmap")])
attempt("a module of the host's", load)
attempt("its file by ctypes", by_ctypes)
end()
