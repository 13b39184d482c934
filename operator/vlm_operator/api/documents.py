"""Text that somebody gives, YAML or JSON, as plain data. It may hold anything: what cannot be used is told in a sentence."""

import contextlib
import json
from typing import Any

LARGEST_TEXT = 1_000_000
"""Characters of a text; the API server would not take more either."""
MOST_VALUES = 100_000
"""Values of a document once its aliases are written out."""


class UnusableTextError(Exception):
    """Why a text cannot be used: a sentence whose subject, the name of the text, the caller puts before it."""


def only(documents: list[Any], what: str) -> Any:
    """Return the one document, which should hold one `what`. Raises UnusableTextError when there are none or several."""
    if len(documents) > 1:
        raise UnusableTextError(f"holds {len(documents)} documents; give one {what} at a time")
    if not documents:
        raise UnusableTextError(f"is empty; it must hold one {what}")
    return documents[0]


def parse(text: str) -> list[Any]:
    """Return the documents of a text without the empty ones. Raises UnusableTextError, RecursionError."""
    if text.lstrip().startswith("{"):  # JSON writes some characters in a way that YAML does not know
        with contextlib.suppress(ValueError):
            document = json.loads(text, object_pairs_hook=_distinct)
            json.dumps(document, ensure_ascii=False).encode()  # half of a surrogate pair is no text
            return [document]
    import yaml  # noqa: PLC0415 # a program that reads nothing starts quickly

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type] # whichever PyYAML was built with
        """As kubectl reads YAML: a date is text."""

        yaml_implicit_resolvers = {  # noqa: RUF012 # as PyYAML has it
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            """Refuse a key that is there twice, as the API server does, before merged keys come in."""
            lines: dict[str, int] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                mark = key.start_mark
                if key.value in lines:
                    problem = f"the key {key.value!r} is already in line {lines[key.value]}; keep one of them"
                    raise yaml.constructor.ConstructorError(None, None, problem, mark)
                lines[key.value] = mark.line + 1
            super().flatten_mapping(node)

    try:
        documents = [document for document in yaml.load_all(text, Loader) if document is not None]  # safe
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UnusableTextError(f"is not YAML: {where}{error.problem}") from error
    except yaml.YAMLError as error:
        raise UnusableTextError(f"is not YAML: {str(error).splitlines()[0]}") from error
    except (ValueError, AttributeError) as error:  # what PyYAML makes of `!!int x`
        raise UnusableTextError("is not YAML: a value does not fit its type") from error
    if _values(documents, {}) > MOST_VALUES:
        raise UnusableTextError(f"holds more than {MOST_VALUES} values once its aliases are written out")
    return documents


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a JSON text. One with a key twice is left to YAML, which says where it stands."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _values(value: Any, known: dict[int, int]) -> int:
    """How many values there are, each alias counted as what it stands for."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(value)]
