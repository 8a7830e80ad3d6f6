# SPDX-License-Identifier: Apache-2.0
"""A client of the skillvm API in one file, with nothing but the standard library (Python 3.9).

    from skillvm import Client

    client = Client()                      # the daemon that the command line would ask
    client.push_skill("examples/word-counter")
    result = client.run("word-counter", input={"text": "one two two"})
    print(result.status, result.output)
    client.download(result, "out")

A `Client` holds no connection: every call opens one of its own, so one client serves any number
of threads. Whatever the server refuses raises `APIError`; a skill that fails does not: the
result says so.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import shutil
import socket
import tarfile
import uuid
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Iterator, Mapping, Union
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["APIError", "Client", "Event", "Result"]

_CHUNK = 64 * 1024
_EVENT_MAX = 64 * 1024 * 1024

PathLike = Union[str, "os.PathLike[str]"]


class APIError(Exception):
    """The server refused a request, or none answered (status 0)."""

    def __init__(self, status: int, code: str, message: str, retry_after: float | None = None):
        super().__init__(f"{message} ({code})" if code else message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after  # seconds, where the server names a time


@dataclass
class Result:
    """How an execution ended; `raw` has every field of the answer."""

    execution_id: str
    status: str  # success, failed, timeout, cancelled
    output: Any = None
    files: list[str] = field(default_factory=list)
    logs: str = ""
    stdout: str = ""
    stderr: str = ""
    error: str | None = None
    exit_code: int | None = None
    duration_ms: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    image: str | None = None  # in which it ran; raw["image_reason"] says why
    machine: str | None = None  # fresh or reused
    session: dict[str, Any] | None = None  # id, committed, bytes, files, reason
    raw: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        return self.status == "success"

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Result:
        return cls(
            execution_id=raw["execution_id"],
            status=raw["status"],
            output=raw.get("output"),
            files=list(raw.get("files_list") or []),
            logs=raw.get("logs") or "",
            stdout=raw.get("stdout") or "",
            stderr=raw.get("stderr") or "",
            error=raw.get("error"),
            exit_code=raw.get("exit_code"),
            duration_ms=raw.get("duration_ms") or 0,
            usage=dict(raw.get("usage") or {}),
            image=raw.get("image"),
            machine=raw.get("machine"),
            session=raw.get("session"),
            raw=dict(raw),
        )


@dataclass
class Event:
    """One server-sent event: `status`, `stdout`, `stderr` or `result`."""

    name: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """What the skill wrote, of `stdout` and `stderr`; else ""."""
        return self.data.get("data", "") if self.name in ("stdout", "stderr") else ""

    @property
    def result(self) -> Result | None:
        return Result.from_json(self.data) if self.name == "result" else None


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float | None):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _default_server() -> str:
    env = os.environ
    for name in ("SKILLVM_SOCKET", "SKILLVM_SERVER", "SKILLBOX_SERVER_URL"):
        if env.get(name):
            return env[name]
    data = env.get("SKILLVM_DATA")
    if not data:
        state = env.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        data = os.path.join(state, "skillvm")
    return os.path.join(data, "skillvm.sock")


class Client:
    """Talks to one server.

    server: "http://host:port", "https://…", or the path of a unix socket; by default
        $SKILLVM_SOCKET, $SKILLVM_SERVER, $SKILLBOX_SERVER_URL, else the local daemon's socket.
    key: the tenant's key; by default $SKILLVM_API_KEY, for an URL $SKILLBOX_API_KEY, else none.
    timeout: seconds without any byte from the server before a call fails; None waits.
    """

    def __init__(self, server: str | None = None, key: str | None = None,
                 timeout: float | None = None):
        self.server = server or _default_server()
        self.key = key or os.environ.get("SKILLVM_API_KEY")
        if not self.key and self.server.startswith(("http://", "https://")):
            self.key = os.environ.get("SKILLBOX_API_KEY")
        self.timeout = timeout
        self._prefix = ""
        if "://" in self.server:
            parts = urlsplit(self.server)
            if parts.scheme not in ("http", "https", "unix") or (
                    parts.scheme != "unix" and not parts.hostname):
                raise ValueError(f"not an http, https or unix URL: {self.server}")
            self._prefix = parts.path.rstrip("/") if parts.scheme != "unix" else ""

    # Health

    def health(self) -> bool:
        """True when the server answers."""
        return self._json("GET", "/health").get("status") == "ok"

    def ready(self) -> dict[str, Any]:
        """What /ready says, also when it is not ready."""
        try:
            return self._json("GET", "/ready")
        except APIError as error:
            if error.status == 503 and error.message.startswith("{"):
                return json.loads(error.message)
            raise

    # Skills

    def push_skill(self, path: PathLike, replace: bool = False) -> dict[str, Any]:
        """Registers a skill: a folder with SKILL.md, or a zip or tar file.

        With replace it takes the place of what its version has, which is forgotten.
        """
        where = "/v1/skills?replace=true" if replace else "/v1/skills"
        with _open_skill(path) as archive:
            return self._json("POST", where, archive, "application/octet-stream")

    def validate_skill(self, path: PathLike) -> dict[str, Any]:
        """Checks a skill as push_skill would, and registers nothing."""
        with _open_skill(path) as archive:
            return self._json("POST", "/v1/skills/validate", archive, "application/octet-stream")

    def skills(self) -> list[dict[str, Any]]:
        return self._json("GET", "/v1/skills")

    def skill(self, name: str, version: str = "latest") -> dict[str, Any]:
        return self._json("GET", f"/v1/skills/{_segment(name)}/{_segment(version)}")

    def delete_skill(self, name: str, version: str) -> None:
        self._json("DELETE", f"/v1/skills/{_segment(name)}/{_segment(version)}")

    # Executions

    def run(self, skill: str | None = None, *, timeout: Any = None, **request: Any) -> Result:
        """Runs a registered skill, or code, and waits for its end.

        Keyword arguments are the fields of POST /v1/executions: version, input, env, script,
        module, args, files, timeout (of the skill), limits, image, fresh, session_id, network,
        idempotency_key; for start also retries; and in place of a skill code and lang ("python", the default, or "bash").
        """
        body = _request(request, skill=skill, timeout=timeout)
        return Result.from_json(self._json("POST", "/v1/executions", body))

    def run_archive(self, path: PathLike, *, timeout: Any = None, **request: Any) -> Result:
        """Runs a skill that is not registered: a folder, zip or tar file."""
        with _open_skill(path) as archive:
            parts = [("request", None, json.dumps(_request(request, timeout=timeout)).encode()),
                     ("skill_archive", "skill", archive)]
            body, kind = _multipart(parts)
            return Result.from_json(self._json("POST", "/v1/executions", body, kind))

    def start(self, skill: str | None = None, *, timeout: Any = None, **request: Any) -> str:
        """Begins an execution and returns its id at once."""
        body = _request(request, skill=skill, timeout=timeout)
        body["async"] = True
        return self._json("POST", "/v1/executions", body)["execution_id"]

    def stream(self, skill: str | None = None, *, timeout: Any = None,
               **request: Any) -> Iterator[Event]:
        """Runs a skill, or code, and yields its events as they happen, the result last."""
        body = _request(request, skill=skill, timeout=timeout)
        return self._events("POST", "/v1/executions", body)

    def events(self, execution: str | Result) -> Iterator[Event]:
        """The events of an execution from its beginning, then live."""
        return self._events("GET", f"/v1/executions/{_id(execution)}/events")

    def execution(self, execution: str | Result) -> dict[str, Any]:
        """The execution as it stands."""
        return self._json("GET", f"/v1/executions/{_id(execution)}")

    def wait(self, execution: str | Result) -> Result:
        """Waits for the end of an execution."""
        for event in self.events(execution):
            if event.name == "result":
                return Result.from_json(event.data)
        raise APIError(0, "", f"the events of {_id(execution)} ended without a result")

    def executions(self, *, skill: str | None = None, status: str | None = None,
                   page: int = 50) -> Iterator[dict[str, Any]]:
        """All executions, the newest first, fetched page by page."""
        query: dict[str, Any] = {"limit": page}
        if skill:
            query["skill"] = skill
        if status:
            query["status"] = status
        while True:
            answer = self._json("GET", "/v1/executions?" + urlencode(query))
            yield from answer["executions"]
            if not answer.get("next_cursor"):
                return
            query["cursor"] = answer["next_cursor"]

    def logs(self, execution: str | Result) -> str:
        """Standard output and standard error so far, in the order they came."""
        with self._call("GET", f"/v1/executions/{_id(execution)}/logs") as answer:
            return answer.read().decode("utf-8", "replace")

    def cancel(self, execution: str | Result) -> None:
        """Asks an execution to end; its result then says `cancelled`."""
        self._json("DELETE", f"/v1/executions/{_id(execution)}")

    # Files

    def upload(self, file: PathLike | BinaryIO, name: str | None = None) -> dict[str, Any]:
        """Uploads an input file; its "id" goes into `files` of an execution.

        The content is streamed: a file of any allowed size costs no memory.
        """
        if hasattr(file, "read"):
            if not name:
                raise ValueError("an open file needs a name")
            return self._upload(file, name)
        with open(file, "rb") as opened:
            return self._upload(opened, name or os.path.basename(os.fspath(file)))

    def _upload(self, opened: BinaryIO, name: str) -> dict[str, Any]:
        return self._json("POST", "/v1/files?" + urlencode({"name": name}), opened,
                          "application/octet-stream")

    def files(self) -> list[dict[str, Any]]:
        return self._json("GET", "/v1/files")

    def delete_file(self, file_id: str) -> None:
        self._json("DELETE", f"/v1/files/{_segment(file_id)}")

    def download(self, execution: str | Result, folder: PathLike) -> list[str]:
        """Fetches the files an execution left into a folder, and returns their paths in it."""
        if isinstance(execution, Result) and not execution.files:
            return []
        with self._call("GET", f"/v1/executions/{_id(execution)}/files") as answer:
            return _extract(answer, Path(folder))

    def download_file(self, execution: str | Result, path: str, to: PathLike | BinaryIO) -> None:
        """Fetches one file an execution left, by its path in `files`."""
        self._fetch(f"/v1/executions/{_id(execution)}/files/{quote(path, safe='/')}", to)

    def _fetch(self, where: str, to: PathLike | BinaryIO) -> None:
        with self._call("GET", where) as answer:
            if hasattr(to, "write"):
                shutil.copyfileobj(answer, to, _CHUNK)
                return
            with open(to, "wb") as out:
                shutil.copyfileobj(answer, out, _CHUNK)

    # Sessions

    def sessions(self) -> list[dict[str, Any]]:
        """What runs with a session_id keep for each other, the one changed last first."""
        return self._json("GET", "/v1/sessions")

    def session(self, session_id: str) -> dict[str, Any]:
        """One session, with its files in "files_list"."""
        return self._json("GET", f"/v1/sessions/{_segment(session_id)}")

    def session_file(self, session_id: str, path: str, to: PathLike | BinaryIO) -> None:
        """Fetches one file of a session."""
        self._fetch(f"/v1/sessions/{_segment(session_id)}/files/{quote(path, safe='/')}", to)

    def delete_session_file(self, session_id: str, path: str) -> None:
        self._json("DELETE", f"/v1/sessions/{_segment(session_id)}/files/{quote(path, safe='/')}")

    def delete_session(self, session_id: str) -> None:
        self._json("DELETE", f"/v1/sessions/{_segment(session_id)}")

    # Tools

    def tools(self, format: str = "openai") -> Any:
        """Tool definitions of the skills: "openai", "anthropic" or "mcp"."""
        return self._json("GET", "/v1/tools?" + urlencode({"format": format}))

    def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None,
                  **request: Any) -> Result:
        """Calls a tool by the name its definition has."""
        body = _request(request, name=name)
        body["arguments"] = dict(arguments or {})
        return Result.from_json(self._json("POST", "/v1/tools/call", body))

    # Below: HTTP

    def _connect(self) -> http.client.HTTPConnection:
        if self.server.startswith("unix://"):
            return _UnixConnection(self.server[len("unix://"):], self.timeout)
        if "://" not in self.server:
            return _UnixConnection(self.server, self.timeout)
        parts = urlsplit(self.server)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=self.timeout)

    @contextmanager
    def _call(self, method: str, path: str, body: Any = None, kind: str | None = None,
              accept: str | None = None) -> Iterator[http.client.HTTPResponse]:
        headers = {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if accept:
            headers["Accept"] = accept
        if isinstance(body, (dict, list)):
            body, kind = json.dumps(body).encode(), "application/json"
        if kind:
            headers["Content-Type"] = kind
        length = _length(body)
        if body is not None and length is not None:
            headers["Content-Length"] = str(length)
        connection = self._connect()
        try:
            try:
                _send(connection, method, self._prefix + path, body, headers, length)
                answer = connection.getresponse()
            except OSError as error:
                raise APIError(0, "unreachable", f"{self.server}: {error}") from error
            if not 200 <= answer.status < 300:
                raise _error(answer)
            yield answer
        finally:
            connection.close()

    def _json(self, method: str, path: str, body: Any = None, kind: str | None = None) -> Any:
        with self._call(method, path, body, kind) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def _events(self, method: str, path: str, body: Any = None) -> Iterator[Event]:
        with self._call(method, path, body, accept="text/event-stream") as answer:
            yield from _parse_events(answer)


def _segment(text: str) -> str:
    return quote(text, safe="")


def _id(execution: str | Result) -> str:
    return _segment(execution.execution_id if isinstance(execution, Result) else execution)


def _request(request: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    body = {name: value for name, value in request.items() if value is not None}
    body.update((name, value) for name, value in more.items() if value is not None)
    return body


def _length(body: Any) -> int | None:
    """How many bytes a body has; None when only its end will tell."""
    if body is None:
        return 0
    if isinstance(body, bytes):
        return len(body)
    try:
        at = body.tell()
        end = body.seek(0, os.SEEK_END)
        body.seek(at)
        return end - at
    except (AttributeError, OSError):
        return None


def _send(connection: http.client.HTTPConnection, method: str, path: str, body: Any,
          headers: dict[str, str], length: int | None) -> None:
    try:
        if body is not None and length is None:
            chunks = iter(lambda: body.read(_CHUNK), b"")
            connection.request(method, path, chunks, headers, encode_chunked=True)
        else:
            connection.request(method, path, body, headers)
    except BrokenPipeError:
        pass  # refused before the body was read: the answer says why


def _error(answer: http.client.HTTPResponse) -> APIError:
    text = answer.read(1 << 20).decode("utf-8", "replace").strip()
    code, message = "", text or answer.reason
    try:
        body = json.loads(text)
        if isinstance(body, dict) and "error" in body:
            code, message = str(body["error"]), str(body.get("message") or body["error"])
    except ValueError:
        pass
    retry = answer.headers.get("Retry-After")
    return APIError(answer.status, code, message,
                    float(retry) if retry and retry.isdigit() else None)


def _parse_events(lines: Iterable[bytes]) -> Iterator[Event]:
    name, data, size = "message", [], 0
    for line in lines:
        line = line.rstrip(b"\r\n")
        if not line:
            if data:
                yield Event(name, json.loads(b"\n".join(data)))
            name, data, size = "message", [], 0
            continue
        key, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if key == b"event":
            name = value.decode("utf-8", "replace")
        elif key == b"data":
            size += len(value)
            if size > _EVENT_MAX:
                raise APIError(0, "", f"an event is larger than {_EVENT_MAX} bytes")
            data.append(value)


@contextmanager
def _open_skill(path: PathLike) -> Iterator[BinaryIO]:
    """A skill as an archive: a folder is zipped on the way, a file is what it is."""
    root = Path(path)
    if not root.is_dir():
        with open(root, "rb") as archive:
            yield archive
        return
    if not (root / "SKILL.md").is_file():
        raise FileNotFoundError(f"no SKILL.md in {root}")
    zipped = io.BytesIO()
    # A zip's times begin in 1980; some images give their files none.
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as out:
        for file in sorted(root.rglob("*")):
            relative = file.relative_to(root)
            if file.is_file() and not any(part in (".git", "__pycache__")
                                          for part in relative.parts):
                out.write(file, relative.as_posix())
    zipped.seek(0)
    yield zipped


def _multipart(parts: list[tuple[str, str | None, Any]]) -> tuple[BinaryIO, str]:
    boundary = uuid.uuid4().hex
    body = io.BytesIO()
    for name, file_name, content in parts:
        where = f'; filename="{file_name}"' if file_name else ""
        body.write(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{where}\r\n'
                   "\r\n".encode())
        if isinstance(content, bytes):
            body.write(content)
        else:
            shutil.copyfileobj(content, body, _CHUNK)
        body.write(b"\r\n")
    body.write(f"--{boundary}--\r\n".encode())
    body.seek(0)
    return body, f"multipart/form-data; boundary={boundary}"


def _extract(stream: BinaryIO, folder: Path) -> list[str]:
    """Unpacks regular files of a tar.gz below a folder; a path that leaves it is an error."""
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    paths = []
    with tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for member in archive:
            if not member.isfile():
                continue
            target = (root / member.name).resolve()
            if root not in target.parents:
                raise APIError(0, "", f"a file would leave {folder}: {member.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            source = archive.extractfile(member)
            assert source is not None
            with open(target, "wb") as out:
                shutil.copyfileobj(source, out, _CHUNK)
            paths.append(target.relative_to(root).as_posix())
    return paths
