"""What the API server says to a VLMDeployment, without storing it: one kept connection, strict server-side dry-run."""

import http.client
import json
import re
import ssl
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane import ControlPlane

CRD_FILE = Path(__file__).parents[3] / "crds" / "vlmdeployments.vlm.dev.yaml"
CRD_NAME = "vlmdeployments.vlm.dev"

_UNKNOWN = re.compile(r'unknown field "([^"]*)"')
_NOT_CHECKED = "some validation rules were not checked"


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with an object, in the words of the API server."""

    field: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether an object is accepted, what it then looks like, and otherwise why not."""

    accepted: bool
    stored: dict[str, Any]
    complaints: tuple[Complaint, ...] = ()


class Server:
    """The API server as a judge."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        tls = ssl.create_default_context(cafile=str(control_plane.ca_file))
        tls.load_cert_chain(str(control_plane.pki / "admin.crt"), str(control_plane.pki / "admin.key"))
        where = urllib.parse.urlsplit(control_plane.server)
        self._connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=tls, timeout=30)
        self._path = f"/apis/vlm.dev/v1alpha1/namespaces/{namespace}/vlmdeployments?dryRun=All&fieldValidation=Strict"

    def judge(self, manifest: dict[str, Any]) -> Verdict:
        """Ask what would happen if `manifest` were created."""
        self._connection.request("POST", self._path, json.dumps(manifest), {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        if answer.status == http.client.CREATED:
            return Verdict(accepted=True, stored=body)
        if answer.status not in {http.client.BAD_REQUEST, http.client.UNPROCESSABLE_ENTITY}:
            raise AssertionError(body)
        return Verdict(accepted=False, stored={}, complaints=_complaints(body))


def _complaints(status: dict[str, Any]) -> tuple[Complaint, ...]:
    causes = [
        Complaint(cause.get("field", "").removeprefix("."), cause["message"])
        for cause in status.get("details", {}).get("causes", [])
        if _NOT_CHECKED not in cause["message"]
    ]
    unknown = [Complaint(field, "unknown field") for field in _UNKNOWN.findall(status["message"])]
    return tuple(causes or unknown or [Complaint("", status["message"])])
