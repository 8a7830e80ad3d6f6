# SPDX-License-Identifier: Apache-2.0
begin()
path = GIVEN["traversal"]
files = os.environ.get("SANDBOX_FILES_DIR", ".")
session = os.environ.get("SANDBOX_SESSION_DIR", "/nonexistent")
link = os.path.join(files, f"link-{os.getpid()}")

attempt("upwards", lambda: read("../" * 16 + path[1:]))
attempt("upwards from the program", lambda: read("/sandbox/skill/" + "../" * 16 + path[1:]))
for root in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../..", "/proc/1/cwd"):
    attempt(root, lambda: read(root + path))
# Where files are collected the link is followed, or not.
attempt("a link", lambda: os.symlink(path, link))
attempt("through the link", lambda: read(link))
attempt("what the daemon keeps of others", lambda: marked_below(GIVEN["objects"]))
attempt("another's session of the same name", lambda: marked_below(session))
end()
