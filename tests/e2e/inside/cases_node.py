# SPDX-License-Identifier: Apache-2.0
"""A script started by the warm Node observes what a plain one would show it, and no two the same
random numbers. The image of Node is built for `./dev test`; without it the cases skip. A plain Node
takes the better part of a minute to start in a software host: most of them are for `--long node`."""

import json

from given_up import STATUS, check_given_up
from harness import asked_case, check, check_equal, check_in, long_case, need_node, skill_zip

# It is read when Node starts, so with it an execution has a plain one; and it changes nothing.
PLAIN = {"NODE_NO_WARNINGS": "0"}
# A plain Node in an emulated machine on a busy host takes minutes to start.
PATIENT = {"timeout": 600, "timeout_s": 900}

FACTS = r"""
const { Worker, isMainThread } = require('worker_threads');
const own = (o) => Object.getOwnPropertyNames(o).sort();
const near = (a, b) => Math.abs(a - b) < 1000;
const facts = {
  argv: process.argv, argv0: process.argv0, execArgv: process.execArgv, title: process.title,
  execPath: process.execPath, cwd: process.cwd(), umask: process.umask(),
  env: Object.entries(process.env).filter(([name]) => name !== 'NODE_NO_WARNINGS'),
  main: require.main === module, parent: module.parent, children: module.children.length,
  id: module.id, file: __filename, paths: module.paths, cache: Object.keys(require.cache),
  found: Object.keys(module.constructor._pathCache),
  builtin: require('module').builtinModules, stack: new Error('x').stack,
  process: own(process).map((name) => [name, typeof process[name]]),
  preload: process._preload_modules, global: own(globalThis), events: process.eventNames(),
  active: process.getActiveResourcesInfo(), limit: Error.stackTraceLimit,
  descriptors: isMainThread && require('fs').readdirSync('/proc/self/fd').length,
  heap: require('v8').getHeapStatistics().heap_size_limit,
  origin: near(performance.timeOrigin + performance.now(), Date.now()),
  now: performance.now() < 600000, uptime: process.uptime() < 600,
  zone: new Date(0).toString(), locale: Intl.DateTimeFormat().resolvedOptions().locale,
  user: [process.getuid(), process.getgid(), process.getgroups()],
};
console.log(JSON.stringify(facts));
if (isMainThread) {
  console.error(require('fs').readFileSync('/proc/self/cmdline', 'utf8').split('\0').join(' '));
  new Worker(__filename);
}
"""

SCRIPTS = {
    "main.js": r"""
let n = 0;
process.on('exit', (code) => { console.log('exit', code); process.exitCode = 9; });
process.on('beforeExit', () => { console.log('before'); if (n++ < 1) setTimeout(() => 0, 5); });
process.nextTick(() => console.log('tick'));
Promise.resolve().then(() => console.log('promise'));
setTimeout(() => console.log('timer'), 300);
process.stdin.on('data', (data) => console.log(`read ${data}`)).on('end', () => console.log('end'));
const { execFileSync, fork } = require('child_process');
if (process.argv[2] !== 'child') {
  console.log(execFileSync(process.execPath, ['-p', '[process.execArgv, process.argv.length]'])
    .toString());
  fork(__filename, ['child'], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    .on('exit', (code) => console.log('child', code));
}
console.log([1, { a: new Map([[1, 'b']]) }], require('lodash').VERSION, require('mine'));
""",
    "uncaught.js": "process.on('exit', (c) => console.log('exit', c));\n"
    "function f() { throw new TypeError('no'); }\nf();\n",
    "rejected.js": "Promise.reject(new Error('left'));\n",
    "exits.js": "process.stdout.write('a'.repeat(60000)); process.exit(3);\n",
    "killed.js": "process.kill(process.pid, 'SIGTERM'); setTimeout(() => 0, 60000);\n",
    "wrong.js": "let a b;\n",
    "module.mjs": "import { a } from './part.mjs';\nimport _ from 'lodash';\n"
    "console.log(a, _.VERSION, import.meta.url, process.argv, await Promise.resolve(5));\n"
    "throw new Error('awaited');\n",
    "part.mjs": "export const a = import.meta.url;\n",
    "workers.js": "const { Worker, isMainThread, parentPort } = require('worker_threads');\n"
    "if (isMainThread) {\n"
    "  new Worker(__filename).on('message', console.log).on('exit', (c) => console.log(c));\n"
    "  new Worker('setInterval(() => 0, 9)', { eval: true }).unref();\n"
    "} else { parentPort.postMessage([process.argv, 1]); process.exit(7); }\n",
}

