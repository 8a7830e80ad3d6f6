// SPDX-License-Identifier: Apache-2.0
// `skillvm mcp` line by line: versions, batches, bad messages, bounds, and how it ends.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Daemon, Raw, test, until } from "./support.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.stop());

test("versions are agreed on", async () => {
    for (const [asked, given] of [
        ["2025-11-25", "2025-11-25"], ["2025-06-18", "2025-06-18"], ["2025-03-26", "2025-03-26"],
        ["2024-11-05", "2024-11-05"], ["1999-01-01", "2025-11-25"], ["2026-07-28", "2025-11-25"],
    ]) {
        const raw = new Raw(daemon);
        assert.equal((await raw.initialize(asked)).protocolVersion, given);
        raw.process.stdin.end();
        assert.deepEqual(await raw.exited, { code: 0, signal: null });
    }
});

test("bad messages are answered, and good ones after them", async () => {
    const raw = new Raw(daemon);
    await raw.initialize("2025-06-18");
    for (const [line, code, id] of [
        ["{", -32700, null],
        ["\"\ud800", -32700, null],
        ["{}", -32600, null],
        ["[]", -32600, null],
        ["[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, null],
        ["{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"sampling/createMessage\"}", -32601, 4],
        ["{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{}}", -32602, 5],
        ["[".repeat(100000), -32700, null],
        ["x".repeat(21 << 20), -32700, null],
    ]) {
        raw.send(line);
        const answer = await raw.next();
        assert.deepEqual([answer.error.code, answer.id], [code, id], line.slice(0, 80));
    }
    raw.send({ jsonrpc: "2.0", id: 6, method: "ping" });
    assert.deepEqual(await raw.next(), { jsonrpc: "2.0", id: 6, result: {} });
    raw.process.stdin.end();
    assert.deepEqual(await raw.exited, { code: 0, signal: null });
    assert.equal(raw.log, "");
});

test("a batch of the version that has them gets one answer", async () => {
    const raw = new Raw(daemon);
    await raw.initialize("2025-03-26");
    const greet = (id) => ({ jsonrpc: "2.0", id, method: "tools/call",
                             params: { name: "greet", arguments: { name: "x" } } });
    raw.send([greet(1), { jsonrpc: "2.0", id: 2, method: "ping" }, greet(3)]);
    const answers = await raw.next();
    assert.deepEqual(answers.map((answer) => answer.id).sort(), [1, 2, 3]);
    raw.process.stdin.end();
    await raw.exited;
});

test("before initialize only ping is answered", async () => {
    const raw = new Raw(daemon);
    raw.send({ jsonrpc: "2.0", id: 1, method: "ping" });
    assert.deepEqual((await raw.next()).result, {});
    raw.send({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    assert.equal((await raw.next()).error.code, -32600);
    raw.process.stdin.end();
    await raw.exited;
});

test("large numbers and strange characters pass unchanged", async () => {
    const raw = new Raw(daemon);
    await raw.initialize("2025-06-18");
    raw.send("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"tools/call\",\"params\":" +
             "{\"name\":\"greet\",\"arguments\":{\"name\":\"a\\nb \u2028 \\ud83d\\ude00\"}}}");
    const answer = await raw.next();
    assert.equal(answer.id, "a");
    assert.deepEqual(answer.result.structuredContent, { greeting: "hello a\nb \u2028 😀" });
    raw.process.stdin.end();
    await raw.exited;
});

async function runningCall() {
    const raw = new Raw(daemon);
    await raw.initialize("2025-06-18");
    raw.send({ jsonrpc: "2.0", id: 1, method: "tools/call",
               params: { name: "sleepy", arguments: { steps: 500 }, _meta: { progressToken: 1 } } });
    for (let text = ""; !/step/.test(text);) {
        const message = await raw.next();
        assert.equal(message.method, "notifications/progress", JSON.stringify(message));
        text = message.params.message;
    }
    return raw;
}

const cancelled = () =>
    until(async () => (await daemon.executions("sleepy")).every((e) => e.status === "cancelled"));

test("the end of its input ends it", async () => {
    const raw = await runningCall();
    raw.process.stdin.end();
    assert.deepEqual(await raw.exited, { code: 0, signal: null });
    await cancelled();
});

test("SIGTERM ends it", async () => {
    const raw = await runningCall();
    raw.process.kill("SIGTERM");
    assert.deepEqual(await raw.exited, { code: 0, signal: null });
    await cancelled();
});

test("a client that went away ends it", async () => {
    const raw = await runningCall();
    raw.process.stdout.destroy();
    assert.equal((await raw.exited).code, 0);
    await cancelled();
});

test("a client that does not read holds up only itself", async () => {
    const raw = await runningCall();
    raw.process.stdout.pause();
    for (let i = 0; i < 2000; i++)
        raw.send({ jsonrpc: "2.0", id: `p${i}`, method: "no/".concat("x".repeat(1000)) });
    await sleep(300);
    raw.process.kill("SIGTERM");
    assert.equal((await raw.exited).signal, null);
    await cancelled();
});

test("a cancelled request is not answered, and a strange cancellation is ignored", async () => {
    const raw = await runningCall();
    raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "1" } });
    raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: {} });
    raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
    await cancelled();
    await sleep(300);
    raw.send({ jsonrpc: "2.0", id: 9, method: "ping" });
    let message;
    do message = await raw.next(); while (message.method === "notifications/progress");
    assert.equal(message.id, 9);
    raw.process.stdin.end();
    await raw.exited;
});
