#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the tools that `skillvm mcp` serves, or calls one, as an agent does.

    mcp_tools.py
    mcp_tools.py NAME '{"argument": 1}'

A client of the Model Context Protocol in its smallest form: one message a line, to and from a
process of its own.
"""

import json
import subprocess
import sys


class Server:
    def __init__(self):
        self.process = subprocess.Popen(
            ["skillvm", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.requests = 0
        self.ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "mcp_tools.py", "version": "1"},
            },
        )
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params=None):
        """The result of a request. Progress is shown while it is waited for."""
        self.requests += 1
        self.send({"id": self.requests, "method": method, "params": params or {}})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("method") == "notifications/progress":
                print("…", message["params"]["message"], file=sys.stderr)
            elif message.get("id") == self.requests:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']['message']}")
                return message["result"]
        sys.exit("skillvm mcp ended")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main(arguments):
    server = Server()
    if not arguments:
        for tool in server.ask("tools/list")["tools"]:
            print(f"{tool['name']}: {tool['description']}")
    else:
        result = server.ask(
            "tools/call",
            {
                "name": arguments[0],
                "arguments": json.loads(arguments[1]) if len(arguments) > 1 else {},
                "_meta": {"progressToken": "call"},
            },
        )
        for item in result["content"]:
            print(item["text"].rstrip("\n") if item["type"] == "text" else item["uri"])
        if result["isError"]:
            sys.exit(1)
    server.close()


if __name__ == "__main__":
    main(sys.argv[1:])