RANDOM = r"""
const crypto = require('crypto');
const { Worker, isMainThread, threadId } = require('worker_threads');
(async () => {
  console.log(JSON.stringify({
    'Math.random': Math.random(),
    'a context': require('vm').runInNewContext('Math.random()'),
    randomBytes: crypto.randomBytes(16).toString('hex'),
    'in the pool': (await require('util').promisify(crypto.randomBytes)(16)).toString('hex'),
    randomUUID: crypto.randomUUID(),
    randomInt: crypto.randomInt(2 ** 47),
    getRandomValues: Buffer.from(crypto.webcrypto.getRandomValues(new Uint8Array(16)))
      .toString('hex'),
    key: crypto.generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }).x,
    mkdtemp: require('fs').mkdtempSync('/tmp/x'),
  }));
  if (isMainThread) new Worker(__filename);
})();
"""


def seen(result):
    """What a caller sees of an end."""
    return {name: result[name] for name in ("status", "exit_code", "signal", "stdout", "stderr")}


def check_facts(client):
    skill = skill_zip({"main.js": FACTS})
    args = ["one", "two words", "-x", ""]
    env = {"NODE_ENV": "production", "TZ": "Asia/Tokyo"}
    warm = client.run_ok(skill, args=args, env=env, **PATIENT)
    plain = client.run_ok(skill, args=args, env={**env, **PLAIN}, **PATIENT)
    check_equal(warm["stderr"], "/usr/bin/node -- -skill \n", "the warm one's command line")
    check("main.js one" in plain["stderr"], "the other is not plain")
    check_equal(warm["stdout"], plain["stdout"], "facts")


def check_ends(client):
    skill = skill_zip({**SCRIPTS, "node_modules/mine/index.js": "module.exports = 'own';\n"})
    for name in SCRIPTS:
        warm = client.run(skill, script=name, input={"a": 1}, **PATIENT)
        plain = client.run(skill, script=name, input={"a": 1}, env=PLAIN, **PATIENT)
        check_equal(seen(warm), seen(plain), name)


def check_numbers(client):
    skill = skill_zip({"main.js": RANDOM})
    drawn = {}
    for fresh in (True, True, False, False):
        for line in client.run_ok(skill, fresh=fresh, **PATIENT)["stdout"].splitlines():
            for name, value in json.loads(line).items():
                drawn.setdefault(name, []).append(value)
    for name, values in drawn.items():
        check_equal(len(values), 8, f"{name}: values")
        check(len(set(values)) == len(values), f"{name}: {values}")


def check_limits(client, env):
    """What one of its processes did is said of both: the waiting one and, with PLAIN, one of its own."""
    hog = "require('child_process').spawnSync('tail', ['/dev/zero']);\n"
    many = """
const { spawn } = require('child_process');
for (let i = 0; i < 64; i++) spawn('sleep', ['99']).on('error', () => 0).unref();
setTimeout(() => process.exit(0), 100);
"""
    limits = {"limits": {"memory": "128Mi", "pids": 32}, **PATIENT}
    result = client.run_ok(skill_zip({"main.js": f"console.log(require('fs').readFileSync('{STATUS}', 'utf8'))"}),
                           env=env, **PATIENT)
    check_given_up(result["stdout"], f"node with {env}")
    result = client.run(skill_zip({"main.js": "Buffer.alloc(400 << 20, 1)"}), env=env, **limits)
    check_equal((result["status"], result["error"]),
                ("failed", "out of memory: the limit is 128 MiB"), "the main process")
    result = client.run_ok(skill_zip({"main.js": hog}), env=env, **limits)
    check_in("ended, out of memory: the limit is 128 MiB", str(result["warnings"]), "a child")
    result = client.run_ok(skill_zip({"main.js": many}), env=env, **limits)
    check_in("times): the limit is 32", str(result["warnings"]), "children")


def node_daemon(world, name):
    need_node(world)
    daemon = world.copy_of_snapshots(name, kept=2)
    daemon.start()
    # It waits for the image's snapshot.
    daemon.client.run_ok(skill_zip({"main.js": ""}), **PATIENT)
    return daemon


@long_case
def node_never_draws_the_same_twice(world):
    daemon = node_daemon(world, "node-drawn")
    check_numbers(daemon.client)
    daemon.stop()


@long_case
def node_is_a_plain_one(world):
    daemon = node_daemon(world, "node")
    check_facts(daemon.client)
    check_limits(daemon.client, {})
    daemon.stop()


@asked_case
def node_ends_like_a_plain_one(world):
    daemon = node_daemon(world, "node-ends")
    check_ends(daemon.client)
    check_limits(daemon.client, PLAIN)
    daemon.stop()
