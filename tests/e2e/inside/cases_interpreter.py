# SPDX-License-Identifier: Apache-2.0
"""A script started by the warm interpreter observes what a plain one would show it."""

import io
import json
import re
import tarfile

from harness import bash_skill, case, check, check_equal, check_in, long_case, python_skill, skill_zip

FACTS = r'''
import builtins, gc, json, locale, os, resource, signal, subprocess, sys, threading

def facts():
    main = sys.modules["__main__"]
    return {
        "argv": sys.argv,
        "orig_argv0": os.path.basename(sys.orig_argv[0]),
        "path": sys.path,
        "name": __name__,
        "file": __file__,
        "spec": repr(__spec__),
        "package": __package__,
        "doc": __doc__,
        "cached": repr(globals().get("__cached__", "absent")),
        "loader": type(__loader__).__name__,
        "annotations": repr(globals().get("__annotations__", "absent")),
        "builtins": type(__builtins__).__name__,
        "globals": sorted(name for name in vars(main) if name not in ("facts",)),
        "flags": repr(sys.flags),
        "executable": sys.executable,
        "prefix": [sys.prefix, sys.exec_prefix, sys.base_prefix],
        "cwd": os.getcwd(),
        "umask": oct(os.umask(0o22)),
        "uid": [os.getresuid(), os.getresgid(), os.getgroups()],
        "signals": {
            s.name: str(signal.getsignal(s)) for s in signal.valid_signals()
            if isinstance(s, signal.Signals)
        },
        "blocked": sorted(int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "fds": sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if fd < 3 or
                      os.path.exists(f"/proc/self/fd/{fd}") and
                      not os.readlink(f"/proc/self/fd/{fd}").startswith("/proc/")),
        "stdout": [sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering,
                   sys.stdout.write_through, type(sys.stdout).__name__, sys.stdout.name],
        "stderr": [sys.stderr.encoding, sys.stderr.errors, sys.stderr.line_buffering,
                   sys.stderr.name],
        "stdin": [sys.stdin.encoding, sys.stdin.errors, sys.stdin.name],
        "filesystem": [sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()],
        "locale": locale.setlocale(locale.LC_ALL, None),
        "environ": {k: v for k, v in os.environ.items() if k not in ("_", "SHLVL", "OLDPWD")},
        "threads": [t.name for t in threading.enumerate()],
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "recursion": sys.getrecursionlimit(),
        "switch": sys.getswitchinterval(),
        "trace": [sys.gettrace() is None, sys.getprofile() is None],
        "excepthook": sys.excepthook is sys.__excepthook__,
        "displayhook": sys.displayhook is sys.__displayhook__,
        "dont_write_bytecode": sys.dont_write_bytecode,
        "limits": {name: resource.getrlimit(getattr(resource, name))
                   for name in dir(resource) if name.startswith("RLIMIT_")},
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "affinity": sorted(os.sched_getaffinity(0)),
        "children": subprocess.run(["true"]).returncode,
        "status": [line.strip() for line in open("/proc/self/status")
                   if line.split(":")[0] in ("NoNewPrivs", "CapEff", "CapPrm", "CapBnd",
                                             "CapInh", "CapAmb", "Seccomp")],
        "oom": open("/proc/self/oom_score_adj").read().strip(),
    }
'''

# What differs for good reasons: a child's environment and descriptors are its parent's to give.
MAIN = (
    FACTS
    + r"""
if len(sys.argv) > 1 and sys.argv[-1] == "--plain":
    sys.argv.pop()
    sys.orig_argv.pop()
    print(json.dumps(facts()))
else:
    mine = facts()
    plain = json.loads(subprocess.run(
        [sys.executable, sys.argv[0], *sys.argv[1:], "--plain"],
        stdout=subprocess.PIPE, check=True).stdout)
    print(json.dumps({"zygote": mine, "plain": plain}))
"""
)


def compare(output, ignored=()):
    wrong = []
    for name, want in output["plain"].items():
        got = output["zygote"][name]
        if name not in ignored and got != want:
            wrong.append(f"{name}: {got!r}, plain {want!r}")
    check(not wrong, "; ".join(wrong))


