"""Descriptions of types and fields from the docstrings in their source.

Only the CRD generator uses this: the operator itself never needs a description, and reading sources is slow.
"""

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise


def fold(text: str) -> str:
    """Return `text` as one line."""
    return " ".join(text.split())


def field_docs(cls: type) -> dict[str, str]:
    """Return the docstring below each field of `cls`, by field name."""
    body = _classes(cls.__module__)[cls.__name__].body
    return {
        field.target.id: fold(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
