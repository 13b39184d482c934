"""Write kubeconfig files that carry their certificates inside, so that they work from anywhere."""

import base64
import json
from pathlib import Path


def write_kubeconfig(path: Path, *, server: str, ca_file: Path, user: str, certificate: Path, key: Path) -> Path:
    """Write a kubeconfig with one context for `user`, readable by its owner only, and return `path`."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "controlplane", "cluster": {"server": server, "certificate-authority-data": _inline(ca_file)}}
        ],
        "users": [
            {"name": user, "user": {"client-certificate-data": _inline(certificate), "client-key-data": _inline(key)}}
        ],
        "contexts": [{"name": "controlplane", "context": {"cluster": "controlplane", "user": user}}],
        "current-context": "controlplane",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML
    return path


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