@case
def looks_like_a_plain_interpreter(world):
    result = world.client.run_ok(python_skill(MAIN), args=["one", "two words", "-x", ""])
    facts = result["output"]["zygote"]
    check_equal(facts["argv"][1:], ["one", "two words", "-x", ""], "argv")
    check_equal(facts["name"], "__main__", "__name__")
    check_equal(facts["uid"][0], [65534, 65534, 65534], "uid")
    check_equal(facts["environ"]["HOME"], "/tmp", "HOME")
    check_equal(facts["fds"], [0, 1, 2], "descriptors")
    # The zygote's own objects are frozen, which spares every collection the walk over them.
    compare(result["output"], ignored=("gc",))


@case
def script_and_module_modes(world):
    files = {
        "scripts/__init__.py": "",
        "scripts/tool.py": "import sys, os\nfrom scripts import helper\n"
        "print(__name__, __package__, sys.argv[1:], os.getcwd(), helper.VALUE)\n"
        "sys.exit(0 if helper.VALUE == 7 else 1)\n",
        "scripts/helper.py": "VALUE = 7\n",
        "scripts/alone.py": "import sys, os, helper\n"
        "print(__name__, __package__, sys.path[0] == os.path.dirname(__file__), "
        "os.path.basename(os.getcwd()), helper.VALUE)\n",
    }
    archive = skill_zip(files)
    result = world.client.run_ok(archive, module="scripts.tool", args=["a", "-b"])
    check_equal(
        result["stdout"],
        f"__main__ scripts ['a', '-b'] {result['stdout'].split()[4]} 7\n",
        "module",
    )
    result = world.client.run_ok(archive, script="scripts/alone.py")
    check_equal(result["stdout"], "__main__ None True skill 7\n", "script")
    answer = world.client.execute(archive)
    check_equal(answer.status, 400, "two scripts and no choice")
    check_in("scripts/alone.py", answer.json["message"], "message")


@case
def skillbox_layout(world):
    source = """
import os, json
print(json.dumps({
    "cwd": os.getcwd(),
    "main": os.path.exists("/sandbox/scripts/scripts/main.py"),
    "skill": os.path.exists("/sandbox/skill/scripts/main.py"),
    "input": json.load(open("/sandbox/input.json")),
    "env": os.environ["SANDBOX_INPUT"],
    "instructions": os.environ["SKILL_INSTRUCTIONS"].strip(),
    "writable": [d for d in ("/sandbox/skill", "/sandbox/scripts", "/", "/usr", "/etc", "/sbin")
                 if os.access(d, os.W_OK)],
}))
"""
    archive = skill_zip({"scripts/main.py": source}, body="Do it well.")
    output = world.client.run_ok(archive, input={"a": [1, "é"]})["output"]
    check_equal(output["cwd"], "/sandbox", "cwd")
    check_equal((output["main"], output["skill"]), (True, True), "layout")
    check_equal(output["input"], {"a": [1, "é"]}, "input.json")
    check_equal(json.loads(output["env"]), {"a": [1, "é"]}, "SANDBOX_INPUT")
    check_equal(output["instructions"], "Do it well.", "SKILL_INSTRUCTIONS")
    check_equal(output["writable"], [], "writable folders")


@case
def ways_to_end(world):
    expected = {
        "raise SystemExit": (0, ""),
        "raise SystemExit(None)": (0, ""),
        "raise SystemExit(7)": (7, ""),
        "raise SystemExit('text')": (1, "text\n"),
        "raise SystemExit(256)": (0, ""),
        "raise SystemExit(-1)": (255, ""),
        "import os; os._exit(9)": (9, ""),
        "import atexit; atexit.register(print, 'bye')": (0, ""),
        "raise KeyboardInterrupt": (None, None),
        "def f(:": (1, None),
    }
    for source, (code, stderr) in expected.items():
        result = world.client.run(python_skill(source))
        if code is None:
            # A plain interpreter ends itself with SIGINT here.
            check(str(result["signal"]) in ("2", "SIGINT"), f"{source}: {result['signal']}")
            continue
        check_equal(result["exit_code"], code, f"{source}: exit_code")
        if stderr is not None:
            check_equal(result["stderr"], stderr, f"{source}: stderr")
        if "atexit" in source:
            check_equal(result["stdout"], "bye\n", "atexit")
        if "def f" in source:
            check_in("SyntaxError", result["stderr"], "stderr")


