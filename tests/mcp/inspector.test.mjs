// SPDX-License-Identifier: Apache-2.0
// `skillvm mcp` as the command line of the official inspector sees it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";

import { Daemon, skillvm, test } from "./support.mjs";

const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.stop());

// It looks for its package.json from the working directory.
const folder = resolve("node_modules/@modelcontextprotocol/inspector-cli/build");

async function inspect(...args) {
    const { stdout } = await promisify(execFile)(
        process.execPath, ["cli.js", "--cli", skillvm, "mcp", ...args],
        { cwd: folder, env: daemon.env });
    return JSON.parse(stdout);
}

test("tools/list", async () => {
    const { tools } = await inspect("--method", "tools/list");
    assert.equal(tools.length, 7);
});

test("tools/call", async () => {
    const result = await inspect("--method", "tools/call", "--tool-name", "greet",
                                 "--tool-arg", "name=Ada", "--tool-arg", "times=2");
    assert.deepEqual(result.structuredContent, { greeting: "hello Ada hello Ada" });
});

test("tools/call that fails", async () => {
    const result = await inspect("--method", "tools/call", "--tool-name", "broken");
    assert.equal(result.isError, true);
});

test("resources", async () => {
    const { resources } = await inspect("--method", "resources/list");
    assert.equal(resources.length, 4);
    const { contents } = await inspect("--method", "resources/read", "--uri", resources[0].uri);
    assert.match(contents[0].text, /^---\nname: /);
    const { resourceTemplates } = await inspect("--method", "resources/templates/list");
    assert.equal(resourceTemplates.length, 2);
});
