"""Read the code of a release of vLLM: what it does with models, and what it calls its metrics."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from vllm_args.environment import CPU_RELEASE, cache_folder, ready, say
from vllm_args.wheels import python_part

METRICS = ("vllm/v1/metrics/loggers.py", "vllm/engine/metrics.py")
"""Of the engine, and of the older one that 0.10.2 still has."""
ENTRY_POINTS = "vllm/entrypoints"
REGISTRY = "vllm/model_executor/models/registry.py"
MODELS = ("vllm/model_executor/models", "vllm/models")
CONFIGURATION = "vllm/transformers_utils/model_arch_config_convertor.py"


@cache
def code_of(release: str) -> Path:
    """The folder that holds the package `vllm` of a release."""
    if release != CPU_RELEASE:
        return python_part(release, root=cache_folder(), progress=say)
    return next(ready().parents[1].glob("lib/python*/site-packages"))


def metric_names(release: str) -> set[str]:
    """All metrics, counters without the ending that their client library gives them."""
    files = [code_of(release) / name for name in METRICS]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return {name for text in texts for name in re.findall(r'"(vllm:\w+)"', text)}


def tells_load(release: str) -> bool:
    """Whether the server answers at /load with `server_load`."""
    texts = [path.read_text(encoding="utf-8") for path in (code_of(release) / ENTRY_POINTS).rglob("*.py")]
    return any('.get("/load")' in text and re.search("""["']server_load["']:""", text) for text in texts)


def takes_middleware(release: str) -> bool:
    """Whether the server puts around itself the class that an import path names."""
    texts = [path.read_text(encoding="utf-8") for path in (code_of(release) / ENTRY_POINTS).rglob("*.py")]
    lines = (
        "for middleware in args.middleware:",
        "importlib.import_module(module_path)",
        "app.add_middleware(imported)",
    )
    return any(all(line in text for line in lines) for text in texts)


def registered(release: str) -> dict[str, str]:
    """The classes that a `config.json` may name, and the class of the code that each stands for."""
    tree = ast.parse((code_of(release) / REGISTRY).read_text(encoding="utf-8"))
    return dict(pair for node in ast.walk(tree) if isinstance(node, ast.Dict) for pair in _entries(node))


def _entries(node: ast.Dict) -> Iterator[tuple[str, str]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple) and len(value.elts) == 2:
            name = value.elts[1]
            if isinstance(key.value, str) and isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield key.value, name.value


def classes_with(release: str, attribute: str) -> set[str]:
    """The registered classes whose code, or that of a class that it inherits from, sets an attribute to True."""
    own: dict[str, bool] = {}
    bases: dict[str, list[str]] = {}
    for folder in MODELS:
        for path in (code_of(release) / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    bases[node.name] = [ast.unparse(base).partition("[")[0] for base in node.bases]
                    own.update((node.name, value) for value in _set_to(node, attribute))

    def has(name: str) -> bool:
        return own[name] if name in own else any(map(has, bases.get(name, ())))

    return {architecture for architecture, name in registered(release).items() if has(name)}


def _set_to(node: ast.ClassDef, attribute: str) -> Iterator[bool]:
    for part in node.body:
        targets = (
            part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == attribute for target in targets):
            value = part.value if isinstance(part, ast.Assign | ast.AnnAssign) else None
            yield isinstance(value, ast.Constant) and value.value is True


def types_with_whole_images(release: str) -> set[str]:
    """The `model_type` of models whose images are never divided among steps, those of single checkpoints aside."""
    path = code_of(release) / CONFIGURATION
    found = (
        re.search(r"MM_PREFIX_LM_MODELS = \((.*?)\)", path.read_text(encoding="utf-8"), re.DOTALL)
        if path.is_file()
        else None
    )
    return set(re.findall(r'"(\w+)"', found[1])) if found else set()
