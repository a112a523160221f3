"""As much of a W&B server as its client needs, on loopback: runs, files, artifacts, resuming, reports.

It keeps what it is told, so that a test can ask what arrived; it checks no key and draws nothing.  What it
answers is what wandb 0.31's client waits for, found by asking it; `unknown` names what it could not answer.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ENTITY = "somebody"
KEY = "k" * 40


@dataclass
class StubRun:
    """A run as the server knows it."""

    facts: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: dict[int, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    exit_code: int | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [self.history[offset] for offset in sorted(self.history)]


@dataclass
class StubArtifact:
    """An artifact as the server knows it."""

    facts: dict[str, Any]
    files: dict[str, bytes] = field(default_factory=dict)
    is_committed: bool = False


class Stub:
    """The server's state.

    Attributes:
        url: Its address.
        runs: Id to run.
        artifacts: In the order they were made.
        views: What was saved as reports.
        bodies: Everything that was sent, undone of compression.
        operations: Names of what was asked, in order.
        unknown: Those of them that it has no answer to.
        is_silent: While set, it takes requests and answers none.
    """

    def __init__(self) -> None:
        self.url = ""
        self.runs: dict[str, StubRun] = {}
        self.artifacts: list[StubArtifact] = []
        self.views: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.operations: list[str] = []
        self.unknown: list[str] = []
        self.is_silent = threading.Event()
        self.lock = threading.Lock()
        self._client_ids: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What leads a client here."""
        return {"WANDB_BASE_URL": self.url, "WANDB_API_KEY": KEY}

    def run(self, end_of_id: str) -> StubRun:
        """Return the run whose id ends so."""
        (found,) = [run for run_id, run in self.runs.items() if run_id.endswith(end_of_id)]
        return found

    def answer(self, operation: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Return what a GraphQL operation gets."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", operation)
        handler = getattr(self, f"_on_{words.lower()}", None)
        if handler is None:
            self.unknown.append(operation)
            return {}
        answer: dict[str, Any] = handler(variables)
        return answer

    def stream(self, run_id: str, body: dict[str, Any]) -> None:
        """Take a part of a run's rows and summary."""
        run = self.runs.setdefault(run_id, StubRun())
        for name, part in body.get("files", {}).items():
            lines = [json.loads(line) for line in part["content"]]
            if name == "wandb-history.jsonl":
                run.history.update(enumerate(lines, start=part["offset"]))
            elif name == "wandb-summary.json":
                run.summary = lines[-1]
        if body.get("complete"):
            run.exit_code = body["exitcode"]

    def store(self, path: str, content: bytes) -> None:
        """Take an upload: `run/<id>/<name>` or `artifact/<index>/<name>`."""
        kind, owner, name = path.split("/", 2)
        files = self.runs[owner].files if kind == "run" else self.artifacts[int(owner)].files
        files[urllib.parse.unquote(name)] = content

    def _upload(self, kind: str, owner: str | int, name: str) -> str:
        return f"{self.url}/storage/{kind}/{owner}/{urllib.parse.quote(name)}"

    def _on_viewer(self, _: dict[str, Any]) -> dict[str, Any]:
        teams = {"edges": [{"node": {"name": ENTITY}}]}
        return {
            "viewer": {
                "id": "1",
                "entity": ENTITY,
                "username": ENTITY,
                "name": ENTITY,
                "email": "",
                "admin": False,
                "flags": "{}",
                "apiKeys": {"edges": []},
                "teams": teams,
            }
        }

    def _on_server_features_query(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"serverInfo": {"features": []}}

    def _on_org_feature_flags(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"organization": {"featureFlags": []}}

    def _on_organization_core_weave_organization_id(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"entity": {"organization": {"coreWeaveOrganizationId": None}}}

    def _on_run_resume_status(self, variables: dict[str, Any]) -> dict[str, Any]:
        run_id = variables["name"]
        entity = {"id": "2", "name": ENTITY}
        model = {"id": "3", "name": variables["project"], "entity": entity, "bucket": None}
        run = self.runs.get(run_id)
        if run is not None:
            model["bucket"] = {
                "id": run_id,
                "name": run_id,
                "displayName": run.facts.get("displayName"),
                "summaryMetrics": json.dumps(run.summary),
                "config": json.dumps(run.config),
                "tags": run.facts.get("tags") or [],
                "historyLineCount": len(run.history),
                "eventsLineCount": 0,
                "logLineCount": 0,
                "historyTail": json.dumps([json.dumps(row) for row in run.rows[-1:]]),
                "eventsTail": "[]",
                "wandbConfig": json.dumps({"t": 1}),
            }
        return {"model": model}

    def _on_upsert_bucket(self, variables: dict[str, Any]) -> dict[str, Any]:
        run_id = variables["name"]
        is_new = run_id not in self.runs
        run = self.runs.setdefault(run_id, StubRun())
        run.facts |= {name: value for name, value in variables.items() if value is not None}
        if variables.get("config"):
            run.config = json.loads(variables["config"])
        project = {"id": "3", "name": variables["project"], "entity": {"id": "2", "name": ENTITY}}
        bucket = {
            "id": run_id,
            "name": run_id,
            "displayName": variables.get("displayName"),
            "description": None,
            "config": json.dumps(run.config),
            "sweepName": None,
            "historyLineCount": len(run.history),
            "project": project,
        }
        return {"upsertBucket": {"bucket": bucket, "inserted": is_new}}

    def _on_run_stopped_status(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"project": {"run": {"stopped": False}}}

    def _on_create_run_files(self, variables: dict[str, Any]) -> dict[str, Any]:
        run_id = variables["run"]
        files = [
            {"name": name, "uploadUrl": self._upload("run", run_id, name)} for name in variables["files"]
        ]
        return {"createRunFiles": {"runID": run_id, "uploadHeaders": [], "files": files}}

    def _on_mark_run_files_uploaded(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"markRunFilesUploaded": {"success": True}}

    def _on_artifact_type(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"project": {"artifact": None}}

    def _on_create_artifact(self, variables: dict[str, Any]) -> dict[str, Any]:
        given = variables.get("input", variables)
        index = len(self.artifacts)
        self.artifacts.append(StubArtifact(given))
        if given.get("clientID"):
            self._client_ids[given["clientID"]] = str(index)
        sequence = {"id": f"sequence-{index}", "latestArtifact": None}
        artifact = {"id": str(index), "state": "PENDING", "artifactSequence": sequence}
        return {"createArtifact": {"artifact": artifact}}

    def _on_create_artifact_manifest(self, variables: dict[str, Any]) -> dict[str, Any]:
        given = variables.get("input", variables)
        index, name = given["artifactID"], given.get("fileName") or given.get("name")
        file = {
            "id": "4",
            "name": name,
            "displayName": name,
            "uploadUrl": self._upload("artifact", index, str(name)),
            "uploadHeaders": [],
        }
        return {"createArtifactManifest": {"artifactManifest": {"id": "5", "file": file}}}

    def _on_create_artifact_files(self, variables: dict[str, Any]) -> dict[str, Any]:
        given = variables.get("input", variables)
        specs = given.get("artifactFiles") or given.get("artifactFileSpecs") or []
        nodes = [
            {
                "id": f"{spec['artifactID']}-{spec['name']}",
                "name": spec["name"],
                "displayName": spec["name"],
                "uploadUrl": self._upload("artifact", spec["artifactID"], spec["name"]),
                "uploadHeaders": [],
                "uploadMultipartUrls": None,
                "storagePath": spec["name"],
                "artifact": {"id": spec["artifactID"]},
            }
            for spec in specs
        ]
        return {"createArtifactFiles": {"files": {"edges": [{"node": node} for node in nodes]}}}

    def _on_commit_artifact(self, variables: dict[str, Any]) -> dict[str, Any]:
        given = variables.get("input", variables)
        artifact = self.artifacts[int(given["artifactID"])]
        artifact.is_committed = True
        return {"commitArtifact": {"artifact": {"id": given["artifactID"], "digest": "0"}}}

    def _on_client_id_mapping(self, variables: dict[str, Any]) -> dict[str, Any]:
        return {"clientIDMapping": {"serverID": self._client_ids[variables["clientID"]]}}

    def _on_get_default_entity(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"viewer": {"id": "1", "entity": ENTITY}}

    def _on_get_projects(self, _: dict[str, Any]) -> dict[str, Any]:
        page = {"__typename": "PageInfo", "endCursor": None, "hasNextPage": False}
        return {"models": {"pageInfo": page, "edges": []}}

    def _on_create_project(self, variables: dict[str, Any]) -> dict[str, Any]:
        given = variables["input"]
        project = {
            "id": "3",
            "name": given["name"],
            "entityName": given["entityName"],
            "description": None,
            "access": None,
            "views": None,
        }
        return {"result": {"project": project, "model": project, "inserted": True}}

    def _on_upsert_view(self, variables: dict[str, Any]) -> dict[str, Any]:
        self.views.append(variables)
        view = {
            "id": "VmlldzoxMjM=",
            "type": variables.get("type"),
            "name": variables.get("name") or "report",
            "displayName": variables.get("displayName"),
            "description": variables.get("description"),
            "project": {"id": "3", "name": variables.get("projectName"), "entityName": ENTITY},
            "spec": variables.get("spec"),
            "updatedAt": "2026-01-01T00:00:00",
            "createdAt": "2026-01-01T00:00:00",
            "user": {"name": ENTITY, "username": ENTITY, "userInfo": {}},
        }
        return {"upsertView": {"view": view, "inserted": True}}


