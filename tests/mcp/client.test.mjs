// SPDX-License-Identifier: Apache-2.0
// `skillvm mcp` as the official client library sees it.
import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import {
    ResourceListChangedNotificationSchema, ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { Daemon, connect, here, test, until } from "./support.mjs";

const daemon = new Daemon();
let session;

before(async () => {
    await daemon.start();
    session = await connect(daemon);
});
after(async () => {
    await session?.client.close();
    await daemon.stop();
});

const call = (name, args, options) =>
    session.client.callTool({ name, arguments: args }, undefined, options);

test("initialize tells who it is and what it can", () => {
    assert.equal(session.client.getServerVersion().name, "skillvm");
    assert.match(session.client.getServerVersion().version, /^\d+\.\d+\.\d+$/);
    assert.deepEqual(session.client.getServerCapabilities(),
                     { tools: { listChanged: true }, resources: { listChanged: true } });
    assert.match(session.client.getInstructions(), /SKILL\.md/);
});

test("ping", async () => {
    assert.deepEqual(await session.client.ping(), {});
});

test("skills are tools with their schema", async () => {
    const { tools } = await session.client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name).sort(), ["broken", "get_skill_info",
        "greet", "list_skills", "maker", "run_code", "sleepy"]);
    const greet = tools.find((tool) => tool.name === "greet");
    assert.match(greet.description, /^Greets somebody by name/);
    assert.equal(greet.inputSchema.type, "object");
    assert.equal(greet.inputSchema.properties.times.type, "integer");
    assert.deepEqual(greet.inputSchema.required, ["name"]);
});

test("a call's output is text and structure", async () => {
    const result = await call("greet", { name: "Zoë", times: 2 });
    assert.equal(result.isError, false);
    assert.deepEqual(result.structuredContent, { greeting: "hello Zoë hello Zoë" });
    assert.equal(result.content.length, 1);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    const run = result._meta["skillvm/execution"];
    assert.match(run.execution_id, /^exec_/);
    assert.equal(run.status, "success");
});

test("a call without output gives what was printed", async () => {
    const result = await call("sleepy", { steps: 1 });
    assert.deepEqual(result.content, [{ type: "text", text: "step 0\n" }]);
    assert.equal(result.structuredContent, undefined);
});

test("a failure says why", async () => {
    const result = await call("broken", {});
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /3[^]*standard error:\nthis is why\n[^]*before the end/);
});

test("an unknown tool is an error of the request", async () => {
    await assert.rejects(call("nobody", {}), (error) => error.code === -32602);
});

test("progress tells status and lines as they come", async () => {
    const seen = [];
    const result = await call("sleepy", { steps: 4 }, { onprogress: (p) => seen.push(p) });
    assert.equal(result.isError, false);
    const text = seen.map((p) => p.message).join("\n");
    assert.match(text, /running/);
    for (let step = 0; step < 4; step++) assert.match(text, new RegExp(`^step ${step}$`, "m"));
    assert.ok(seen.length >= 2, `${seen.length} notifications`);
    for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
});

test("a call that is given up ends in the machine too", async () => {
    const stop = new AbortController();
    const begun = new Promise((resolve, reject) => {
        call("sleepy", { steps: 500 }, {
            signal: stop.signal,
            onprogress: (p) => /step/.test(p.message) && resolve(),
        }).then(() => reject(new Error("it was answered")), reject);
    });
    await begun;
    stop.abort("enough");
    await until(async () => (await daemon.executions("sleepy"))[0].status === "cancelled");
    assert.deepEqual(await session.client.ping(), {});
});

test("calls run side by side, and others are answered meanwhile", async () => {
    const began = Date.now();
    const calls = Array.from({ length: 6 }, () => call("sleepy", { steps: 40 }));
    assert.deepEqual(await session.client.ping(), {});
    assert.equal((await session.client.listTools()).tools.length, 7);
    assert.equal((await call("greet", { name: "a" })).isError, false);
    assert.ok(Date.now() - began < 48000);
    for (const result of await Promise.all(calls)) assert.match(result.content[0].text, /step 39/);
    // One after the other they would take 48 seconds and more.
    assert.ok(Date.now() - began < 47900, `${Date.now() - began} ms`);
});

test("SKILL.md can be listed and read", async () => {
    const { resources } = await session.client.listResources();
    const greet = resources.find((resource) => resource.name === "greet");
    assert.equal(greet.uri, "skill://greet/1.0.0/SKILL.md");
    assert.equal(greet.mimeType, "text/markdown");
    for (const uri of [greet.uri, "skill://greet/latest/SKILL.md"]) {
        const { contents } = await session.client.readResource({ uri });
        assert.equal(contents.length, 1);
        assert.equal(contents[0].uri, uri);
        assert.match(contents[0].text, /^---\nname: "greet"\n/);
        assert.match(contents[0].text, /\n---\n\n# Greet\n\nGive a name/);
    }
    const { resourceTemplates } = await session.client.listResourceTemplates();
    assert.deepEqual(resourceTemplates.map((template) => template.uriTemplate),
                     ["skill://{name}/{version}/SKILL.md", "execution://{id}/files/{+path}"]);
});

test("files are linked and can be read", async () => {
    const result = await call("maker", {});
    const links = result.content.filter((item) => item.type === "resource_link");
    assert.deepEqual(links.map((link) => link.name).sort(), ["bytes.bin", "deep/a text.md"]);
    for (const link of links) {
        const { contents } = await session.client.readResource({ uri: link.uri });
        if (link.name === "bytes.bin")
            assert.deepEqual([...Buffer.from(contents[0].blob, "base64")],
                             Array.from({ length: 256 }, (_, i) => i));
        else
            assert.equal(contents[0].text, "# Größe\n");
    }
});

test("what is no resource is not found", async () => {
    const uris = ["skill://nobody/1/SKILL.md", "file:///etc/passwd",
                  "execution://exec_00000000000000000000000000000000/files/a",
                  "execution://x/files/../../../health"];
    for (const uri of uris)
        await assert.rejects(session.client.readResource({ uri }),
                             (error) => error.code === -32002, uri);
});

test("a new skill is announced", async () => {
    const folder = await mkdtemp(join(tmpdir(), "skillvm-mcp-skill."));
    let tools = 0, resources = 0;
    session.client.setNotificationHandler(ToolListChangedNotificationSchema, () => { tools++; });
    session.client.setNotificationHandler(ResourceListChangedNotificationSchema, () => { resources++; });
    await cp(join(here, "skills", "greet"), folder, { recursive: true });
    const text = await readFile(join(folder, "SKILL.md"), "utf8");
    await writeFile(join(folder, "SKILL.md"), text.replace("name: greet", "name: welcome"));
    await daemon.push(folder);
    await until(() => tools > 0 && resources > 0);
    const list = (await session.client.listTools()).tools;
    assert.ok(list.some((tool) => tool.name === "welcome"));
    await rm(folder, { recursive: true });
});

test("closing the client ends it, and what it ran", async () => {
    const other = await connect(daemon);
    const pid = other.transport.pid;
    const running = new Promise((resolve, reject) => {
        other.client.callTool({ name: "sleepy", arguments: { steps: 500 } }, undefined,
                              { onprogress: (p) => /step/.test(p.message) && resolve() })
            .then(() => reject(new Error("it was answered")), reject);
    });
    await running;
    await other.client.close();
    await until(() => { try { return !process.kill(pid, 0); } catch { return true; } });
    await until(async () => (await daemon.executions("sleepy"))[0].status === "cancelled");
    await sleep(10);
    assert.equal(other.log(), "");
});
