# SPDX-License-Identifier: Apache-2.0
def processes():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += marked(read(f"/proc/{pid}/cmdline")) + marked(read(f"/proc/{pid}/comm"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


begin()
attempt("all processes", processes)
attempt("the one of the host's", lambda: read(f"/proc/{GIVEN['pid']}/cmdline"))
end()
