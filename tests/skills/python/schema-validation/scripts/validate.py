#!/usr/bin/env python3
"""A JSON Schema validator of its own; see SKILL.md."""

import json
import re
import sys
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None

TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float),
    "integer": int,
}


def is_type(value, name):
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])


def resolve(root, reference):
    for part in reference.removeprefix("#").split("/")[1:]:
        root = root[part.replace("~1", "/").replace("~0", "~")]
    return root


def violations(value, schema, root, path="$"):
    if isinstance(schema, bool):
        if not schema:
            yield path, "nothing is allowed here"
        return
    if "$ref" in schema:
        yield from violations(value, resolve(root, schema["$ref"]), root, path)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, name) for name in types):
        yield path, f"is not of type {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield path, f"is none of {json.dumps(schema['enum'])}"
    if "const" in schema and value != schema["const"]:
        yield path, f"is not {json.dumps(schema['const'])}"
    if isinstance(value, dict):
        yield from object_violations(value, schema, root, path)
    elif isinstance(value, list):
        yield from array_violations(value, schema, root, path)
    elif isinstance(value, str):
        yield from text_violations(value, schema, path)
    elif is_type(value, "number"):
        if value < schema.get("minimum", value):
            yield path, f"is less than {schema['minimum']}"
        if value > schema.get("maximum", value):
            yield path, f"is more than {schema['maximum']}"
    for name, wanted in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
        if name in schema:
            fitting = sum(not any(violations(value, s, root)) for s in schema[name])
            if not wanted(fitting):
                yield path, f"fits {fitting} of {name}"
    if "not" in schema and not any(violations(value, schema["not"], root)):
        yield path, "fits what it must not"


def object_violations(value, schema, root, path):
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            yield path, f"has no {name}"
    for name, member in value.items():
        below = properties.get(name, schema.get("additionalProperties", True))
        yield from violations(member, below, root, f"{path}.{name}")


def array_violations(value, schema, root, path):
    if len(value) < schema.get("minItems", 0):
        yield path, f"has fewer than {schema['minItems']} items"
    if schema.get("uniqueItems") and any(item in value[:i] for i, item in enumerate(value)):
        yield path, "has an item twice"
    for i, item in enumerate(value):
        yield from violations(item, schema.get("items", True), root, f"{path}[{i}]")


def text_violations(value, schema, path):
    if len(value) < schema.get("minLength", 0):
        yield path, f"is shorter than {schema['minLength']}"
    if len(value) > schema.get("maxLength", len(value)):
        yield path, f"is longer than {schema['maxLength']}"
    if not re.search(schema.get("pattern", ""), value):
        yield path, f"does not match {schema['pattern']}"


request = json.load(sys.stdin)
schema = request.get("schema")
if schema is None:
    schema = json.loads((Path(__file__).parents[1] / "assets/order.schema.json").read_text())
found = [f"{path} {what}" for path, what in violations(request["document"], schema, schema)]
print(json.dumps({"valid": not found, "violations": found}))
