# SPDX-License-Identifier: Apache-2.0
"""What an execution's result holds, and what it means."""

import io
import json
import pathlib
import tarfile

from harness import bash_skill, case, check, check_equal, check_in, long_case, python_skill, skill_zip

FIELDS = (
    "execution_id status output files_url files_list logs duration_ms error exit_code signal "
    "stdout stderr truncated usage phases_ms skill snapshot profile machine"
).split()
PHASES = "queue take inject run collect".split()
EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


@case
def result_has_every_field(world):
    result = world.client.run_ok(python_skill("print('hello')", name="hello"))
    check_equal([name for name in FIELDS if name not in result], [], "missing fields")
    check_equal(sorted(result["phases_ms"]), sorted(PHASES), "phases")
    for name, value in result["phases_ms"].items():
        check(isinstance(value, (int, float)) and value >= 0, f"phase {name} is {value!r}")
    check(result["phases_ms"]["take"] > 0, "taking a machine took no time")
    check(result["snapshot"], "no snapshot was named")
    check_equal(result["stdout"], "hello\n", "stdout")
    check_equal(result["stderr"], "", "stderr")
    check_equal(result["exit_code"], 0, "exit_code")
    check_equal(result["signal"], None, "signal")
    check_equal(result["error"], None, "error")
    check_equal(result["truncated"], False, "truncated")
    check_equal(result["skill"]["name"], "hello", "skill.name")
    check(result["execution_id"].startswith("exec_"), "execution_id")
    check_equal(len(result["execution_id"]), 37, "length of execution_id")
    check(result["usage"]["peak_memory_bytes"] > 1 << 20, "peak_memory_bytes")
    check(result["usage"]["cpu_ms"] >= 0, "cpu_ms")
    check(0 < result["duration_ms"] < 60000, "duration_ms")


@case
def result_is_kept(world):
    result = world.client.run_ok(python_skill("print('kept')"))
    answer = world.client.get("/v1/executions/" + result["execution_id"])
    check_equal(answer.status, 200, "HTTP status")
    for name in ("status", "output", "stdout", "exit_code", "files_list", "skill"):
        check_equal(answer.json[name], result[name], name)


@case
def output_file_wins_over_stdout(world):
    client = world.client
    source = """
import json, os
print('{"from": "stdout"}')
json.dump({"from": "file"}, open(os.environ["SANDBOX_OUTPUT"], "w"))
"""
    check_equal(client.run_ok(python_skill(source))["output"], {"from": "file"}, "output")
    check_equal(
        client.run_ok(python_skill("print(' [1, 2.5, null] ')"))["output"],
        [1, 2.5, None],
        "output from stdout",
    )
    check_equal(client.run_ok(python_skill("print('1 2')"))["output"], None, "two values")
    check_equal(client.run_ok(python_skill("print('text')"))["output"], None, "plain text")
    source = """
import os
open(os.environ["SANDBOX_OUTPUT"], "w").write("not json")
print('"from stdout"')
"""
    check_equal(client.run_ok(python_skill(source))["output"], "from stdout", "bad output.json")


@case
def artifacts_come_back_byte_for_byte(world):
    source = r"""
import os, pathlib
out = pathlib.Path(os.environ["SANDBOX_FILES_DIR"])
(out / "deep/er").mkdir(parents=True)
(out / "deep/er/bytes.bin").write_bytes(bytes(range(256)) * 4096)
(out / "empty").write_bytes(b"")
(out / "na me-\u00e9.txt").write_text("named\n")
os.symlink("/etc/passwd", out / "link")
os.mkfifo(out / "fifo")
pathlib.Path("/sandbox/out/beside.txt").write_text("beside the folder\n")
"""
    result = world.client.run_ok(python_skill(source))
    names = sorted(f["path"] if isinstance(f, dict) else f for f in result["files_list"])
    check_equal(len(names), 4, f"number of files in {names}")
    answer = world.client.get(result["files_url"])
    check_equal(answer.status, 200, "HTTP status of the files")
    with tarfile.open(fileobj=io.BytesIO(answer.body), mode="r:gz") as tar:
        members = {m.name.removeprefix("./"): m for m in tar if not m.isdir()}
        check_equal(sorted(members), names, "names in the archive")
        for member in members.values():
            check(member.isreg(), f"{member.name} is not a regular file")
        deep = next(m for name, m in members.items() if name.endswith("deep/er/bytes.bin"))
        check_equal(tar.extractfile(deep).read(), bytes(range(256)) * 4096, "bytes.bin")


