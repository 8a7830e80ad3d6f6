# SPDX-License-Identifier: Apache-2.0
"""Tenants of a daemon, made by its operator."""

import json

from harness import check_equal, check_success, shorten

JSON = {"Content-Type": "application/json"}


def make_tenant(daemon, name, **limits):
    """A key of a new tenant's."""
    made = daemon.client.request(
        "POST", "/v1/admin/tenants", json.dumps({"name": name, "limits": limits}), JSON
    )
    check_equal(made.status, 201, f"tenant {name}: {shorten(made.body)}")
    said = {"name": name, "tenant": made.json["id"]}
    key = daemon.client.request("POST", "/v1/admin/keys", json.dumps(said), JSON)
    check_equal(key.status, 201, f"a key of {name}: {shorten(key.body)}")
    return key.json["key"]


class Tenant:
    """A new one, which asks by a key of its own."""

    def __init__(self, daemon, name, **limits):
        self.client = daemon.client
        self.headers = {"Authorization": f"Bearer {make_tenant(daemon, name, **limits)}"}

    def ask(self, method, path, body=None, **headers):
        return self.client.request(method, path, body, {**self.headers, **headers})

    def push(self, archive):
        """Its name."""
        pushed = self.ask("POST", "/v1/skills", archive, **{"Content-Type": "application/zip"})
        check_equal(pushed.status, 201, f"a push: {shorten(pushed.body)}")
        return pushed.json["name"]

    def start(self, skill, timeout, **fields):
        """An execution's path."""
        said = json.dumps({"skill": skill, "async": True, "timeout": timeout} | fields)
        answer = self.ask("POST", "/v1/executions", said, **JSON)
        check_equal(answer.status, 202, f"an execution: {shorten(answer.body)}")
        return answer.headers["Location"]

    def execute(self, skill, **fields):
        """The result, whatever its status."""
        said = json.dumps({"skill": skill, "timeout": 300} | fields)
        answer = self.ask("POST", "/v1/executions", said, **JSON)
        check_equal(answer.status, 200, f"an execution: {shorten(answer.body)}")
        return answer.json

    def run(self, skill):
        return check_success(self.execute(skill))
