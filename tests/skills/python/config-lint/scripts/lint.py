"""Finds what is wrong with YAML files; see SKILL.md."""

import json
import os
import re
from pathlib import Path

import yaml

TRUTHY = re.compile(r"^(yes|no|on|off)$", re.IGNORECASE)


def walk(node, found, path=""):
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                found(key, "duplicate-key", f"{path}{key.value}")
            seen.add(key.value)
            if re.search("password|secret", str(key.value)) and isinstance(value, yaml.ScalarNode) and \
                    not value.value.startswith("${"):
                found(value, "secret", f"{path}{key.value}")
            if key.value == "image" and isinstance(value, yaml.ScalarNode) and \
                    (":" not in value.value or value.value.endswith(":latest")):
                found(value, "latest", value.value)
            walk(value, found, f"{path}{key.value}.")
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            walk(item, found, f"{path}{i}.")
    elif isinstance(node, yaml.ScalarNode) and not node.style and TRUTHY.match(node.value):
        found(node, "truthy", node.value)


def lint(path):
    findings = []

    def found(node, rule, what):
        findings.append({"file": path.name, "line": node.start_mark.line + 1, "rule": rule, "what": what})

    try:
        for document in yaml.compose_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            walk(document, found)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1
        findings.append({"file": path.name, "line": line, "rule": "syntax", "what": error.problem})
    return findings


findings = []
fixed = Path(os.environ["SANDBOX_FILES_DIR"]) / "fixed"
fixed.mkdir()
for path in sorted(Path(os.environ["SANDBOX_INPUT_DIR"]).glob("*.y*ml")):
    here = lint(path)
    findings += here
    if not here:
        documents = list(yaml.safe_load_all(path.read_text()))
        (fixed / path.name).write_text(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True))
print(json.dumps({"findings": findings, "fixed": {p.name: p.read_text() for p in fixed.iterdir()}}, ensure_ascii=False))
