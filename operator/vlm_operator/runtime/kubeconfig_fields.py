"""What the fields of a cluster and of a user in a kubeconfig must hold, for whoever uses them to come upon no surprise.

A field that is empty counts as one that is not there, as kubectl has it. Fields that are not in the tables are not used.
"""

import base64
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vlm_operator.runtime.files import UnusableInputError, read_text

LONGEST_SHOWN = 80
"""Characters of a value that are told."""
PROVIDERS = ("gcp", "oidc")
"""What the client library still knows of the old way in which clusters gave credentials."""
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_ENDS_WITH_NUMBER = re.compile(r"(.*\.)?[0-9]+\.?")
_LOGIN = re.compile(r"//.*@")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A map in a kubeconfig."""

    file: Path
    what: str
    """`cluster here`."""
    fields: Mapping[str, Any]

    def refusal(self, field: str, rule: str, *, shows: bool = True) -> UnusableInputError:
        """Why the value of a field cannot be used."""
        told = f"is {shown(self.fields.get(field))} but " if shows else ""
        return UnusableInputError(f"{self.file}: the {field} of {self.what} {told}must be {rule}; correct it")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]
    secret: bool = False
    """Such a value is not told."""


def shown(value: Any) -> str:
    """A value for people: on one line, not for ever, and without a password."""
    if value is None or value == "":
        return "empty"
    text = _LOGIN.sub("//...@", " ".join(str(value).split()))
    text = "".join(c if c.isprintable() else "?" for c in text)
    return f"{text[:LONGEST_SHOWN]}..." if len(text) > LONGEST_SHOWN else text


def checked(section: Section, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """The fields that have rules and are not empty. Raises UnusableInputError."""
    found = {field: section.fields[field] for field in rules if section.fields.get(field) not in (None, "")}
    for field, value in found.items():
        if not rules[field].holds(value):
            raise section.refusal(field, rules[field].words, shows=not rules[field].secret)
    return found


def is_text(value: Any) -> bool:
    """Whether it is a line of text."""
    return isinstance(value, str) and value.isprintable()


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_environment(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and isinstance(item.get("name"), str) and isinstance(item.get("value"), str)
        for item in value
    )


def _is_provider(value: Any) -> bool:
    return isinstance(value, dict) and value.get("name") in PROVIDERS


def _is_map_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for item in value.items() for part in item)


def _is_base64(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(base64.b64decode(value))
    except ValueError:
        return False


def _is_host(value: Any) -> bool:
    try:
        name = value.encode("idna").decode() if is_text(value) else ""
    except UnicodeError:  # an empty or a very long part
        return False
    if _ENDS_WITH_NUMBER.fullmatch(name):  # which no name does
        return _is_address(name)
    return bool(_NAME.fullmatch(name))


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_url(value: Any, *, login: bool = False) -> bool:
    """Whether it is a URL of a server; `login`: one that may name a user and a password."""
    if not is_text(value) or " " in value:
        return False
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # a port that is none, brackets that are not closed
        return False
    reachable = _is_host(host) or _is_address(host)
    plain = not parts.query and not parts.fragment and (login or "@" not in parts.netloc)
    return value.startswith(("https://", "http://")) and reachable and port != 0 and plain


SERVER = Rule(words="https://HOST:PORT, without a user or a password", holds=_is_url)
PROXY = Rule(words="http://HOST:PORT, since no other proxies are known", holds=lambda value: _is_url(value, login=True))
POD_PROXY = Rule(
    words="http://HOST:PORT, without a user, a password or a path",
    holds=lambda value: _is_url(value) and urlsplit(value).path in {"", "/"},
)
TEXT = Rule(words="text", holds=is_text)
FILE = Rule(words="the name of a file", holds=is_text)
SECRET = Rule(words="text", holds=lambda value: isinstance(value, str), secret=True)
BASE64 = Rule(words="text in base64", holds=_is_base64, secret=True)

CONTEXT = {"cluster": TEXT, "user": TEXT, "namespace": TEXT}
CLUSTER = {
    "server": SERVER,
    "proxy-url": PROXY,
    "tls-server-name": Rule(words="the name of a host", holds=_is_host),
    "insecure-skip-tls-verify": Rule(words="true or false without quotes", holds=lambda value: isinstance(value, bool)),
    "certificate-authority": FILE,
    "certificate-authority-data": BASE64,
}
USER = {
    "token": SECRET,
    "tokenFile": FILE,
    "client-certificate": FILE,
    "client-certificate-data": BASE64,
    "client-key": FILE,
    "client-key-data": BASE64,
    "exec": Rule(words="a map with a command", holds=lambda value: isinstance(value, dict), secret=True),
    "auth-provider": Rule(
        words=f"a map with the name {' or '.join(PROVIDERS)}, else use exec or a token",
        holds=_is_provider,
        secret=True,
    ),
}
EXEC = {
    "apiVersion": TEXT,
    "command": TEXT,
    "args": Rule(words="a list of texts", holds=_is_list_of_texts),
    "env": Rule(words="a list of maps, each with the texts name and value", holds=_is_environment, secret=True),
}
PROVIDER = {"name": TEXT, "config": Rule(words="a map of texts", holds=_is_map_of_texts, secret=True)}


def cluster_in(section: Section) -> dict[str, Any]:
    """What a cluster says, with whole names of files. Raises UnusableInputError."""
    found = checked(section, CLUSTER)
    if "server" not in found:
        raise section.refusal("server", SERVER.words)
    return _with_files(section, found, "certificate-authority")


def user_in(section: Section) -> dict[str, Any]:
    """What a user says, with whole names of files and with the token of its file. Raises UnusableInputError."""
    found = _with_files(section, checked(section, USER), "client-certificate", "client-key")
    for field, rules in {"exec": EXEC, "auth-provider": PROVIDER}.items():
        if field in found:
            part = Section(file=section.file, what=f"{field} of {section.what}", fields=found[field])
            found[field] = checked(part, rules)
    for field in ("command", "apiVersion") if "exec" in found else ():
        if field not in found["exec"]:
            raise UnusableInputError(f"{section.file}: exec of {section.what} must have the field {field}; add it")
    for one, other in (("client-certificate", "client-key"), ("client-key", "client-certificate")):
        if {one, f"{one}-data"} & found.keys() and not {other, f"{other}-data"} & found.keys():
            raise UnusableInputError(f"{section.file}: {section.what} has a {one} but no {other}; add it")
    file = found.pop("tokenFile", None)
    if file is not None and "token" not in found:
        found["token"] = _token(section, file)
    return found


def must_have_credentials(section: Section, user: Mapping[str, Any]) -> None:
    """Refuse a user whom no API server would know. Raises UnusableInputError."""
    if {"token", "exec", "auth-provider", "client-certificate", "client-certificate-data"} & user.keys():
        return
    way_out = "give a token, a tokenFile, a client-certificate with its client-key, or exec"
    if section.fields.get("username") or section.fields.get("password"):
        why = "has a username and a password only, which Kubernetes takes no longer"
        raise UnusableInputError(f"{section.file}: {section.what} {why}; {way_out}")
    raise UnusableInputError(f"{section.file}: {section.what} has no credentials; {way_out}")


def _with_files(section: Section, found: dict[str, Any], *fields: str) -> dict[str, Any]:
    """The same with whole names of files, which a relative one is to the folder of the kubeconfig; data goes before files."""
    for field in fields:
        if f"{field}-data" in found:
            found.pop(field, None)
        elif field in found:
            file = (section.file.parent / found[field]).absolute()
            if not file.is_file():
                raise section.refusal(field, "a file that is there")
            found[field] = str(file)
    return found


def _token(section: Section, name: str) -> str:
    try:
        return read_text(str((section.file.parent / name).absolute()))
    except UnusableInputError as error:
        raise UnusableInputError(f"{section.file}: the tokenFile of {section.what}: {error}; correct it") from error
