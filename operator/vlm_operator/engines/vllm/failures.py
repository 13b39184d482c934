"""Why vLLM ended, by its last words: the termination message of its container, or the end of its log.

What fails in the engine's or a worker's own process stands in the log alone: the message then says only that the engine did
not start.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from vlm_operator.engines.failures import Failure, first_failure
from vlm_operator.engines.vllm.causes import BAD_ARGUMENT, ENGINE_DIED
from vlm_operator.engines.vllm.log import Line, telling_lines
from vlm_operator.engines.vllm.words import RULES

_WRONG_ARGUMENTS = 2
"""Exit code of the argument parser, and of nothing else."""
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception): (?!.*(?:initialization failed|EngineCore encountered))")


@lru_cache(maxsize=64)
def failure(exit_code: int | None, text: str) -> Failure | None:
    """Why it ended; None when neither its words nor its exit code tell anything that is known.

    The same words are judged at every look at a replica, and by all replicas that fail alike: they are judged once.
    """
    if exit_code == _WRONG_ARGUMENTS and not text.strip():
        return Failure(cause=BAD_ARGUMENT, evidence="", advice=BAD_ARGUMENT.advice)
    lines, serves = telling_lines(text)
    rules = [rule for rule in RULES if rule.cause.while_serving or not serves]
    found = first_failure(rules, (line.statement for line in lines))
    if found is not None and found.vague and found.cause is ENGINE_DIED:
        return replace(found, evidence=_root_cause(lines) or found.evidence)
    return found


def _root_cause(lines: Iterable[Line]) -> str:
    """The first exception of a process behind the front end; empty where there is none."""
    behind = (line.statement for line in lines if line.process and not line.process.startswith("APIServer"))
    return next((statement for statement in behind if _EXCEPTION.match(statement)), "")
