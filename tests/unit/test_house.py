"""How the source tree is built: things that nobody would notice until they hurt."""

import ast
import operator
import sysconfig
from pathlib import Path

import pytest

import vlm_operator

PACKAGE = Path(vlm_operator.__file__).parent
SOURCE_ROOT = PACKAGE.parent
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_the_source_root_does_not_shadow_the_operator_module_of_python() -> None:
    assert SOURCE_ROOT.name == "operator"
    assert not (SOURCE_ROOT / "__init__.py").exists()
    standard = Path(sysconfig.get_path("stdlib"))
    assert Path(operator.__file__).is_relative_to(standard)
    assert operator.add(1, 2) == 3


def test_nothing_but_the_package_stands_in_the_source_root() -> None:
    assert [path.name for path in SOURCE_ROOT.iterdir() if path.name != "__pycache__"] == ["vlm_operator"]


@pytest.mark.parametrize("module", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES])
def test_every_module_says_what_it_is_for(module: Path) -> None:
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    assert text, f"{module} has no docstring"
    assert len(text.split()) >= 3


def test_every_folder_of_the_package_is_a_package() -> None:
    folders = {path.parent for path in MODULES if path.parent.name != "scripts"}
    assert [folder.name for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []
