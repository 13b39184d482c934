"""Write kubeconfig files that carry their credentials inside, so that they work from anywhere."""

import base64
import json
from pathlib import Path
from typing import Any

import yaml


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
    return _write(path, config)


def write_token_kubeconfig(path: Path, *, like: Path, user: str, token: str) -> Path:
    """Write a kubeconfig for the cluster that `like` names, with a token in place of its credentials, and return `path`."""
    # kubectl writes it anew as YAML when somebody chooses a namespace.
    config = yaml.safe_load(like.read_text())
    config["users"] = [{"name": user, "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = user
    return _write(path, config)


def _write(path: Path, config: dict[str, Any]) -> Path:
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML
    return path


def _inline(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