# How interpreters end: each is run as a skill, and by a plain interpreter in a skill. What must
# be equal is all that comes back: status, streams and files.
NOISY = """
import atexit, gc, os, sys, threading, weakref
os.chdir(os.environ["SANDBOX_FILES_DIR"])

class Noisy:
    def __init__(self, name):
        self.name = name
    def __del__(self, write=sys.stdout.write):
        write(f"gone {self.name}\\n")

def text(name):
    file = open(name + ".txt", "w")
    file.write(name)
    return file
"""
ENDS = {
    "threads": """
started = threading.Event()
def waited():
    started.wait()
    print("waited for")
threading.Thread(target=waited).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
threading._register_atexit(started.set)
atexit.register(print, "after the threads")
""",
    "globals": """
first = Noisy("first")
_second = Noisy("_second")
first.inner = Noisy("inner")
weakref.finalize(first, print, "weakref.finalize")
told = weakref.ref(first.inner, lambda reference: print("callback"))
""",
    "cycles": """
cycle = [Noisy("in a cycle")]
cycle.append(cycle)
gc.disable()
""",
    "modules": """
import fractions, json
fractions.kept = Noisy("its own")
json.kept = text("preloaded")
json.JSONEncoder.kept = [text("class")]
json.loads = lambda file=text("default"): None
os.environ.kept = text("instance")
""",
    "buffers": """
import codecs, contextvars
kept = text("global")
cycle = [text("cycle")]
cycle.append(cycle)
sys.kept = text("sys")
local = threading.local()
local.file = text("local")
variable = contextvars.ContextVar("variable")
variable.set(text("context"))
codecs.register(lambda name, file=text("codec"): None)
os.register_at_fork(before=lambda file=text("fork"): None)
def generator():
    file = text("generator")
    try:
        yield
    finally:
        print("finally")
running = generator()
next(running)
""",
    "exceptions": """
class Fails:
    def __del__(self):
        raise ValueError("in a finalizer")
one = Fails()
cycle = [Fails()]
cycle.append(cycle)
atexit.register(sys.exit, 9)
atexit.register(lambda: 1 / 0)
sys.exit(3)
""",
    "hook": """
def hook(unraisable, write=sys.stdout.write):
    write(f"hook {unraisable.exc_type.__name__}\\n")
sys.unraisablehook = hook
class Fails:
    def __del__(self):
        raise ValueError("in a finalizer")
one = Fails()
""",
    "flush fails": """
os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
print("nowhere to go")
sys.exit(3)
""",
    "streams replaced": """
class Tee:
    closed = False
    def write(self, text):
        return sys.__stdout__.write("tee " + text)
    def flush(self):
        sys.__stdout__.write("flushed\\n")
sys.stdout = Tee()
print("through the tee")
""",
    "exit text": "sys.exit('text')",
    "uncaught": "noisy = Noisy('global')\n1 / 0",
    "os._exit": "noisy = Noisy('global')\nprint('lost')\nos._exit(300)",
    "interrupt": "noisy = Noisy('global')\nraise KeyboardInterrupt",
    "signal in a finalizer": """
import signal
class Raises:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        print("still here")
signal.signal(signal.SIGTERM, print)
one = Raises()
""",
    "subinterpreter": """
import _xxsubinterpreters as interpreters
identity = interpreters.create()
interpreters.run_string(identity, "import atexit; atexit.register(print, 'other', flush=True)")
forgotten = int(interpreters.create())
""",
    "sqlite": """
import sqlite3
connection = sqlite3.connect("data")
connection.execute("create table t(a)")
connection.commit()
connection.execute("insert into t values (1)")
""",
    "C code": """
import ctypes
ctypes.CDLL(None).printf(b"in a buffer of C\\n")
at_exit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: os.write(1, b"pending\\n") * 0)
ctypes.pythonapi.Py_AddPendingCall(at_exit, None)
""",
    "child left behind": """
if os.fork() == 0:
    import time
    while True:
        time.sleep(1)
print("parent", flush=True)
sys.exit(4)
""",
    "child at its own end": """
noisy = Noisy("global")
pid = os.fork()
if pid:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    sys.exit(6)
""",
    "zombie": "import subprocess\nchild = subprocess.Popen(['true'])\nos.waitid(os.P_PID, "
    "child.pid, os.WEXITED | os.WNOWAIT)\nprint('left')",
    "stopped on the way": """
import signal, subprocess
subprocess.Popen(["sh", "-c", "until grep -q ^State:.T /proc/$PPID/status; do :; done; "
                  "kill -CONT $PPID"])
os.kill(os.getpid(), signal.SIGSTOP)
print("went on", flush=True)
sys.exit(7)
""",
    "exec": """
print("before", flush=True)
os.execv("/bin/sh", ["sh", "-c", "echo after; exit 8"])
""",
    "logging": """
import logging, logging.handlers
memory = logging.handlers.MemoryHandler(100, target=logging.FileHandler("log"))
logging.getLogger("x").addHandler(memory)
logging.getLogger("x").error("kept until the end")
""",
}
PLAIN = "import os, sys\nos.execv(sys.executable, [sys.executable, sys.argv[1]])\n"


