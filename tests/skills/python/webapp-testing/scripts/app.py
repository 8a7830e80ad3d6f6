"""The application under test."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEMS = []


class App(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="application/json"):
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/":
            rows = "".join(f"<li>{item['name']}</li>" for item in ITEMS)
            self.answer(200, f"<h1>Items</h1><ul>{rows}</ul>", "text/html; charset=utf-8")
        elif self.path == "/api/items":
            self.answer(200, json.dumps(ITEMS))
        else:
            self.answer(404, '{"error": "not found"}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "name" not in body:
            self.answer(422, '{"error": "name is missing"}')
            return
        ITEMS.append({"id": len(ITEMS) + 1, **body})
        self.answer(201, json.dumps(ITEMS[-1]))

    def log_message(self, format, *args):
        print("app:", format % args, file=sys.stderr)


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), App).serve_forever()
