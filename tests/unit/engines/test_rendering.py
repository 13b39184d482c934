"""Values survive the way through YAML byte for byte, and templates cannot do more than show them."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jinja2.exceptions import SecurityError, UndefinedError

from vlm_operator.engines.rendering import _TEMPLATES, as_yaml

DIFFICULT = [
    "", " ", "-", "- a", "-1", "1", "1.0", "1e3", "0x1F", "0o17", "012", "1_000", ".5", ".inf", ".nan", "12:30:45",
    "yes", "No", "on", "TRUE", "null", "~", "2026-11-30", "2026-11-30T12:00:00Z", "=", "<<", "?", "? a", ": ", "a: b",
    "a #b", "#", "---", "...", "%YAML 1.1", "@a", "`a`", "&a", "*a", "!a", "!!python/object:os.system", "|", ">", "[", "]",
    "{", "}", "{{ 7 * 7 }}", "{% if %}", "{# #}", "}}", '"', "'", "\\", "\\n", "\\x41", '\\"', "a\nb", "a\r\nb", "\n", "\t",
    "\0", "\a", "\b", "\x1b", "\x7f", "\x80", "\x85", "\x9f", "\xa0", "\xad", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff",
    "\ud7ff", "\ue000", "\U0001f600", "\U0010ffff", "e\u0301", "\u202e", "\\ud83d\\ude00", "a" * 100_000, '"' * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("text", DIFFICULT, ids=lambda text: ascii(text[:20]))
@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader])
def test_difficult_text_is_shown_as_one_scalar(text: str, loader: type[yaml.SafeLoader]) -> None:
    document = f"a: {as_yaml(text)}\nb: [{as_yaml(text)}, {as_yaml({'key': text})}]\n"
    assert yaml.load(document, Loader=loader) == {"a": text, "b": [text, {"key": text}]}  # noqa: S506 # safe loaders


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=80), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_any_value_survives(value: Any) -> None:
    assert yaml.load(f"a: {as_yaml(value)}\n", Loader=yaml.CSafeLoader) == {"a": value}  # a safe loader


@given(st.text())
def test_text_is_shown_in_printable_ascii_on_one_line(text: str) -> None:
    shown = as_yaml(text)
    assert shown.isascii()
    assert shown.isprintable()


@pytest.mark.parametrize("value", [1.5, b"bytes", {1: "a"}, {1, 2}, object()])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        as_yaml(value)


def test_a_key_that_yaml_could_not_read_is_refused() -> None:
    with pytest.raises(ValueError, match="1000 characters"):
        as_yaml({"k" * 1100: 1})


def test_every_expression_passes_through_the_filter() -> None:
    template = _TEMPLATES.from_string('a: {{ a }}\nb: {{ a | string }}\nc: {{ "x: y" }}\nd: {{ a | safe }}\n')
    text = template.render(a="1\nz: 2")
    assert yaml.safe_load(text) == {"a": "1\nz: 2", "b": "1\nz: 2", "c": "x: y", "d": "1\nz: 2"}


def test_an_undefined_variable_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        _TEMPLATES.from_string("a: {{ missing }}").render()


@pytest.mark.parametrize(
    "source",
    ["{{ ''.__class__.__mro__ }}", "{{ value.append(1) }}", "{{ function.__globals__ }}", "{{ value.__init__ }}"],
)
def test_templates_are_kept_in_a_sandbox(source: str) -> None:
    with pytest.raises(SecurityError):
        _TEMPLATES.from_string(source).render(value=[1], function=as_yaml)