def _handler_of(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # a client that has ended
                super().handle()

        def do_GET(self) -> None:
            self._send({})

        def do_PUT(self) -> None:
            body = self._body()
            with stub.lock:
                stub.store(self.path.removeprefix("/storage/"), body)
            self._send({})

        def do_POST(self) -> None:
            raw, answer = self._body(), {}
            with stub.lock:
                if self.path.startswith("/files/"):
                    stub.stream(urllib.parse.unquote(self.path.split("/")[4]), json.loads(raw))
                    answer = {"exitcode": None, "limits": {}}
                elif self.path == "/graphql":
                    body = json.loads(raw)
                    operation = body.get("operationName") or _operation_in(body["query"])
                    stub.operations.append(operation)
                    answer = {"data": stub.answer(operation, body.get("variables") or {})}
            self._send(answer)  # anything else is how the client itself fares

        def _body(self) -> bytes:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            with stub.lock:
                stub.bodies.append(self.path.encode() + b"\n" + body)
            return body

        def _send(self, answer: dict[str, Any]) -> None:
            while stub.is_silent.is_set():
                time.sleep(0.05)
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _operation_in(query: str) -> str:
    """Return the name of a query that is sent without one beside it."""
    words = query.replace("(", " ").replace("{", " ").split()
    return words[1] if len(words) > 1 and words[0] in ("query", "mutation") else ""


@contextmanager
def wandb_stub() -> Iterator[Stub]:
    """Serve on a port of its own until the end."""
    stub = Stub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(stub))
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.is_silent.clear()
        server.shutdown()
        server.server_close()
