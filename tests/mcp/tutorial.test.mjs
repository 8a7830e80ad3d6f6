// SPDX-License-Identifier: Apache-2.0
// The commands of docs/tutorial.md, and the examples of agents.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { after, before } from "node:test";
import { promisify } from "node:util";

import { Daemon, here, skillvm, test } from "./support.mjs";

const run = promisify(execFile);
const root = join(here, "..", "..");
const daemon = new Daemon();
before(() => daemon.start());
after(() => daemon.stop());

const env = () => ({ ...daemon.env, PATH: `${dirname(skillvm)}:${process.env.PATH}` });

test("every command of the tutorial does what it says", async () => {
    const { stdout } = await run(join(here, "tutorial.py"), [root], { env: env() });
    assert.match(stdout, /^1\d blocks/);
});

test("the example of an agent tells of failures and of files", async () => {
    const agent = join(root, "examples", "agents", "mcp_tools.py");
    await assert.rejects(run(agent, ["broken"], { env: env() }),
                         (error) => error.code === 1 && /this is why/.test(error.stdout));
    await assert.rejects(run(agent, ["nobody"], { env: env() }),
                         (error) => error.code === 1 && /unknown tool/.test(error.stderr));
    const { stdout, stderr } = await run(agent, ["maker"], { env: env() });
    assert.match(stdout, /^\(no output\)\nexecution:.*\nexecution:/);
    assert.match(stderr, /running/);
});

test("the example of function calling tells the model what failed", async () => {
    const agent = join(root, "examples", "agents", "openai_tools.py");
    const { stdout } = await run(agent, ["Greet 7", "greet"], { env: env() });
    assert.match(stdout, /^assistant: greet\(\{"name": 7\}\)\ntool: \{"error": /m);
});
