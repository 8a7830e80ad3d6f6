# SPDX-License-Identifier: Apache-2.0
"""HTTP to a daemon in which every answer is held against api/openapi.yaml, field by field."""

import http.client
import json
import re
import socket
from collections import namedtuple

import jsonschema
import yaml

import stand_in

Answer = namedtuple("Answer", "status headers body json")


def _strict(schema):
    """An OpenAPI 3.0 schema as JSON Schema in which an object has only what is described."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "allOf" in schema:  # an object in parts: put together
        whole = {"type": "object", "properties": {}, "required": []}
        for part in schema["allOf"]:
            part = _strict(part)
            whole["properties"].update(part.get("properties", {}))
            whole["required"] += part.get("required", [])
            whole["additionalProperties"] = part.get("additionalProperties", False)
        return whole
    result = {key: _strict(value) for key, value in schema.items()
              if key not in ("nullable", "description", "example")}
    if "properties" in schema:
        result["properties"] = {name: _strict(value)
                                for name, value in schema["properties"].items()}
        result.setdefault("additionalProperties", False)
    if schema.get("nullable"):
        if "enum" in result:
            result["enum"] = result["enum"] + [None]
        result = {"anyOf": [result, {"type": "null"}]}
    return result


class Description:
    """What openapi.yaml says of an answer, and which of its answers were seen."""

    def __init__(self):
        text = (stand_in.SOURCE / "api/openapi.yaml").read_text()
        self.document = yaml.safe_load(text)
        self.seen = set()
        self.operations = {}
        for path, item in self.document["paths"].items():
            pattern = re.sub(r"\\\{path\\\}", "(.+)", re.escape(path))
            pattern = re.sub(r"\\\{[a-z_]+\\\}", "([^/]+)", pattern)
            for method, operation in item.items():
                if method != "parameters":
                    self.operations[method.upper(), path] = (re.compile(pattern + "$"), operation)

    def resolve(self, value):
        """The same without references."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            found = self.document
            for name in value["$ref"].lstrip("#/").split("/"):
                found = found[name]
            return self.resolve(found)
        return {key: self.resolve(item) for key, item in value.items()}

    def find(self, method, path):
        # A path without parameters goes before one with.
        for (verb, name), (pattern, operation) in sorted(self.operations.items(),
                                                         key=lambda o: o[0][1].count("{")):
            if verb == method and pattern.match(path):
                return name, operation
        return None, None

    def check(self, method, path, answer):
        name, operation = self.find(method, path.partition("?")[0])
        if not operation:
            return
        where = f"{method} {path} -> {answer.status}"
        responses = operation["responses"]
        assert str(answer.status) in responses, f"{where} is not described: {answer.body[:300]}"
        self.seen.add((method, name, answer.status))
        content = self.resolve(responses[str(answer.status)]).get("content", {})
        kind = answer.headers.get("Content-Type", "").partition(";")[0]
        if not content:
            assert not answer.body, f"{where} has a body: {answer.body[:300]}"
            return
        assert kind in content or "*/*" in content, f"{where} has the type {kind}"
        if kind == "application/json" and kind in content:
            try:
                jsonschema.validate(answer.json, _strict(content[kind]["schema"]))
            except jsonschema.ValidationError as error:
                at = "/".join(map(str, error.absolute_path))
                raise AssertionError(f"{where}: {at}: {error.message[:300]}") from error

    def unseen(self):
        """Successful answers that are described and were never seen."""
        return sorted(f"{method} {name} -> {status}"
                      for (method, name), (_, operation) in self.operations.items()
                      for status in operation["responses"]
                      if status.startswith("2") and (method, name, int(status)) not in self.seen)


class Session:
    """Requests as a stranger would write them."""

    def __init__(self, description, socket_path=None, address=None, key=None):
        self.description = description
        self.socket_path = socket_path
        self.address = address  # (host, port) where socket_path is None
        self.key = key

    def _connect(self):
        if self.address:
            return http.client.HTTPConnection(*self.address, timeout=60)
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(60)
        connection.sock.connect(self.socket_path)
        return connection

    def request(self, method, path, body=None, headers=None, key=None):
        headers = dict(headers or {})
        if key or self.key:
            headers.setdefault("Authorization", f"Bearer {key or self.key}")
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection = self._connect()
        try:
            connection.request(method, path, body, headers)
            got = connection.getresponse()
            data = got.read()
        finally:
            connection.close()
        value = None
        if got.headers.get("Content-Type", "").startswith("application/json"):
            value = json.loads(data)
        answer = Answer(got.status, got.headers, data, value)
        self.description.check(method, path, answer)
        return answer

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    def form(self, path, parts, **more):
        """multipart/form-data: parts is a list of (name, file name or None, bytes)."""
        body = b""
        for name, file_name, content in parts:
            where = f'; filename="{file_name}"' if file_name else ""
            body += (f'--edge\r\nContent-Disposition: form-data; name="{name}"{where}\r\n\r\n'
                     .encode() + content + b"\r\n")
        return self.post(path, body + b"--edge--\r\n",
                         headers={"Content-Type": "multipart/form-data; boundary=edge"}, **more)