def how_it_ended(world, result):
    files = []
    if result["files_url"]:
        with tarfile.open(fileobj=io.BytesIO(world.client.get(result["files_url"]).body)) as tar:
            files = sorted((m.name.removeprefix("./"), m.size) for m in tar if m.isreg())
    stderr = re.sub(r"0x[0-9a-f]{6,}|/sandbox/s[a-z]*/[a-z]*\.py", "…", result["stderr"] or "")
    return {
        "exit": (result["exit_code"], result["signal"]),
        "stdout": result["stdout"],
        "stderr": stderr,
        "files": files,
    }


@long_case
def ends_like_a_plain_interpreter(world):
    # One skill for all of them: its machine is used again.
    scripts = {name: f"{number}.py" for number, name in enumerate(ENDS)}
    archive = skill_zip(
        {"main.py": PLAIN} | {file: NOISY + ENDS[name] for name, file in scripts.items()}
    )
    wrong = []
    for name, file in scripts.items():
        ours = how_it_ended(world, world.client.run(archive, script=file))
        plain = how_it_ended(world, world.client.run(archive, args=["/sandbox/skill/" + file]))
        wrong += [f"{name}: {key}: {ours[key]!r}, plain {plain[key]!r}"
                  for key in plain if ours[key] != plain[key]]
    check(not wrong, "; ".join(wrong))


@case
def threads_and_children_end_as_usual(world):
    source = """
import threading, time, multiprocessing, concurrent.futures, sys

def square(n):
    return n * n

def late():
    time.sleep(0.3)
    print("thread", flush=True)

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(pool.map(square, range(10))), flush=True)
    with concurrent.futures.ProcessPoolExecutor(
            1, mp_context=multiprocessing.get_context("spawn")) as pool:
        print(pool.submit(square, 12).result(), flush=True)
    threading.Thread(target=late).start()
"""
    result = world.client.run_ok(python_skill(source))
    check_equal(result["stdout"], "285\n144\nthread\n", "stdout")


