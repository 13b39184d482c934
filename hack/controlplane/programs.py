"""How each program of the control plane is started: its command line, and nothing else.

Everything listens on loopback only. The store is throwaway, so etcd does not sync to disk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from controlplane.pki import Authority, write_signing_keys
from controlplane.ports import Ports

ADVERTISED_ADDRESS = "198.19.255.253"
"""Never dialled. With a loopback address the `kubernetes` EndpointSlice is refused and an error logged for ever."""

NODE_ADDRESS = "198.19.255.254"
"""InternalIP of all nodes; the far end of the pods' range, which is handed out from the other end."""

SERVER_NAMES = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc", "10.96.0.1")


OWNERS_ENFORCED = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
"""Argument of the API server: owners that block deletion need the right to it, as in some distributions. For half a minute
after a CRD was created it knows nothing of it and refuses its objects as owners; so it is no default."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How fast the cluster notices things; the defaults are those of Kubernetes."""

    node_monitor_grace_seconds: float = 50.0
    """Silence after which a node is NotReady."""
    node_eviction_seconds: int = 300
    """How long pods stay bound to a node that is not ready or unreachable."""
    autoscaler_sync_seconds: float = 15.0
    """Period of the HorizontalPodAutoscaler."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The files and ports of one control plane."""

    folder: Path
    ports: Ports
    tools: Mapping[str, Path]
    timing: Timing
    pod_cidr: str

    @property
    def pki(self) -> Path:
        """Folder of keys and certificates."""
        return self.folder / "pki"

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def audit_log(self) -> Path:
        """What service accounts asked of the API server."""
        return self.folder / "audit.log"

    def log(self, name: str) -> Path:
        """Log file of a program."""
        return self.folder / "logs" / f"{name}.log"


def make_pki(pki: Path) -> Authority:
    """Make all keys and certificates the programs need; return the authority that signs users."""
    cluster = Authority(pki, "cluster")
    cluster.issue("apiserver", user="kube-apiserver", hosts=SERVER_NAMES)
    store = Authority(pki, "etcd")
    store.issue("etcd-server", user="etcd", hosts=("127.0.0.1",))
    store.issue("etcd-client", user="kube-apiserver")
    Authority(pki, "front-proxy").issue("front-proxy-client", user="front-proxy-client")
    write_signing_keys(pki)
    return cluster


def etcd(layout: Layout) -> list[str | Path]:
    """Command line of the store."""
    client, peer = (f"https://127.0.0.1:{layout.ports[name]}" for name in ("etcd", "etcd-peer"))
    pki = layout.pki
    tls = [
        f"--{role}{flag}"
        for role in ("", "peer-")
        for flag in (
            f"cert-file={pki / 'etcd-server.crt'}",
            f"key-file={pki / 'etcd-server.key'}",
            f"trusted-ca-file={pki / 'etcd.crt'}",
            "client-cert-auth",
        )
    ]
    return [
        layout.tools["etcd"],
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--socket-reuse-port",
        "--log-level=warn",
        *tls,
    ]


def apiserver(layout: Layout, extra: Sequence[str]) -> list[str | Path]:
    """Command line of the API server; the admission plugins are the default ones."""
    pki, eviction = layout.pki, layout.timing.node_eviction_seconds
    return [
        layout.tools["kube-apiserver"],
        f"--etcd-servers=https://127.0.0.1:{layout.ports['etcd']}",
        f"--etcd-cafile={pki / 'etcd.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports['apiserver']}",
        "--permit-port-sharing",
        f"--advertise-address={ADVERTISED_ADDRESS}",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'cluster.crt'}",
        f"--requestheader-client-ca-file={pki / 'front-proxy.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
        "--authorization-mode=RBAC",
        f"--audit-policy-file={layout.folder / 'audit-policy.yaml'}",
        f"--audit-log-path={layout.audit_log}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        f"--default-not-ready-toleration-seconds={eviction}",
        f"--default-unreachable-toleration-seconds={eviction}",
        "--allow-privileged=true",
        "--profiling=false",
        *extra,
    ]


def controller_manager(layout: Layout, extra: Sequence[str]) -> list[str | Path]:
    """Command line of the controller manager, with its default controllers."""
    timing, config = layout.timing, layout.folder / "controller-manager.kubeconfig"
    return [
        layout.tools["kube-controller-manager"],
        f"--kubeconfig={config}",
        f"--service-account-private-key-file={layout.pki / 'service-accounts.key'}",
        f"--root-ca-file={layout.pki / 'cluster.crt'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        f"--node-monitor-grace-period={timing.node_monitor_grace_seconds}s",
        f"--node-monitor-period={min(5.0, timing.node_monitor_grace_seconds / 4)}s",
        f"--horizontal-pod-autoscaler-sync-period={timing.autoscaler_sync_seconds}s",
        *extra,
    ]


def scheduler(layout: Layout, extra: Sequence[str]) -> list[str | Path]:
    """Command line of the scheduler."""
    return [
        layout.tools["kube-scheduler"],
        f"--kubeconfig={layout.folder / 'scheduler.kubeconfig'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        *extra,
    ]


def kwok(layout: Layout, stages: Path, managed_nodes: str) -> list[str | Path]:
    """Command line of the node imitation, for nodes matching a label selector."""
    lease_seconds = max(1, min(40, int(layout.timing.node_monitor_grace_seconds * 0.8)))
    return [
        layout.tools["kwok"],
        f"--kubeconfig={layout.folder / 'kwok.kubeconfig'}",
        f"--config={stages}",
        f"--manage-nodes-with-label-selector={managed_nodes}",
        f"--cidr={layout.pod_cidr}",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-lease-duration-seconds={lease_seconds}",
    ]
