// SPDX-License-Identifier: Apache-2.0
// Which daemon `skillvm mcp` speaks with: one it starts, one that comes back, a server with a key.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before } from "node:test";

import { Daemon, Raw, connect, here, test, until } from "./support.mjs";

const freePort = () => new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
        const { port } = server.address();
        server.close(() => resolve(port));
    });
});

const daemon = new Daemon();
let port;
before(async () => {
    port = await freePort();
    await daemon.start("--listen", `127.0.0.1:${port}`);
});
after(() => daemon.stop());

const greet = (client) => client.callTool({ name: "greet", arguments: { name: "Ada" } });
const isUp = (place) => place.skillvm("health").then(() => true, () => false);

test("a server with a key", async () => {
    const key = JSON.parse(await daemon.skillvm("key", "create", "-o", "json")).key;
    const file = join(daemon.folder, "key");
    await writeFile(file, key);
    const elsewhere = { env: { ...daemon.env, SKILLVM_SOCKET: "/nowhere", SKILLVM_DATA: "/nowhere" } };
    const { client } = await connect(elsewhere, "--server", `http://127.0.0.1:${port}`, "--key", `@${file}`);
    assert.deepEqual((await greet(client)).structuredContent, { greeting: "hello Ada" });
    await client.close();

    const stranger = await connect(elsewhere, "--server", `http://127.0.0.1:${port}`, "--key", "sk-wrong");
    await assert.rejects(stranger.client.listTools(),
                         (error) => error.code === -32603 && !error.message.includes("sk-wrong"));
    await stranger.client.close();
});

test("without a daemon one is started, and stopped at the end", async () => {
    const place = new Daemon();
    await place.prepareAlone();
    const { client, log } = await connect(place, "--host", "native");
    assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name),
        ["list_skills", "get_skill_info", "run_code"]);
    await place.push(join(here, "skills", "greet"));
    assert.deepEqual((await greet(client)).structuredContent, { greeting: "hello Ada" });
    await client.close();
    await until(async () => !await isUp(place));
    assert.doesNotMatch(log(), /failed|cannot/);
    await rm(place.folder, { recursive: true });
});

test("a daemon that was stopped is started again", async () => {
    const place = new Daemon();
    await place.prepareAlone();
    const { client } = await connect(place, "--host", "native");
    await client.listTools();
    await place.push(join(here, "skills", "greet"));
    await place.skillvm("down");
    assert.deepEqual((await greet(client)).structuredContent, { greeting: "hello Ada" });
    await client.close();
    await until(async () => !await isUp(place));
    await rm(place.folder, { recursive: true });
});

test("a daemon that cannot start is told of, and the session goes on", async () => {
    const place = new Daemon();
    await place.prepareAlone();
    place.env.SKILLVM_SHARE = join(place.folder, "nothing");
    const raw = new Raw(place, "--host", "native");
    assert.equal((await raw.initialize("2025-06-18")).protocolVersion, "2025-06-18");
    raw.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const answer = await raw.next();
    assert.equal(answer.error.code, -32603);
    assert.notEqual(answer.error.message, "");
    raw.send({ jsonrpc: "2.0", id: 2, method: "ping" });
    assert.deepEqual((await raw.next()).result, {});
    raw.process.stdin.end();
    assert.deepEqual(await raw.exited, { code: 0, signal: null });
    await rm(place.folder, { recursive: true });
});

test("the documented configuration is the one that works", async () => {
    const text = await readFile(join(here, "..", "..", "docs", "mcp.md"), "utf8");
    const [, json] = /```json\n([^]*?)```/.exec(text);
    assert.deepEqual(JSON.parse(json).mcpServers.skillvm, { command: "skillvm", args: ["mcp"] });
});
