# SPDX-License-Identifier: Apache-2.0
"""Skills that reach hosts by name. The hosts are servers beside the daemon, permitted by name."""

import contextlib
import functools
import hashlib
import http.server
import io
import json
import pathlib
import socket
import ssl
import tarfile
import tempfile
import threading
import time

from harness import (
    case,
    check,
    check_equal,
    check_in,
    check_reused,
    long_case,
    need_node,
    python_skill,
    skill_zip,
    wait_until,
)

# Makes what the servers give: a repository that needs no git of theirs, and a certificate.
MAKER = r"""
import os, subprocess
os.chdir("/tmp")
run = lambda *args: subprocess.run(args, check=True, stdout=2)
run("git", "init", "-q", "work")
open("work/hello.txt", "w").write("from a repository\n")
git = ("git", "-C", "work", "-c", "user.name=a", "-c", "user.email=a@example.test")
run(*git, "add", ".")
run(*git, "commit", "-qm", "one")
files = os.environ["SANDBOX_FILES_DIR"]
run("git", "clone", "-q", "--bare", "work", files + "repo.git")
run("git", "-C", files + "repo.git", "update-server-info")
run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "36500", "-keyout",
    files + "key.pem", "-out", files + "cert.pem", "-subj", "/CN=secure.example.test",
    "-addext", "subjectAltName=DNS:secure.example.test")
"""

CALLER = r"""
import json, os, socket, subprocess, time, urllib.request
import requests
out = {}
web, tls = os.environ["WEB"], os.environ["TLS"]
cert = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cert.pem")
out["urllib"] = urllib.request.urlopen(f"http://web.test:{web}/hello", timeout=60).read().decode()
out["requests"] = requests.get(f"https://secure.example.test:{tls}/hello", verify=cert, timeout=60).text
big = requests.post(f"http://web.test:{web}/echo", data=b"x" * 700_000, timeout=120)
out["echo"] = [len(big.content), big.content == b"x" * 700_000]
curl = lambda *args: subprocess.run(("curl", "-sS", "--max-time", "60") + args, capture_output=True, text=True)
out["curl"] = curl("--cacert", cert, f"https://secure.example.test:{tls}/hello").stdout
git = subprocess.run(("git", "clone", "-q", f"http://web.test:{web}/repo.git", "/tmp/got"), capture_output=True, text=True)
out["git"] = open("/tmp/got/hello.txt").read() if git.returncode == 0 else git.stderr
begin = time.monotonic()
other = curl("https://other.test/")
out["other"] = [other.returncode, other.stderr]
try:
    socket.create_connection(("web.test", 9))
except OSError as error:
    out["port"] = type(error).__name__
try:
    socket.getaddrinfo("secure.example.test.", 1, socket.AF_INET6)
except OSError as error:
    out["ipv6"] = error.errno
try:
    out["metadata"] = socket.create_connection(("169.254.169.254", 80), timeout=20)
except OSError as error:
    out["metadata"] = type(error).__name__
out["fast"] = time.monotonic() - begin
out["interfaces"] = os.listdir("/sys/class/net")
# One that is open at the end is nobody's concern.
kept = socket.create_connection(("web.test", int(web)))
kept.sendall(b"GET /kept HTTP/1.0\r\n\r\n")
json.dump(out, open(os.environ["SANDBOX_OUTPUT"], "w"))
"""

LINK_CHECK = pathlib.Path(__file__).resolve().parents[3] / "tests/skills/node/link-check"

NODE_CALLER = r"""
const fs = require('fs'), http = require('http'), https = require('https'), { once } = require('events');
const { WEB, TLS } = process.env;
const failure = (e) => e.cause ? e.cause.code : e.code;
(async () => {
  const out = {};
  out.fetch = await (await fetch(`http://web.test:${WEB}/hello`)).text();
  const body = 'x'.repeat(700000);
  const echo = await (await fetch(`http://web.test:${WEB}/echo`, { method: 'POST', body })).text();
  out.echo = echo === body;
  // Where fetch gives a connection 10 s, which 40 may not have on a busy machine.
  out.together = await Promise.all(Array.from({ length: 40 }, async () => {
    const [answer] = await once(http.get(`http://web.test:${WEB}/hello`), 'response');
    return (await answer.toArray()).join('');
  }));
  const [answer] = await once(https.get(`https://secure.example.test:${TLS}/hello`,
    { ca: fs.readFileSync(__dirname + '/cert.pem') }), 'response');
  out.tls = (await answer.toArray()).join('');
  out.unknown = await fetch(`https://secure.example.test:${TLS}/hello`).catch(failure);
  out.other = await fetch('https://other.test/').catch(failure);
  fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(out));
})();
"""

