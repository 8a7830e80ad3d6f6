# SPDX-License-Identifier: Apache-2.0
def environments():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += marked(read(f"/proc/{pid}/environ"))
        except OSError:
            continue
    return found


begin()
attempt("its own", lambda: marked(str(dict(os.environ))))
attempt("others'", environments)
attempt("the parent's", lambda: marked(read(f"/proc/{os.getppid()}/environ")))
end()
