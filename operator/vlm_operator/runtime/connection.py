"""Connects to the API server, for the operator's own calls and for kopf's watches alike."""

import os
import ssl
import urllib.parse
import urllib.request
from pathlib import Path

import kopf
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException

from vlm_operator.runtime.settings import Settings

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
OWN_NAMESPACE = SERVICE_ACCOUNT.with_name("namespace")
OLDEST = (1, 31)
"""The oldest Kubernetes that has everything that is used here."""


class Connection(kopf.ConnectionInfo):
    """A connection whose certificates are checked as Kubernetes itself checks them.

    From 3.13 on Python also insists on extensions that the authorities of many clusters lack.
    """

    def as_ssl_context(self) -> ssl.SSLContext:
        """The context of all connections."""
        context = super().as_ssl_context()
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


class StartError(Exception):
    """Why the operator cannot start, as a sentence for a person."""


async def connect(settings: Settings) -> Configuration:
    """Find the API server and the credentials."""
    _must_exist(settings.kubeconfig)
    _one_must_exist(os.environ.get("KUBECONFIG", "") if settings.kubeconfig is None else "")
    configuration = Configuration()
    configuration.disable_strict_ssl_verification = True
    try:
        if _in_cluster(settings):
            config.load_incluster_config(configuration, try_refresh_token=False)  # type: ignore[no-untyped-call] # not typed
            configuration.refresh_api_key_hook = _read_token  # type: ignore[assignment] # typed as None
        else:
            file = str(settings.kubeconfig) if settings.kubeconfig else None
            await config.load_kube_config(  # type: ignore[no-untyped-call] # not typed
                file, context=settings.context, client_configuration=configuration
            )
    except (ConfigException, OSError, ValueError) as error:
        where = settings.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        message = f"no usable cluster configuration in {where}: {error}; set --kubeconfig or KUBECONFIG"
        raise StartError(message) from error
    configuration.proxy = configuration.proxy or _proxy(configuration.host)
    # Else the client would look at the environment at every call, each time in another thread.
    configuration.client_session_kwargs = {"trust_env": False}
    return configuration


def _proxy(server: str) -> str | None:
    """The proxy that the environment names for a URL."""
    where = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass(where.netloc):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(where.scheme) or proxies.get("all")


def _must_exist(kubeconfig: Path | None) -> None:
    if kubeconfig is not None and not kubeconfig.is_file():
        message = f"no usable cluster configuration in {kubeconfig}: there is no such file; correct --kubeconfig"
        raise StartError(message)


def _one_must_exist(variable: str) -> None:
    """KUBECONFIG may list several files, of which those that are missing are skipped."""
    if variable and not any(Path(file).expanduser().is_file() for file in variable.split(os.pathsep) if file):
        message = f"no usable cluster configuration: KUBECONFIG is {variable}, and there is no such file"
        raise StartError(message)


def _in_cluster(settings: Settings) -> bool:
    return settings.kubeconfig is None and "KUBECONFIG" not in os.environ and SERVICE_ACCOUNT.exists()


def _read_token(configuration: Configuration) -> None:
    """Take the token as it is in the file now: the kubelet replaces it long before it expires. Called for each request."""
    configuration.api_key["BearerToken"] = f"Bearer {SERVICE_ACCOUNT.read_text().strip()}"


def lease_namespace(settings: Settings) -> str:
    """The namespace of the Lease: as set, else that of the pod."""
    if settings.leader_elect_namespace is not None:
        return settings.leader_elect_namespace
    try:
        return OWN_NAMESPACE.read_text().strip()
    except OSError as error:
        why = "which namespace is this process in? It runs in no pod"
        raise StartError(f"--leader-elect: {why}; set --leader-elect-namespace") from error


async def connection_info(configuration: Configuration) -> Connection:
    """The same connection in kopf's terms."""
    authorization = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    token = authorization.removeprefix("Bearer ") if authorization else None
    return Connection(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        token=token,
        proxy_url=configuration.proxy,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )


def check_version(version: tuple[int, int]) -> None:
    """Refuse a Kubernetes that is too old."""
    if version < OLDEST:
        found, wanted = (".".join(map(str, v)) for v in (version, OLDEST))
        message = f"the cluster runs Kubernetes {found}; this operator needs {wanted} or newer"
        raise StartError(message)