# Leaves with all of it in its own kernel, and the connection as it is.
LEAVER = """
import os, socket
kept = socket.create_connection(("slow.test", int(os.environ["SLOW"])))
kept.sendall(b"x" * (512 << 10))
"""

UNDECLARED = """
import socket
try:
    print(socket.gethostbyname("web.test"))
except OSError as error:
    print(type(error).__name__)
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    seen = []

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.seen.append(self.path)
        if self.path != "/hello":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(folder, cert=None):
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=folder)
    )
    if cert:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def fetch_files(client, result, folder):
    answer = client.request("GET", result["files_url"])
    check_equal(answer.status, 200, "the files that were made")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as archive:
        archive.extractall(folder)


@contextlib.contextmanager
def served(client):
    """A server of each kind, and the certificate of the second."""
    with tempfile.TemporaryDirectory() as folder:
        made = client.run_ok(python_skill(MAKER))
        fetch_files(client, made, folder)
        web, secure = serve(folder), serve(folder, cert=True)
        yield web, secure, pathlib.Path(folder, "cert.pem").read_text()
        web.shutdown()
        secure.shutdown()


def reaching_daemon(world, name, **more):
    daemon = world.copy_of_snapshots(name, **more)
    daemon.environment["SKILLVM_NETWORK_POLICY"] = "web.test:* *.example.test:*"
    daemon.environment["SKILLVM_NETWORK_ALLOW_PRIVATE"] = (
        "web.test=127.0.0.1 secure.example.test=127.0.0.1"
    )
    daemon.start()
    return daemon


def link_check(declared):
    """The skill of tests/skills, with the servers of a test in the place of its hosts."""
    files = {
        str(path.relative_to(LINK_CHECK)): path.read_text(encoding="utf-8")
        for path in sorted(LINK_CHECK.rglob("*"))
        if path.is_file()
    }
    own = '["docs.example.org", "www.example.org"]'
    check_in(own, files["SKILL.md"], "the hosts that it declares")
    files["SKILL.md"] = files["SKILL.md"].replace(own, json.dumps(declared))
    return skill_zip(files)


def by_host(result):
    return {(row["host"], row["port"]): row for row in result["network"]}


def receive_slowly(listener, received):
    """One connection's bytes: the second half, which is what fits between it and the skill, when
    that will have ended."""
    connection, _ = listener.accept()
    with connection:
        is_behind = False
        while data := connection.recv(16 << 10):
            received.append(len(data))
            if not is_behind and sum(received) >= 256 << 10:
                is_behind = True
                time.sleep(2)


@case
def what_a_skill_sent_last_arrives(world):
    daemon = world.copy_of_snapshots("egress_last")
    daemon.environment["SKILLVM_NETWORK_POLICY"] = "slow.test:*"
    daemon.environment["SKILLVM_NETWORK_ALLOW_PRIVATE"] = "slow.test=127.0.0.1"
    daemon.start()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port, received = listener.getsockname()[1], []
        peer = threading.Thread(target=receive_slowly, args=(listener, received), daemon=True)
        peer.start()
        skill = python_skill(LEAVER, front=f'network: "slow.test:{port}"\n')
        result = daemon.client.run_ok(skill, env={"SLOW": str(port)})
        peer.join(300)
        check_equal(sum(received), 512 << 10, "bytes that arrived")
        check_equal(by_host(result)["slow.test", port]["bytes_sent"], 512 << 10, "bytes of its row")
    daemon.stop()


@case
def skills_reach_hosts_by_name(world):
    daemon = reaching_daemon(world, "egress")
    client = daemon.client
    with served(client) as (web, secure, cert):
        ports = {"WEB": str(web.server_port), "TLS": str(secure.server_port)}
        declared = [f"web.test:{web.server_port}", f"*.example.test:{secure.server_port}"]
        files = {
            "main.py": CALLER,
            "cert.pem": cert,
        }
        skill = skill_zip(files, front=f"network: {json.dumps(declared)}\n")

        def call():
            return client.run_ok(skill, env=ports)

        for run in (call, lambda: check_reused(call, "the second")):
            Handler.seen.clear()
            result = run()
            out = result["output"]
            check_equal(out["urllib"], "hello", "urllib")
            check_equal(out["requests"], "hello", "requests, with TLS")
            check_equal(out["echo"], [700_000, True], "what was posted comes back")
            check_equal(out["curl"], "hello", "curl, with TLS")
            check_equal(out["git"], "from a repository\n", "git")
            check_equal(out["other"][0], 6, f"curl of another host: {out['other'][1]}")
            check_equal(out["port"], "ConnectionRefusedError", "another port")
            check_equal(out["ipv6"], -5, "an IPv6 address of a name (EAI_NODATA)")
            check_equal(out["metadata"], "OSError", "an address")
            check_equal(out["interfaces"], ["lo"], "network interfaces")
            check(out["fast"] < 60, f"what is refused took {out['fast']} s")
            wait_until(lambda: "/kept" in Handler.seen, 60, "what was sent last arrives")
            rows = by_host(result)
            check(rows["web.test", web.server_port]["bytes_received"] > 700_000, f"rows: {rows}")
            check(rows["web.test", web.server_port]["count"] >= 4, f"connections: {rows}")
            check_equal(rows["secure.example.test", secure.server_port]["refused"], None, "TLS")
            check_equal(rows["other.test", None]["refused"], "it is not declared", "refusal")
            check_in("other.test is not among the hosts", " ".join(result["warnings"]), "remedy")

        # The caller narrows, and narrows to nothing; the skill that declares nothing has nothing.
        narrow = client.run(skill, env=ports, network=["*.example.test:1"], timeout=600)
        check_equal(narrow["status"], "failed", "without its hosts")
        check_in("leaves it out", " ".join(narrow["warnings"]), "who left it out")
        none = client.run(skill, env=ports, network=False)
        check_equal(none["network"], [], "no network at all")
        silent = client.run(python_skill(UNDECLARED))
        check_equal(silent["stdout"], "gaierror\n", "a skill that declares nothing")
        check_equal(silent["network"], [], "its rows")

        audit = client.request("GET", "/v1/admin/audit").body.decode()
        check_in(f"web.test:{web.server_port}", audit, "the audit")
        check_in("other.test refused", audit, "the audit of refusals")
    daemon.stop()


@long_case
def node_reaches_hosts_by_name(world):
    need_node(world)
    daemon = reaching_daemon(world, "egress_node", kept=2)
    client = daemon.client
    with served(client) as (web, secure, cert):
        ports = {"WEB": str(web.server_port), "TLS": str(secure.server_port)}
        declared = [f"web.test:{web.server_port}", f"*.example.test:{secure.server_port}"]
        skill = skill_zip(
            {"main.js": NODE_CALLER, "cert.pem": cert}, front=f"network: {json.dumps(declared)}\n"
        )
        for _ in range(2):
            result = client.run(skill, env=ports, timeout=600, timeout_s=900)
            check_equal(result["status"], "success", f"the caller: {result['stderr']}")
            out = result["output"]
            check_equal(out["fetch"], "hello", "fetch")
            check_equal(out["echo"], True, "what was posted comes back")
            check_equal(out["together"], ["hello"] * 40, "more connections than there are")
            check_equal(out["tls"], "hello", "https, with TLS")
            check_equal(out["unknown"], "DEPTH_ZERO_SELF_SIGNED_CERT", "an unknown certificate")
            check_equal(out["other"], "ENOTFOUND", "another host")
            rows = by_host(result)
            check_equal(rows["other.test", None]["refused"], "it is not declared", "refusal")
        base = f"http://web.test:{web.server_port}"
        result = client.run_ok(
            link_check(declared),
            input={"text": f"[a]({base}/hello) [b]({base}/gone) [c](https://other.test/)"},
            timeout=600,
            timeout_s=900,
        )
        out = result["output"]
        check_equal([out[name] for name in ("ok", "broken", "unreachable")], [1, 1, 1], "links")
        hello = next(link for link in out["links"] if link["result"] == "ok")
        check_equal(hello["sha256"], hashlib.sha256(b"hello").hexdigest(), "what was fetched")
    daemon.stop()
