"""As much of a Databricks workspace as a bundle's deployment asks, on 127.0.0.1: it keeps what it
is given, and records every request, so that tests can say what a deployment would have made."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.http_server import HttpAnswer, HttpRequest, http_server, json_answer

Answer = tuple[int, dict[str, Any] | bytes]
_MISSING: Answer = (
    404,
    {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "there is no such thing"},
)
#: Collections whose members are made by POST, and the field that names a member.
_COLLECTIONS = {
    "unity-catalog/schemas": "full_name",
    "unity-catalog/volumes": "full_name",
    "lakeview/dashboards": "dashboard_id",
    "alerts": "id",
}


@dataclass(frozen=True)
class Request:
    """One request; `path` is without `/api/<version>/`."""

    method: str
    path: str
    query: dict[str, str]
    body: dict[str, Any]


@dataclass
class FakeWorkspace:
    """What the workspace holds."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    unknown: list[Request] = field(default_factory=list)
    files: dict[str, bytes | None] = field(default_factory=dict)
    jobs: dict[int, dict[str, Any]] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    acls: dict[str, Any] = field(default_factory=dict)
    scopes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: count(1001))

    def bodies(self, method: str, path: str) -> list[dict[str, Any]]:
        """The bodies of all requests of a kind."""
        return [
            request.body
            for request in self.requests
            if (request.method, request.path) == (method, path)
        ]

    def answer(self, request: Request, raw: bytes) -> Answer:
        """What the workspace says."""
        head, _, rest = request.path.partition("/")
        known = {
            "jobs": self._job,
            "workspace": self._tree,
            "workspace-files": self._file,
            "secrets": self._secret,
        }
        if head in known:
            return known[head](request, rest, raw)
        if request.path in ("preview/scim/v2/Me", ".well-known/databricks-config", "telemetry-ext"):
            return 200, {
                "id": "1",
                "userName": "somebody@example.com",
                "groups": [],
                "numSuccess": 1,
                "errors": [],
            }
        if "permissions" in request.path.split("/")[:2]:
            return self._acl(request)
        for collection, name in _COLLECTIONS.items():
            if request.path == collection or request.path.startswith(f"{collection}/"):
                return self._member(request, collection, name)
        self.unknown.append(request)
        return _MISSING

    def _job(self, request: Request, action: str, raw: bytes) -> Answer:
        body = request.body
        number = int(body.get("job_id") or request.query.get("job_id") or 0)
        if action == "create":
            number = next(self.ids)
            self.jobs[number] = body
            return 200, {"job_id": number}
        if action in ("runs/get", "runs/get-output"):
            state = {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"}
            return 200, {"run_id": 1, "run_page_url": self.url, "state": state, "tasks": []}
        if action == "runs/list":
            return 200, {"runs": []}
        if number not in self.jobs:
            return _MISSING
        if action == "get":
            return 200, {"job_id": number, "settings": self.jobs[number]}
        if action in ("reset", "update"):
            self.jobs[number] = body["new_settings"]
        if action == "delete":
            del self.jobs[number]
        return 200, {"run_id": 1} if action == "run-now" else {}

    def _tree(self, request: Request, action: str, raw: bytes) -> Answer:
        path = request.query.get("path") or request.body.get("path", "")
        if action == "mkdirs":
            self.files[path] = None
        elif action == "delete":
            self.files = {
                name: data
                for name, data in self.files.items()
                if not f"{name}/".startswith(f"{path}/")
            }
        elif not any(f"{name}/".startswith(f"{path}/") for name in self.files):
            return _MISSING
        elif action == "export":
            return 200, self.files[path] or b""
        kind = "DIRECTORY" if self.files.get(path) is None else "FILE"
        return 200, {"path": path, "object_type": kind, "object_id": 7, "resource_id": "7"}

    def _file(self, request: Request, rest: str, raw: bytes) -> Answer:
        path = "/" + rest.removeprefix("import-file/").lstrip("/")
        if request.method == "POST":
            if path in self.files and request.query.get("overwrite") != "true":
                return 409, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": path}
            self.files[path] = raw
            return 200, {}
        found = self.files.get(path)
        return _MISSING if found is None else (200, found)

    def _secret(self, request: Request, action: str, raw: bytes) -> Answer:
        scope = request.body.get("scope") or request.query.get("scope", "")
        if action == "scopes/create":
            self.scopes[scope] = []
        elif action == "scopes/list":
            return 200, {
                "scopes": [{"name": name, "backend_type": "DATABRICKS"} for name in self.scopes]
            }
        elif action == "scopes/delete":
            del self.scopes[scope]
        elif action == "acls/put":
            acl = {"principal": request.body["principal"], "permission": request.body["permission"]}
            self.scopes[scope] = [
                item for item in self.scopes[scope] if item["principal"] != acl["principal"]
            ] + [acl]
        elif action == "acls/list":
            return 200, {"items": self.scopes.get(scope, [])}
        elif action == "acls/delete":
            principal = request.body["principal"]
            self.scopes[scope] = [
                item for item in self.scopes[scope] if item["principal"] != principal
            ]
        return 200, {}

    def _acl(self, request: Request) -> Answer:
        if request.path.startswith("unity-catalog/"):
            held = self.acls.setdefault(request.path, {"privilege_assignments": []})
            for change in request.body.get("changes", []):
                kept = [
                    row
                    for row in held["privilege_assignments"]
                    if row["principal"] != change["principal"]
                ]
                added = (
                    [{"principal": change["principal"], "privileges": change["add"]}]
                    if change.get("add")
                    else []
                )
                held["privilege_assignments"] = kept + added
            return 200, held
        if request.method in ("PUT", "PATCH"):
            self.acls[request.path] = request.body["access_control_list"]
        rows = [
            {**{key: value for key, value in row.items() if key != "permission_level"},
             "all_permissions": [{"permission_level": row["permission_level"], "inherited": False}]}
            for row in self.acls.get(request.path, [])
        ]  # fmt: skip
        return 200, {"object_id": f"/{request.path}", "access_control_list": rows}

    def _member(self, request: Request, collection: str, name: str) -> Answer:
        rest = request.path[len(collection) :].strip("/")
        if not rest and request.method == "POST":
            names = [request.body.get(part, "") for part in ("catalog_name", "schema_name", "name")]
            key = (
                ".".join(part for part in names if part)
                if name == "full_name"
                else f"{next(self.ids):032x}"
            )
            extra = {
                name: key,
                "etag": "1",
                "lifecycle_state": "ACTIVE",
                "owner": "somebody@example.com",
            }
            self.members[f"{collection}/{key}"] = {**request.body, **extra}
            return 200, self.members[f"{collection}/{key}"]
        key, _, part = rest.partition("/")
        held = self.members.get(f"{collection}/{key}")
        if held is None:
            return _MISSING
        if part == "published":
            return 200, {
                "display_name": held.get("display_name", ""),
                "warehouse_id": held.get("warehouse_id", ""),
            }
        if request.method == "PATCH":
            held.update(request.body)
        elif request.method == "DELETE":
            del self.members[f"{collection}/{key}"]
        return 200, held


def _request_of(came: HttpRequest) -> Request:
    parts = urlsplit(came.path)
    path = unquote(parts.path).lstrip("/")
    path = path.split("/", 2)[2] if path.startswith("api/") else path
    has_json = "json" in (came.headers.get("Content-Type") or "")
    is_file = path.startswith("workspace-files/")
    body = json.loads(came.body) if has_json and not is_file and came.body else {}
    return Request(came.method, path, dict(parse_qsl(parts.query)), body)


@contextmanager
def fake_workspace() -> Iterator[FakeWorkspace]:
    """A workspace for the time of the block."""
    workspace = FakeWorkspace()
    lock = threading.Lock()

    def answer(came: HttpRequest) -> HttpAnswer:
        request = _request_of(came)
        with lock:
            workspace.requests.append(request)
            status, content = workspace.answer(request, came.body)
        if isinstance(content, bytes):
            reply = HttpAnswer(status, content, {"Content-Type": "application/octet-stream"})
        else:
            reply = json_answer(status, content)
        return reply._replace(headers={**reply.headers, "X-Databricks-Org-Id": "4242"})

    with http_server(answer) as workspace.url:
        yield workspace
