// SPDX-License-Identifier: Apache-2.0
/*
 * The node zygote: a started Node that waits to be told which skill to run.
 *
 * It is a module that NODE_OPTIONS has Node require before the script of its command line, with a
 * command line that names none (`node -- -skill`): Node then runs, with no frame of this file
 * below it, what process.argv[1] says once this returns. Whatever a script could see of this
 * file would be a fault: no module, no variable, no descriptor of it may be left.
 *
 * The waiting, and what cannot be renewed from here, is node.c's. The protocol on descriptor 3
 * is described in guest-init/zygote.h. Workers require this file too, since they start with the
 * options of their process, and only tidy up.
 */
'use strict';

const CONTROL = 3;

// What scripts commonly require, and what lies behind console.log. Nothing here may draw random
// numbers, open descriptors or start timers when it is loaded; left out for that reason: assert,
// console and process, with which the streams are made.
const PRELOAD = [
  'buffer', 'child_process', 'crypto', 'events', 'fs', 'fs/promises', 'http', 'https',
  'module', 'net', 'os', 'path', 'perf_hooks', 'querystring', 'readline', 'stream',
  'stream/promises', 'string_decoder', 'timers', 'timers/promises', 'tty', 'url', 'util', 'vm',
  'worker_threads', 'zlib',
];

function preload() {
  for (const name of PRELOAD)
    require(name);
}

/* What a script's first lines do, so that the functions behind it are compiled. */
function exercise() {
  const { Writable } = require('stream');
  const stdout = new Writable({ write(chunk, encoding, done) { done(); } });

  // Which colours there are is asked of stderr, which is made then.
  new console.Console({ stdout, colorMode: false }).log('%s', 'a', 1, { a: [1, 'b', null], c: new Map([[1, 2]]) });
  JSON.parse(JSON.stringify({ a: [1, 2, 'b'] }));
  require('path').join('/', 'a', '..', 'b');
  require('fs').existsSync('/');
  require('fs').readFileSync('/etc/hostname', 'utf8');
}

function read(n) {
  const { readSync } = require('fs');
  const data = Buffer.allocUnsafeSlow(n);

  for (let at = 0; at < n;) {
    const got = readSync(CONTROL, data, at, n - at, null);
    if (got === 0)
      process.reallyExit(0);
    at += got;
  }
  return data;
}

/* The strings of the message, each of which ends with a NUL. */
function receive() {
  const texts = read(read(4).readUInt32LE(0)).toString().split('\0');

  require('fs').closeSync(CONTROL);
  texts.pop();
  return texts;
}

function setEnvironment(variables) {
  const { env } = process;

  for (const name of Object.keys(env))
    delete env[name];
  for (const text of variables) {
    const equals = text.indexOf('=');
    env[text.slice(0, equals)] = text.slice(equals + 1);
  }
}

function become() {
  const [, cwd, target, count, ...rest] = receive();

  setEnvironment(rest.slice(Number(count)));
  process.chdir(cwd);
  process.argv.splice(1, Infinity, target, ...rest.slice(0, Number(count)));
}

/* As if this file had never been. */
function forget() {
  const { Module } = module.constructor;

  delete Module._cache[__filename];
  for (const key of Object.keys(Module._pathCache))
    delete Module._pathCache[key];
  Object.defineProperty(process, '_preload_modules', { value: [] });
  // Node notes when it was started, which was before the wait.
  performance.timeOrigin = Date.now() - performance.now();
}

if (require('worker_threads').isMainThread) {
  preload();
  exercise();
  process.dlopen({ exports: {} }, `${__dirname}/zygote.node`);
  become();
}
forget();
