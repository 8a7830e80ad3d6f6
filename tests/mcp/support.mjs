// SPDX-License-Identifier: Apache-2.0
// A daemon with a stand-in for its machines, and clients of `skillvm mcp` that belongs to it.
import { spawn, execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFile, mkdtemp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as nodeTest } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const run = promisify(execFile);
const build = process.env.SKILLVM_BUILD;
export const here = process.env.SKILLVM_TESTS;
export const skillvm = join(build, "bin", "skillvm");

// A test that ends, one way or the other.
export const test = (name, ...rest) =>
    nodeTest(name, { timeout: 300000, ...(rest.length > 1 ? rest[0] : {}) }, rest.at(-1));

export class Daemon {
    program = skillvm;

    // The folder of one that is not started.
    async prepare() {
        this.folder = await mkdtemp(join(tmpdir(), "skillvm-mcp."));
        this.socket = join(this.folder, "socket");
        this.data = join(this.folder, "data");
        this.share = join(this.folder, "share");
        await mkdir(this.share);
        for (const [name, ending, content] of [["vmlinux", "", "boot"], ["python", ".erofs", "restore"]]) {
            const digest = createHash("sha256").update(content).digest("hex");
            await writeFile(join(this.share, name + ending), content);
            await writeFile(join(this.share, `${name}.sha256`), `${digest}  ${name}${ending}\n`);
        }
        this.env = { ...process.env, SKILLVM_SOCKET: this.socket, SKILLVM_DATA: this.data };
    }

    // Programs of its own, of which the machine is the stand-in: they can start a daemon.
    async prepareAlone() {
        await this.prepare();
        const bin = join(this.folder, "bin");
        await mkdir(bin);
        for (const name of ["skillvm", "skillvmd"])
            await copyFile(join(build, "bin", name), join(bin, name));
        await copyFile(join(here, "host_vmm.py"), join(bin, "skillvm-vmm"));
        await symlink(join(here, "host_jail.py"), join(bin, "skillvm-jail"));
        this.env.SKILLVM_SHARE = this.share;
        this.program = join(bin, "skillvm");
    }

    async start(...options) {
        await this.prepare();
        this.process = spawn(
            join(build, "bin", "skillvmd"),
            ["--socket", this.socket, "--data", this.data, "--share", this.share,
             "--vmm", join(here, "host_vmm.py"), "--jail", join(here, "host_jail.py"), "--max-running", "8", "--grace", "2", ...options],
            { env: this.env, stdio: ["ignore", "ignore", "pipe"] });
        this.log = "";
        this.process.stderr.on("data", (data) => { this.log += data; });
        this.exited = new Promise((resolve) => this.process.on("exit", resolve));
        for (let i = 0; ; i++) {
            const up = await this.skillvm("health").then(() => true, () => false);
            if (up) break;
            if (i === 1800) throw new Error(`no daemon: ${this.log}`);
            await sleep(50);
        }
        for (const name of ["greet", "sleepy", "broken", "maker"])
            await this.push(join(here, "skills", name));
    }

    async stop() {
        this.process.kill("SIGTERM");
        await this.exited;
        await rm(this.folder, { recursive: true, force: true });
    }

    // The standard output of a command.
    async skillvm(...args) {
        return (await run(this.program, args, { env: this.env })).stdout;
    }

    push(folder) {
        return this.skillvm("skill", "push", folder);
    }

    async executions(skill) {
        const page = await this.skillvm("exec", "list", "--skill", skill, "-o", "json");
        return JSON.parse(page).executions;
    }
}

// The official client with a `skillvm mcp` of its own.
export async function connect(daemon, ...args) {
    const client = new Client({ name: "tests", version: "1" }, { capabilities: {} });
    const transport = new StdioClientTransport({
        command: daemon.program ?? skillvm, args: ["mcp", ...args], env: daemon.env, stderr: "pipe",
    });
    let log = "";
    transport.stderr.on("data", (data) => { log += data; });
    await client.connect(transport);
    return { client, transport, log: () => log };
}

// `skillvm mcp` spoken to line by line, for what the client library never does.
export class Raw {
    constructor(daemon, ...options) {
        this.process = spawn(daemon.program, ["mcp", ...options], { env: daemon.env, stdio: "pipe" });
        this.exited = new Promise((resolve) =>
            this.process.on("exit", (code, signal) => resolve({ code, signal })));
        this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
        this.log = "";
        this.process.stderr.on("data", (data) => { this.log += data; });
        // It may end before it has read everything.
        this.process.stdin.on("error", () => {});
    }

    send(message) {
        const text = typeof message === "string" ? message : JSON.stringify(message);
        this.process.stdin.write(text + "\n");
    }

    // The next message; undefined at the end.
    async next() {
        const { value } = await this.lines.next();
        return value === undefined ? undefined : JSON.parse(value);
    }

    async initialize(protocolVersion) {
        this.send({ jsonrpc: "2.0", id: "i", method: "initialize",
                    params: { protocolVersion, capabilities: {}, clientInfo: { name: "raw", version: "1" } } });
        const answer = await this.next();
        this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
        return answer.result;
    }
}

// What condition gives once it is true; an error after a minute and a half.
export async function until(condition) {
    for (let i = 0; i < 1800; i++) {
        const value = await condition();
        if (value) return value;
        await sleep(50);
    }
    throw new Error("it did not come true in time");
}
