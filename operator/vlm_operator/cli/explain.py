"""`kubectl vlm explain`: what there is of a deployment in the cluster, what the operator does next, and what it waits for."""

import argparse
import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import ValidationError

from vlm_operator.api import GROUP, KIND, PLURAL, SHORT_NAME
from vlm_operator.cli.listing import table
from vlm_operator.replicas.times import epoch
from vlm_operator.runtime.cache import Key
from vlm_operator.runtime.connection import StartError, connect, namespace_of
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.kube import Kube
from vlm_operator.runtime.settings import Settings
from vlm_operator.runtime.survey import Survey, survey
from vlm_operator.sizing.catalogue.loading import Catalogue
from vlm_operator.status.explanation import explain

_KINDS = {"", SHORT_NAME, KIND.lower(), PLURAL, f"{PLURAL}.{GROUP}", f"{KIND.lower()}.{GROUP}"}
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))


def answer(options: argparse.Namespace, catalogue: Catalogue) -> str:
    """The explanation in the form that is asked for. Raises UnusableInputError."""
    # What the operator would log of a look is part of the answer.
    logging.getLogger("vlm_operator").addHandler(logging.NullHandler())
    now = time.time()
    data = _as_data(*asyncio.run(_look(options, catalogue, now=now)))
    if options.output == "json":
        return json.dumps(data, indent=2) + "\n"
    if options.output == "yaml":
        return yaml.safe_dump(data, sort_keys=False, width=120)
    return "".join(f"{line}\n" for line in lines(data, now=now))


async def _look(options: argparse.Namespace, catalogue: Catalogue, *, now: float) -> tuple[Survey, Key]:
    try:
        settings = Settings(kubeconfig=options.kubeconfig, context=options.context)
        namespace = options.namespace or namespace_of(settings)
        configuration = await connect(settings)
    except ValidationError as error:
        details = error.errors()[0]
        raise UnusableInputError(f"--{details['loc'][0]} {details['msg']}") from error
    except StartError as error:
        raise UnusableInputError(str(error)) from error
    kube = Kube(configuration)
    try:
        key = namespace, _name(options.name)
        return await survey(kube, key, catalogue, now=now), key
    finally:
        await kube.close()


def _name(given: str) -> str:
    """The name, which may stand behind the kind as kubectl takes it."""
    kind, _, name = given.rpartition("/")
    if kind.lower() not in _KINDS:
        raise UnusableInputError(f"{given} is not the name of a VLMDeployment; give NAME, or {SHORT_NAME}/NAME")
    return name


def _as_data(found: Survey, key: Key) -> dict[str, Any]:
    if found.facts is None or found.decision is None or found.plan is None:
        namespace, name = key
        return {
            "name": name,
            "namespace": namespace,
            "deleted": True,
            "left": list(found.left),
            "next": [],
            "waitsFor": [],
        }
    data = explain(found.facts, found.decision, found.plan)
    return data | {"unread": list(found.unread), "doubts": list(doubts(found, data))}


def doubts(found: Survey, data: dict[str, Any]) -> Iterator[str]:
    """Why the operator may see it otherwise."""
    status = found.facts.status if found.facts is not None else {}
    seen, generation = data["observedGeneration"], data["generation"]
    if seen != generation:
        which = "has not looked at it yet" if seen is None else f"has seen generation {seen} of it, not {generation}"
        yield f"the operator {which}; if that lasts, it is not running, or serves other namespaces"
        return
    told = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if told.get("Ready", {}).get("status") == "Unknown":
        yield f"the operator cannot look at it, and does nothing: {told['Ready'].get('message', '')}"
    accepted = told.get("Accepted", {}).get("status")
    if accepted not in {None, data["conditions"][0]["status"]}:
        yield (
            f"the operator says Accepted={accepted}: it is of another version, or has further models and GPUs; "
            "give the same to this command with --catalogue"
        )
    for condition in data["conditions"]:
        operator = told.get(condition["type"], {})
        if condition["status"] == "Unknown" != operator.get("status", "Unknown"):
            yield (
                f"the operator, with rights of its own, says {condition['type']}={operator['status']}: "
                f"{operator.get('message', '')}"
            )
    if found.plan is not None and any(replica.in_flight is None for replica in found.plan.undecided):
        yield "which replica drains is decided by their requests in flight, which are not known here"


def lines(data: dict[str, Any], *, now: float) -> Iterator[str]:
    """The explanation as text."""
    if "deleted" in data:
        yield f"{data['name']} in namespace {data['namespace']} is being deleted"
        yield "The operator does nothing any more, its objects go with it"
        yield f"What is left: {', '.join(data['left'])}" if data["left"] else "No replica is left"
        return
    yield f"{data['name']} in namespace {data['namespace']}, revision {data['revision'] or 'none'}"
    size = data["size"]
    counts = (
        f"; {size['serving']} to serve, {size['warm']} to stand by, at most {size['ceiling']} in all"
        if size["serving"]
        else ""
    )
    yield f"Size: {size['message']}{counts}"
    if data["rollout"] is not None:
        yield f"Rollout: {data['rollout']['phase']}: {data['rollout']['message']}"
    yield ""
    yield from _replicas(data["replicas"], now=now)
    yield ""
    told: dict[str, str] = {}
    for condition in data["conditions"]:
        message, kind = condition["message"], condition["type"]
        yield f"{kind}={condition['status']} {condition['reason']}: {_once(message, told)}"
        told.setdefault(message, kind)
    yield ""
    yield from _listed("What the operator does next", data["next"])
    yield from _listed("What it waits for", [_once(wait["message"], told) for wait in data["waitsFor"]])
    for title, key in (("What could not be read", "unread"), ("But", "doubts")):
        if data[key]:
            yield from _listed(title, data[key])


def _replicas(replicas: list[dict[str, Any]], *, now: float) -> Iterator[str]:
    if not replicas:
        yield "no replicas"
        return
    head = ["replica", "role", "phase", "for", "in flight", "restarts", "revision", "gpus", "node"]
    rows = [
        [
            replica["name"],
            replica["role"] or "-",
            replica["phase"],
            _age(epoch(replica["since"]), now=now),
            *(_cell(replica[name]) for name in ("inFlight", "restarts", "revision", "gpus")),
            f"{replica['node'] or '-'}{' (cordoned)' if replica['cordoned'] else ''}",
        ]
        for replica in replicas
    ]
    yield from table([head, *rows]).splitlines()
    for replica in replicas:
        trouble = replica["trouble"]
        if trouble is not None:
            advice = f"; {trouble['advice']}" if trouble["advice"] else ""
            yield f"{replica['name']}: {trouble['reason']}: {trouble['message']}{advice}"


def _once(message: str, told: dict[str, str]) -> str:
    """A message, or where it stands already. `told`: the condition of each message."""
    return f"what {told[message]} says" if message in told else message


def _listed(title: str, sentences: list[str]) -> Iterator[str]:
    yield f"{title}:" if sentences else f"{title}: nothing"
    yield from (f"  {sentence}" for sentence in sentences)


def _cell(value: Any) -> str:
    return "?" if value is None else str(value)


def _age(since: float | None, *, now: float) -> str:
    """Time that has passed, as kubectl shows it."""
    if since is None:
        return "-"
    passed = max(0, int(now - since))
    return next((f"{passed // seconds}{unit}" for seconds, unit in _UNITS if passed >= seconds), f"{passed}s")
