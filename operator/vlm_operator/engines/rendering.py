"""From a template and values to a manifest, so that no value can change the structure.

Every expression of a template passes through `as_yaml` on its way out, whether the author thinks of it or not. Authors
write whole values (`name: {{ name }}`), never parts of one (`name: x-{{ name }}`); a test holds the templates to that.
"""

import re
from typing import Any, cast

import yaml
from jinja2 import PackageLoader, StrictUndefined
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


def _environment() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(
        loader=PackageLoader("vlm_operator.engines", "templates"),
        undefined=StrictUndefined,
        finalize=as_yaml,
        autoescape=False,  # the output is YAML: `as_yaml` escapes
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


_TEMPLATES = _environment()


def render_text(template: str, context: dict[str, Any]) -> str:
    """The text of `template` (a path below `templates/`) with the values of `context`."""
    return _TEMPLATES.get_template(template).render(context)


def render(template: str, context: dict[str, Any]) -> dict[str, Any]:
    """The manifest that `template` gives with the values of `context`."""
    return cast("dict[str, Any]", yaml.load(render_text(template, context), Loader=_Loader))  # noqa: S506 # a safe loader
