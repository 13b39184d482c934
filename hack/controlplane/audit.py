"""What service accounts asked of the API server, and whether they were allowed to: read from its audit log."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
"""


@dataclass(frozen=True)
class Call:
    """One request, as RBAC sees it."""

    user: str
    verb: str
    group: str
    resource: str
    """With the subresource, if any; the path of a request that is about no resource."""
    namespace: str
    name: str
    code: int
    allowed: bool
    """By RBAC. What admission refuses is allowed."""

    def __str__(self) -> str:
        what = f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")
        return f"{self.user}: {what} {self.namespace}/{self.name}: {self.code}"


class AuditTrail:
    """An audit log, read bit by bit."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0

    def news(self) -> list[Call]:
        """The calls since this was asked last."""
        with self._log.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [_call(json.loads(line)) for line in whole.splitlines()]


def _call(event: dict[str, Any]) -> Call:
    about = event.get("objectRef") or {}
    part = f"/{about['subresource']}" if about.get("subresource") else ""
    return Call(
        user=event["user"]["username"],
        verb=event["verb"],
        group=about.get("apiGroup", ""),
        resource=about["resource"] + part if "resource" in about else event["requestURI"].partition("?")[0],
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        allowed=(event.get("annotations") or {}).get("authorization.k8s.io/decision") != "forbid",
    )
