"""From a template and values to a manifest, so that no value can change the structure.

Every expression of a template passes through `as_yaml` on its way out, whether the author thinks of it or not. Authors
write whole values (`name: {{ name }}`), never parts of one (`name: x-{{ name }}`); a test holds the templates to that.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import yaml
from jinja2 import BaseLoader, PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

# Everything but printable ASCII is escaped: YAML takes some of the rest for line breaks and refuses some.
_NEEDS_ESCAPE = re.compile(r"[^ !#-\[\]-~]")
_SHORT_ESCAPES = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t"}
_LONGEST_KEY = 1000
"""YAML allows 1,024 characters between the start of a key and its colon."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def as_yaml(value: object) -> str:  # noqa: PLR0911 # one answer per type
    """`value` (text, whole number, boolean, None, or lists and dicts of such) as YAML on one line.

    Parsing the result gives back the value. Raises TypeError for anything else, UndefinedError for an undefined
    variable, ValueError for a key longer than YAML allows.
    """
    match value:
        case str():
            return _quoted(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case list() | tuple():
            return "[" + ", ".join(map(as_yaml, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{_key(key)}: {as_yaml(part)}" for key, part in value.items()) + "}"
        case StrictUndefined():
            return str(value)  # raises, naming the variable
        case _:
            raise TypeError(f"a template cannot show a value of type {type(value).__name__}")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a manifest is text, not {type(key).__name__}")
    quoted = _quoted(key)
    if len(quoted) > _LONGEST_KEY:
        raise ValueError(f"a key of a manifest has at most {_LONGEST_KEY} characters, this one has {len(quoted)}")
    return quoted


def _quoted(text: str) -> str:
    return f'"{_NEEDS_ESCAPE.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\U{ord(character):08x}"


def sandbox(loader: BaseLoader | None) -> ImmutableSandboxedEnvironment:
    """Where templates are rendered; without a loader they cannot include others."""
    return ImmutableSandboxedEnvironment(
        loader=loader,
        undefined=StrictUndefined,
        finalize=as_yaml,
        autoescape=False,  # the output is YAML: `as_yaml` escapes
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


Manifest = dict[str, Any]
Override = Callable[[Manifest, dict[str, Any]], Manifest]
"""Gives the manifest to use, from that of the built-in template and the values that it shows."""

_TEMPLATES = sandbox(PackageLoader("vlm_operator.engines", "templates"))
_overrides: dict[str, Override] = {}


def template_names() -> tuple[str, ...]:
    """The templates of this package, as paths below `templates/`."""
    return tuple(_TEMPLATES.list_templates(extensions=["j2"]))


def install(overrides: Mapping[str, Override]) -> None:
    """From now on use these overrides, by the names of their templates, and no others."""
    _overrides.clear()
    _overrides.update(overrides)


@contextlib.contextmanager
def installed(overrides: Mapping[str, Override]) -> Iterator[None]:
    """Use these overrides for a while, and afterwards those of before."""
    before = dict(_overrides)
    install(overrides)
    try:
        yield
    finally:
        install(before)


def render_text(template: str, context: dict[str, Any]) -> str:
    """The text of a built-in template with the values of `context`."""
    return _TEMPLATES.get_template(template).render(context)


def render(template: str, context: dict[str, Any]) -> Manifest:
    """The manifest that `template`, or what overrides it, gives with the values of `context`."""
    built_in = cast("Manifest", yaml.load(render_text(template, context), Loader=_Loader))  # noqa: S506 # a safe loader
    override = _overrides.get(template)
    return built_in if override is None else override(built_in, context)
