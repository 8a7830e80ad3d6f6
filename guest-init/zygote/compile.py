# SPDX-License-Identifier: Apache-2.0
"""Compiles the modules below a folder, as pip would have, before a snapshot that holds them.

    python3 -I -S compile.py FOLDER

Nothing of the folder is run or imported. What cannot be compiled is left as it is, and the
compiled modules take no more than a few times what their sources do.
"""

import os
import py_compile
import stat
import sys

# Compiled code is about as large as its source; folding of constants can blow a module up. The
# rest of the room is for skills.
TIMES = 3
AT_LEAST = 1 << 20
AT_MOST = 64 << 20


def sources(folder):
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            path = os.path.join(place, name)
            if name.endswith(".py") and stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def main():
    paths = list(sources(sys.argv[1]))
    free = os.statvfs(sys.argv[1])
    room = min(max(AT_LEAST, TIMES * sum(os.lstat(path).st_size for path in paths)),
               AT_MOST, free.f_bavail * free.f_frsize // 4)
    for path in paths:
        try:
            made = py_compile.compile(
                path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        except (py_compile.PyCompileError, OSError, ValueError, RecursionError, MemoryError):
            continue
        room -= os.lstat(made).st_size
        if room < 0:
            os.unlink(made)
            break


if __name__ == "__main__":
    main()