@long_case
def examples_run(world):
    def folder(name):
        root = EXAMPLES / name
        return skill_zip(
            {
                str(path.relative_to(root)): path.read_bytes()
                for path in sorted(root.rglob("*"))
                if path.is_file() and "__pycache__" not in path.parts
            }
        )

    text = (EXAMPLES / "texts/the-lighthouse.txt").read_text(encoding="utf-8")
    want = json.loads((EXAMPLES / "texts/the-lighthouse.counts.json").read_text())
    result = world.client.run_ok(folder("word-counter"), input={"text": text})
    check_equal(result["output"], want, "counts")
    result = world.client.run_ok(folder("data-analysis"))
    check_equal(result["output"]["rows"], 36, "rows")
    check_equal(
        [o["label"] for o in result["output"]["columns"]["old_bridge"]["outliers"]],
        ["2023-11"],
        "outliers",
    )
    result = world.client.run_ok(folder("text-stats-bash"), input="one two\nthree")
    check_equal(
        result["output"], {"bytes": 13, "lines": 1, "words": 3, "longest_line": 7}, "bash"
    )
    result = world.client.run(folder("failing"))
    check_equal((result["status"], result["exit_code"]), ("failed", 42), "failing")


@case
def registered_skills_run_by_name(world):
    archive = python_skill("print('registered')", name="by-name", front="version: 1.2.3\n")
    answer = world.client.request(
        "POST", "/v1/skills", archive, {"Content-Type": "application/zip"}
    )
    check_equal(answer.status, 201, "HTTP status")
    check_equal((answer.json["name"], answer.json["version"]), ("by-name", "1.2.3"), "skill")
    result = world.client.run_ok(skill="by-name")
    check_equal(result["stdout"], "registered\n", "stdout")
    check_equal(result["skill"]["version"], "1.2.3", "version")
    check_equal(result["skill"]["digest"], answer.json["digest"], "digest")
    check_equal(world.client.run_ok(skill="by-name", version="1.2.3")["status"], "success", "")
    answer = world.client.execute(skill="by-name", version="9.9.9")
    # A known skill in an unknown version is an execution that failed (docs/protocol.md).
    check_equal((answer.status, answer.json["status"]), (200, "failed"), "unknown version")
    check_in("9.9.9", answer.json["error"], "error")


@case
def events_arrive_while_it_runs(world):
    source = """
import sys, time
print("first", flush=True)
time.sleep(10)
sys.stderr.write("second\\n")
"""
    seen = []
    with world.client.events(python_skill(source)) as events:
        seen.extend(events)
    kinds = [event for event, _, _ in seen]
    check_equal(kinds[-1], "result", "last event")
    check("status" in kinds, "no status event")
    first = next(at for event, data, at in seen if event == "stdout")
    last = seen[-1][2]
    check(last - first > 1.0, f"stdout came only {last - first:.2f} s before the result")
    text = "".join(data["data"] for event, data, _ in seen if event == "stdout")
    check_equal(text, "first\n", "stdout events")
    text = "".join(data["data"] for event, data, _ in seen if event == "stderr")
    check_equal(text, "second\n", "stderr events")
    check_equal(seen[-1][1]["status"], "success", "status")
    check_equal(seen[-1][1]["stdout"], "first\n", "stdout of the result")


@case
def bytes_that_are_not_utf8(world):
    source = r"printf 'a\xff\xfeb\xc3\n'; printf '\xe2\x82' >&2"
    result = world.client.run_ok(bash_skill(source))
    check_equal(result["stdout"], "a\ufffd\ufffdb\ufffd\n", "stdout")
    check("\ufffd" in result["stderr"], "stderr")


@case
def half_a_character_in_json(world):
    """Python writes such escapes for file names that are not UTF-8; a strict reader must cope."""
    source = """
import json, os
print(json.dumps({"name": os.fsdecode(b"a\\xffb")}))
"""
    answer = world.client.execute(python_skill(source))
    check_equal(answer.status, 200, "HTTP status")
    output = answer.json["output"]
    check(output is None or output == {"name": "a\ufffdb"}, f"output {output!r}")


@case
def refused_push_leaves_nothing(world):
    """Another content under a name and version that is taken is refused and not kept."""

    def push(text):
        archive = python_skill(text, name="taken", front="version: 1.0.0\n")
        return world.client.request(
            "POST", "/v1/skills", archive, {"Content-Type": "application/zip"}
        )

    def objects():
        return sorted(path for path in (world.daemon.data / "objects").rglob("*"))

    check_equal(push("print(1)").status, 201, "HTTP status of the first push")
    before = objects()
    check(push("print(1)").status in (200, 201), "the same content again")
    answer = push("print(2)")
    check_equal(answer.status, 409, "HTTP status of other content")
    check_in("taken", answer.json["message"], "message")
    check_equal(objects(), before, "stored objects")
