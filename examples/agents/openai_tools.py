#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets a model call skills as functions, in the shape of OpenAI's API.

    openai_tools.py "What is 2026 in Roman numerals?"

The tools come from GET /v1/tools?format=openai, and each call the model asks for becomes a POST
/v1/tools/call. The model here is a stand-in that needs no network: scripted_model() answers as
POST https://…/v1/chat/completions would. Put a real one in its place; nothing else changes.
"""

import http.client
import json
import os
import re
import socket
import sys


class Skillvm(http.client.HTTPConnection):
    """HTTP to the daemon's unix socket."""

    def __init__(self):
        super().__init__("localhost", timeout=600)
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        self.path = os.environ.get("SKILLVM_SOCKET") or os.path.join(state, "skillvm/skillvm.sock")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        """The status and the JSON of an answer."""
        headers = {"Content-Type": "application/json"} if body else {}
        self.request(method, path, json.dumps(body) if body else None, headers)
        answer = self.getresponse()
        return answer.status, json.load(answer)


def call_tool(skillvm, call):
    """Runs what one entry of an assistant message's tool_calls asks for; the tool message."""
    function = call["function"]
    # The arguments are JSON in a string, and may stay that.
    status, result = skillvm.ask(
        "POST",
        "/v1/tools/call",
        {"name": function["name"], "arguments": function["arguments"]},
    )
    if status != 200:
        # An argument is missing, no such tool, too much to do: the model can do better.
        content = {"error": result["message"]}
    elif result["status"] != "success":
        content = {"error": result["error"], "stderr": result["stderr"][-2000:]}
    elif result["output"] is not None:
        content = result["output"]
    else:
        content = result["stdout"]
    return {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(content)}


def scripted_model(messages, tools):
    """Stands in for a model: calls the first tool with the number of the question."""
    last = messages[-1]
    if last["role"] == "tool":
        return {"role": "assistant", "content": f"The tool says {last['content']}."}
    tool = tools[0]["function"]
    number = re.search(r"-?\d+", last["content"])
    argument = next(iter(tool["parameters"]["properties"]))
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "arguments": json.dumps({argument: int(number.group()) if number else 0}),
                },
            }
        ],
    }


def converse(skillvm, question, model=scripted_model, only=None):
    """Asks the model until it answers without a tool. All messages."""
    _, tools = skillvm.ask("GET", "/v1/tools?format=openai")
    tools = [tool for tool in tools if only is None or tool["function"]["name"] == only]
    messages = [{"role": "user", "content": question}]
    for _ in range(10):
        answer = model(messages, tools)
        messages.append(answer)
        if not answer.get("tool_calls"):
            break
        messages.extend(call_tool(skillvm, call) for call in answer["tool_calls"])
    return messages


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} QUESTION [TOOL]")
    for message in converse(Skillvm(), *sys.argv[1:2], only=(sys.argv[2:] or [None])[0]):
        for call in message.get("tool_calls", []):
            print(f"{message['role']}: {call['function']['name']}({call['function']['arguments']})")
        if message["content"] is not None:
            print(f"{message['role']}: {message['content']}")
