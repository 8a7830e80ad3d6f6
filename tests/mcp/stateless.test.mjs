// SPDX-License-Identifier: Apache-2.0
// `skillvm mcp` as the official client library of 2026-07-28 sees it, which has no session.
import assert from "node:assert/strict";
import { after, before } from "node:test";

import { Daemon, skillvm, test, until } from "./support.mjs";

// The library itself needs Node 20; Debian 12 has 18.
const old = parseInt(process.versions.node) < 20 && "the client library needs Node 20 or newer";
const daemon = new Daemon();
const clients = [];

before(() => old || daemon.start());
after(async () => {
    for (const client of clients) await client.close();
    if (!old) await daemon.stop();
});

async function connect(mode, options = {}) {
    const { Client } = await import("@modelcontextprotocol/client");
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    const client = new Client({ name: "tests", version: "1" },
                              { versionNegotiation: { mode }, ...options });
    await client.connect(new StdioClientTransport(
        { command: skillvm, args: ["mcp"], env: daemon.env, stderr: "inherit" }));
    clients.push(client);
    return client;
}

test("each way of beginning works", { skip: old }, async () => {
    for (const mode of ["legacy", "auto", { pin: "2026-07-28" }]) {
        const client = await connect(mode);
        const { tools } = await client.listTools();
        assert.equal(tools.length, 7);
        assert.equal(client.getServerVersion().name, "skillvm");
        const result = await client.callTool({ name: "greet", arguments: { name: "Ada" } });
        assert.deepEqual(result.structuredContent, { greeting: "hello Ada" });
    }
});

test("progress, cancelling and resources without a session", { skip: old }, async () => {
    const client = await connect({ pin: "2026-07-28" });
    const stop = new AbortController();
    const begun = new Promise((resolve, reject) => {
        client.callTool({ name: "sleepy", arguments: { steps: 500 } }, {
            signal: stop.signal,
            onprogress: (p) => /step/.test(p.message) && resolve(),
        }).then(() => reject(new Error("it was answered")), reject);
    });
    await begun;
    stop.abort("enough");
    await until(async () => (await daemon.executions("sleepy"))[0].status === "cancelled");
    const made = await client.callTool({ name: "maker", arguments: {} });
    const link = made.content.find((item) => item.type === "resource_link");
    const { contents } = await client.readResource({ uri: link.uri });
    assert.equal(contents.length, 1);
    await assert.rejects(client.readResource({ uri: "skill://nobody/1/SKILL.md" }),
                         (error) => error.code === -32602);
});

test("a client that listens is told of new skills", { skip: old }, async () => {
    const client = await connect({ pin: "2026-07-28" });
    let told = 0;
    client.setNotificationHandler("notifications/tools/list_changed", () => { told++; });
    const subscription = await client.listen({ toolsListChanged: true });
    await daemon.skillvm("skill", "rm", "broken@1.0.0");
    await until(() => told > 0);
    await subscription.close();
});
