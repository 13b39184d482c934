"""Judge command lines by the vLLM that is on the path; runs in the environment of `vllm_args.environment`.

Reads from standard input JSON like `[{"name": ..., "words": [...], "model": {"config.json": {...}} or null}]`: what stands
after `vllm serve`, and the files of the model's folder. The argument is a folder in which vLLM keeps what it learns about
classes of models. Writes `{name: {"stage": ..., "error": ...}}`: how far each came.
The stages are `parse` (the argument parser), `validate` (vLLM's further rules about arguments) and, with a model, `config`
(the configuration of the engine). The error is null for one that passed all.
"""

import contextlib
import importlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARSERS = (
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",
)
PARSER_CLASSES = ("vllm.utils.argparse_utils", "vllm.utils")


def first_module(names: tuple[str, ...], attribute: str) -> Any:
    """The first of the modules that exists and has the attribute."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            module = importlib.import_module(name)
            if hasattr(module, attribute):
                return module
    raise SystemExit(f"none of {', '.join(names)} has {attribute}")


class Judge:
    """The parser of one version, which takes long to import and little to ask."""

    def __init__(self) -> None:
        self.rules = first_module(PARSERS, "make_arg_parser")
        flexible = first_module(PARSER_CLASSES, "FlexibleArgumentParser").FlexibleArgumentParser
        self.parser = self.rules.make_arg_parser(flexible())

    def judge(self, words: list[str], files: dict[str, Any] | None) -> dict[str, Any]:
        """How far a command line comes."""
        errors = io.StringIO()
        stage = "parse"
        try:
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                options = self.parser.parse_args(list(words))
                options.model = getattr(options, "model_tag", None) or options.model
                stage = "validate"
                options.chat_template = None  # the file is in the pod only
                self.rules.validate_parsed_serve_args(options)
                if files is not None:
                    stage = "config"
                    with folder(files) as path:
                        options.model = str(path)
                        self.configure(options)
        except SystemExit:
            return {"stage": stage, "error": errors.getvalue().rpartition("error:")[2].strip()[-500:]}
        except Exception as error:  # noqa: BLE001 # whatever vLLM raises is its verdict
            return {"stage": stage, "error": f"{type(error).__name__}: {error}"[:800]}
        return {"stage": stage, "error": None}

    def configure(self, options: Any) -> None:
        """Make the configuration of the engine, as `vllm serve` does before it loads weights."""
        arguments = importlib.import_module("vllm.engine.arg_utils").AsyncEngineArgs.from_cli_args(options)
        arguments.create_engine_config()


@contextlib.contextmanager
def folder(files: dict[str, Any]) -> Iterator[Path]:
    """A folder with JSON files of these names."""
    with tempfile.TemporaryDirectory() as path:
        for name, content in files.items():
            (Path(path) / name).write_text(json.dumps(content), encoding="utf-8")
        yield Path(path)


if __name__ == "__main__":
    os.environ["VLLM_CACHE_ROOT"] = sys.argv[1]
    cases = json.load(sys.stdin)
    judge = Judge()
    answers = {case["name"]: judge.judge(case["words"], case["model"]) for case in cases}
    sys.stdout.write("\n" + json.dumps(answers) + "\n")  # a line of its own: libraries print as well
