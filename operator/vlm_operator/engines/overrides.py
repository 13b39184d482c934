"""Templates of a cluster's admin in place of those of this package: values that are passed in, rendered in the same sandbox.

An override may change the pod as the admin likes, save for what the operator itself relies on. It is probed before it is
used, and where it fails later the built-in template gives the pod.
"""

import json
import math
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jinja2 import Template, TemplateSyntaxError

from vlm_operator.api.documents import LARGEST_TEXT, UnusableTextError, only, parse
from vlm_operator.engines.base import CONTAINER, sibling
from vlm_operator.engines.override_probes import identity, probes
from vlm_operator.engines.registry import with_template
from vlm_operator.engines.rendering import Manifest, installed, sandbox
from vlm_operator.engines.rendering import Override as Installed

OPERATORS_LABELS = "vlm.dev/"
"""Labels that begin so are the operator's alone."""
_FILENAME = "<template>"
"""What Jinja calls a template without a file."""
_LONGEST_MESSAGE = 300
_MISSING = object()


class OverrideError(Exception):
    """Why an override cannot be used, as a sentence whose subject is the override."""


@dataclass(frozen=True)
class Override:
    """A template in place of a built-in one."""

    template: Template

    @classmethod
    def compiled(cls, source: str) -> "Override":
        """Return the override with the text `source`. Raises OverrideError."""
        try:
            return cls(sandbox(None).from_string(source))
        except Exception as error:  # whatever an admin's text makes Jinja do
            raise OverrideError(_told(error)) from error

    def render(self, built_in: Manifest, context: dict[str, Any]) -> Manifest:
        """Return its manifest with the values of `context`.

        Raises OverrideError where it fails or lacks what the operator relies on, which is as in `built_in`.
        """
        try:
            pod = only(parse(self._text(context)), "Pod")
            complaint = next(_complaints(pod, built_in), None)
        except OverrideError:
            raise
        except UnusableTextError as error:
            raise OverrideError(f"gives a text that {error}") from error
        except Exception as error:  # a template can fail in any way
            raise OverrideError(_told(error)) from error
        if complaint is not None:
            raise OverrideError(complaint)
        return dict(pod)

    def _text(self, context: dict[str, Any]) -> str:
        parts, size = [], 0
        for part in self.template.generate(context):
            size += len(part)
            if size > LARGEST_TEXT:
                raise OverrideError(f"gives more than {LARGEST_TEXT} characters")
            parts.append(part)
        return "".join(parts)


def probed(template: str, source: str) -> Override:
    """Return the override of `template` with the text `source` after it has rendered every probe. Raises OverrideError.

    It takes as long as the override takes, which may be for ever: whoever calls it sets a limit.
    """
    override = Override.compiled(source)
    chosen = with_template(template)
    for name, resolved in probes(chosen):
        try:
            with installed({template: override.render}):
                first, second = (chosen.render_pod(resolved, identity(slot)) for slot in (0, 1))
        except OverrideError as error:
            raise OverrideError(f"probe {name}: {error}") from error
        if sibling(first, identity(1)) != second:
            raise OverrideError(
                f"probe {name}: the pods of two slots differ in more than metadata.name and the label vlm.dev/slot"
            )
    return override


def forgiving(override: Override, tell: Callable[[Manifest, str], None]) -> Installed:
    """Return an override that, where it fails, gives the built-in manifest and tells of that one why."""

    def rendered(built_in: Manifest, context: dict[str, Any]) -> Manifest:
        try:
            return override.render(built_in, context)
        except OverrideError as error:
            tell(built_in, str(error))
            return built_in

    return rendered


def _told(error: Exception) -> str:
    """Say what went wrong, and in which line of the template."""
    if isinstance(error, TemplateSyntaxError):
        line, message = error.lineno, error.message or ""
    else:
        lines = [n for frame, n in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == _FILENAME]
        line, message = lines[-1] if lines else 0, str(error)
    if isinstance(error, RecursionError | MemoryError):
        message = "is nested too deeply" if isinstance(error, RecursionError) else "takes too much memory"
    message = " ".join(message.split())[:_LONGEST_MESSAGE].rstrip(".") or type(error).__name__
    return f"line {line}: {message}" if line else message


def _complaints(pod: Any, built_in: Manifest) -> Iterator[str]:
    """What the operator cannot work with."""
    if not isinstance(pod, dict):
        yield f"gives {_shown(pod)}; it must give one Pod"
        return
    yield from _strange(pod, "")
    for path in (
        ("apiVersion",),
        ("kind",),
        *(("metadata", field) for field in ("name", "namespace", "ownerReferences")),
    ):
        yield from _differs(_at(pod, *path), _at(built_in, *path), ".".join(path))
    yield from _labels(_at(pod, "metadata", "labels"), built_in["metadata"]["labels"])
    containers = [_named_engine(_at(manifest, "spec", "containers")) for manifest in (pod, built_in)]
    if len(containers[0]) != 1:
        yield f"spec.containers has {len(containers[0]) or 'no'} containers named {CONTAINER}; it must have one"
        return
    yield from _container(containers[0][0], containers[1][0])


def _labels(given: Any, wanted: dict[str, str]) -> Iterator[str]:
    if not isinstance(given, dict):
        yield "metadata.labels is missing"
        return
    for label, value in wanted.items():
        yield from _differs(given.get(label, _MISSING), value, f"metadata.labels[{label}]")
    for label in given.keys() - wanted.keys():
        if label.startswith(OPERATORS_LABELS):
            yield f"metadata.labels[{label}] is not one of the operator's; labels of {OPERATORS_LABELS} are its own"


def _container(given: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for field in ("image", "args"):
        yield from _differs(given.get(field, _MISSING), wanted.get(field), f"{field} of container {CONTAINER}")
    for kind in ("requests", "limits"):
        for resource, quantity in wanted["resources"][kind].items():
            if "/" in resource:  # a device
                place = f"resources.{kind}[{resource}] of container {CONTAINER}"
                yield from _differs(_at(given, "resources", kind, resource), quantity, place)
    for probe in ("startupProbe", "readinessProbe"):
        if not given.get(probe):
            yield f"{probe} of container {CONTAINER} is missing; a replica would get requests before it can answer them"


def _named_engine(containers: Any) -> list[dict[str, Any]]:
    found = containers if isinstance(containers, list) else []
    return [container for container in found if isinstance(container, dict) and container.get("name") == CONTAINER]


def _differs(given: Any, wanted: Any, place: str) -> Iterator[str]:
    if given is _MISSING:
        yield f"{place} is missing; it must be {_shown(wanted)}"
    elif given != wanted:
        yield f"{place} is {_shown(given)} but must be {_shown(wanted)}"


def _at(value: Any, *path: str) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _strange(value: Any, place: str) -> Iterator[str]:
    """What YAML can say and the API server cannot be told."""
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(key, str):
                yield from _strange(part, f"{place}.{key}" if place else key)
            else:
                yield f"{place or 'the Pod'} has a key that is no text: {_shown(key)}"
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _strange(part, f"{place}[{index}]")
    elif not (value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))):
        yield f"{place} is neither text nor a number: {_shown(value)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + "..."
