# SPDX-License-Identifier: Apache-2.0
"""Tenants of a daemon, made by its operator."""

import json

from harness import check_equal, shorten

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
