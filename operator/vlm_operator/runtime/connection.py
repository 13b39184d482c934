"""Connects to the API server, for the operator's own calls and for kopf's watches alike."""

import asyncio
import os
import re
import ssl
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import kopf
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException

from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.kube import UNREADABLE, Kube, KubeError
from vlm_operator.runtime.kubeconfig import Choice, choose
from vlm_operator.runtime.kubeconfig_fields import PROXY, shown
from vlm_operator.runtime.settings import Settings

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
OWN_NAMESPACE = SERVICE_ACCOUNT.with_name("namespace")
OLDEST = (1, 31)
"""The oldest Kubernetes that has everything that is used here."""
PLUGIN_SECONDS = 60.0
"""Within this time a plugin must have got the credentials, a person's login included."""
_OF_ANY_VALUE = (OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError)


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
    """Find the API server and the credentials. Raises StartError."""
    configuration = Configuration()
    configuration.disable_strict_ssl_verification = True
    where = "the pod's ServiceAccount"
    try:
        if _in_cluster(settings):
            config.load_incluster_config(configuration, try_refresh_token=False)  # type: ignore[no-untyped-call] # not typed
            configuration.refresh_api_key_hook = _read_token  # type: ignore[assignment] # typed as None
        else:
            choice = choose(
                settings.kubeconfig, settings.context, variable=os.environ.get("KUBECONFIG", ""), home=Path.home()
            )
            where = str(choice)
            await _load(choice, configuration)
    except (UnusableInputError, ConfigException, aiohttp.ClientError, *_OF_ANY_VALUE) as error:
        # The library raises whatever it comes upon where a value is not as it expects it.
        raise StartError(_why_not(error, where)) from error
    _check_certificates(configuration, where)
    configuration.proxy = configuration.proxy or _proxy(configuration.host)
    # Else the client would look at the environment at every call, each time in another thread.
    configuration.client_session_kwargs = {"trust_env": False}
    return configuration


def _proxy(server: str) -> str | None:
    """The proxy that the environment names for a URL. Raises StartError."""
    where = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass(where.netloc):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(where.scheme) or proxies.get("all")
    if proxy and not PROXY.holds(proxy):
        names = f"{where.scheme.upper()}_PROXY or ALL_PROXY"
        raise StartError(
            f"the proxy in {names} is {shown(proxy)} but must be {PROXY.words}; correct it, or set NO_PROXY"
        )
    return proxy


def _why_not(error: Exception, where: str) -> str:
    match error:
        case UnusableInputError():
            return f"no usable cluster configuration: {error}"
        case TimeoutError():
            return f"no credentials: the plugin of {where} did not end within {PLUGIN_SECONDS:.0f} s"
        case FileNotFoundError(filename=None):
            needs = "holds certificates that need a temporary file, and none can be written"
            return f"{where} {needs}; mount a folder at /tmp, set TMPDIR, or name files with the certificates"
        case FileNotFoundError():
            return f"no usable cluster configuration in {where}: there is no {error.filename}; correct it"
    told = re.sub(r"\{.*\}", "...", " ".join(str(error).split()))  # it may quote entries with their secrets
    return f"no usable cluster configuration in {where}: {told}; correct it"


def _in_cluster(settings: Settings) -> bool:
    return settings.kubeconfig is None and not os.environ.get("KUBECONFIG") and SERVICE_ACCOUNT.exists()


async def _load(choice: Choice, configuration: Configuration) -> None:
    async with asyncio.timeout(PLUGIN_SECONDS):
        await config.load_kube_config_from_dict(  # type: ignore[no-untyped-call] # not typed
            choice.document, client_configuration=configuration
        )
    for kind, credential in configuration.api_key.items():
        configuration.api_key[kind] = credential.strip()  # a file often ends with a line break
        if not configuration.api_key[kind].isprintable():
            raise StartError(f"the token in {choice} has a line break or a control character in it; correct it")
    if choice.plugin and not configuration.api_key and not configuration.cert_file:
        # The library only logs what was wrong with it.
        raise StartError(f"no credentials: the plugin {choice.plugin} of {choice} failed, as told above")


def _check_certificates(configuration: Configuration, where: str) -> None:
    """Refuse certificates that no connection can be made with. Raises StartError."""
    what = "certificate authority"
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        what = "client certificate or its key"
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        reason = getattr(error, "reason", None)  # of OpenSSL, in capitals
        why = reason.lower().replace("_", " ") if reason else error.strerror or str(error)
        raise StartError(f"the {what} in {where} cannot be used: {why}; correct it") from error


def namespace_of(settings: Settings) -> str:
    """The namespace that a person means who names none. Raises StartError."""
    try:
        if _in_cluster(settings):
            return OWN_NAMESPACE.read_text().strip()
        return choose(
            settings.kubeconfig, settings.context, variable=os.environ.get("KUBECONFIG", ""), home=Path.home()
        ).namespace
    except (UnusableInputError, OSError) as error:
        raise StartError(f"no usable cluster configuration: {error}") from error


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


async def check_server(kube: Kube, host: str) -> None:
    """Refuse what is no Kubernetes, a Kubernetes that is too old, and credentials that it does not take.

    Raises StartError, and KubeError while there is no answer.
    """
    no_kubernetes = StartError(
        f"{host} does not answer as a Kubernetes API server does; correct the server in the kubeconfig"
    )
    try:
        answer = await kube.version()
    except KubeError as error:
        if error.reason == UNREADABLE:
            raise no_kubernetes from error
        if error.code == 401:
            raise StartError(
                f"{host} refuses the credentials (401): they are wrong or have expired; renew them"
            ) from error
        if not error.code or error.code == 429 or error.code >= 500:
            raise
        way_out = "write https:// in the server of the kubeconfig" if _wants_tls(error) else "is it an API server?"
        raise StartError(f"{host} does not tell the version of its Kubernetes: {error}; {way_out}") from error
    version = version_in(answer)
    if version is None:
        raise no_kubernetes
    if version < OLDEST:
        found, wanted = (".".join(map(str, v)) for v in (version, OLDEST))
        raise StartError(
            f"the cluster runs Kubernetes {found}; this operator needs {wanted} or newer: upgrade the cluster"
        )


def _wants_tls(error: KubeError) -> bool:
    """Whether it is what a server of Go answers to one that speaks without TLS."""
    return error.code == 400 and "to an HTTPS server" in error.message


def version_in(answer: Mapping[str, Any]) -> tuple[int, int] | None:
    """Major and minor version in what `/version` answers; None when there is none. Vendors add to it: `33+`, `v1.33.1-eks`."""
    for text in (f"{answer.get('major')}.{answer.get('minor')}", str(answer.get("gitVersion"))):
        if found := re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", text):
            return int(found[1]), int(found[2])
    return None
