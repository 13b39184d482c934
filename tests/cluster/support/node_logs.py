"""The part of a kubelet that hands out logs, for an imitated node: the API server asks it as it asks a real one."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from controlplane import ControlPlane
from controlplane.pki import Authority


@dataclass
class NodeLogs:
    """What the containers of one node wrote, by the names of their pods; and who asked for it."""

    texts: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Pod and query of each call."""


@contextmanager
def serving_logs(plane: ControlPlane, node: str, folder: Path) -> Iterator[NodeLogs]:
    """Serve the logs of a node's containers while the block runs."""
    logs = NodeLogs()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*Authority(folder, "kubelet").issue("kubelet", user="system:node", hosts=("127.0.0.1",)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(logs))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    port = {"kubeletEndpoint": {"Port": server.server_port}}
    status = {"status": {"addresses": addresses, "daemonEndpoints": port}}
    plane.api.merge_patch(f"/api/v1/nodes/{node}/status", status)
    try:
        yield logs
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(logs: NodeLogs) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """`/containerLogs/NAMESPACE/POD/CONTAINER?tailLines=N&limitBytes=N&previous=true`: the first bytes of the tail."""
            url = urlsplit(self.path)
            query = dict(parse_qsl(url.query))
            pod = url.path.split("/")[3]
            logs.asked.append((pod, query))
            lines = logs.texts.get(pod, "").splitlines(keepends=True)[-int(query["tailLines"]) :]
            body = "".join(lines).encode()[: int(query["limitBytes"])]
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