@case
def common_modules_work(world):
    source = r"""
import asyncio, csv, ctypes, datetime, decimal, hashlib, html, http.server, io, json, re, socket
import sqlite3, ssl, subprocess, tempfile, threading, unicodedata, urllib.request, xml.dom.minidom
import zlib, zipfile, lzma, bz2, logging, pathlib, shutil, zoneinfo

async def main():
    process = await asyncio.create_subprocess_exec("echo", "child", stdout=-1)
    out, _ = await process.communicate()
    return out.decode().strip()

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"served")
    def log_message(self, *args): pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
body = urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read().decode()
db = sqlite3.connect(tempfile.mkdtemp() + "/x.db")
db.execute("create table t(a)"); db.execute("insert into t values (1)"); db.commit()
print(json.dumps([asyncio.run(main()), body, db.execute("select count(*) from t").fetchone()[0],
                  hashlib.sha256(b"x").hexdigest()[:8], len(ssl.create_default_context().get_ciphers()) > 0,
                  lzma.decompress(lzma.compress(b"ok")).decode()]))
"""
    result = world.client.run_ok(python_skill(source))
    check_equal(result["output"], ["child", "served", 1, "2d711642", True, "ok"], "output")


@case
def packages_of_the_image_work(world):
    source = r"""
import http.server, io, json, threading
import bs4, click, dateutil.parser, defusedxml.ElementTree, jinja2, markdown, requests, typer, yaml

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{"served": 1}')
    def log_message(self, *args): pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
html = markdown.markdown("# Title\n\n*one*")
print(json.dumps([
    yaml.safe_load("a: [1, {b: c}]"), yaml.dump({"x": 1}, Dumper=yaml.CSafeDumper),
    requests.get(f"http://127.0.0.1:{server.server_port}/").json(),
    jinja2.Template("{% for x in xs %}<{{ x }}>{% endfor %}").render(xs=[1, 2]),
    bs4.BeautifulSoup(html, "html.parser").em.text,
    dateutil.parser.parse("1 May 2020 12:30").isoformat(),
    defusedxml.ElementTree.parse(io.StringIO("<a><b/></a>")).getroot()[0].tag]))
"""
    expected = [{"a": [1, {"b": "c"}]}, "x: 1\n", {"served": 1}, "<1><2>", "one",
                "2020-05-01T12:30:00", "b"]
    result = world.client.run_ok(python_skill(source))
    check_equal(result["output"], expected, "output")


@case
def programs_of_the_image_work(world):
    source = """
set -eu
cd /tmp && git init -q repository && cd repository
echo one >a && git add a && git -c user.name=x -c user.email=x@y commit -qm first
git log --format=%s && git archive HEAD | tar -t
zip -q a.zip a && unzip -p a.zip && tar -cJf a.tar.xz a && tar -tf a.tar.xz
sqlite3 db "create table t(n); insert into t values (40), (2); select sum(n) from t"
echo '{"a": [1, 2]}' | jq -c .a
curl -s file:///tmp/repository/a
perl -e 'print join(",", map { $_ * 2 } 1 .. 3), "\\n"'
printf x | openssl dgst -sha256 -r | cut -c 1-8
awk 'BEGIN { print 6 * 7 }' | xz | xz -d
curl -s http://127.0.0.1:1/ || echo "curl:$?"
"""
    result = world.client.run_ok(bash_skill(source))
    expected = "first a one a 42 [1,2] one 2,4,6 2d711642 42 curl:7"
    check_equal(result["stdout"].split(), expected.split(), "stdout")


@case
def streams_open_again_by_name(world):
    archive = bash_skill("echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin")
    result = world.client.run_ok(archive, input=[7])
    check_equal(result["stdout"], "out\n[7]", "stdout")
    check_equal(result["stderr"], "err\n", "stderr")


@case
def bash_is_plain_too(world):
    source = """
echo "$0|$#|$1|$PWD|$HOME|$(id -u)|$-|$(cat)"
trap 'echo trapped' EXIT
exit 3
"""
    result = world.client.run(bash_skill(source), args=["an arg"], input=[1])
    fields = result["stdout"].splitlines()[0].split("|")
    check_in("main.sh", fields[0], "$0")
    check_equal(
        fields[1:], ["1", "an arg", "/sandbox", "/tmp", "65534", "hB", "[1]"], "bash"
    )
    check_equal(result["stdout"].splitlines()[1], "trapped", "trap")
    check_equal(result["exit_code"], 3, "exit_code")
