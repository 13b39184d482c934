"""Which lines of what vLLM writes can tell why it ended.

Lines of its log have a level, and only errors count: a prompt that it repeats is information. Once it serves, its front
end also logs every request that fails, with a traceback; then only what its engine and workers say counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MESSAGE_BYTES = 2048
"""Length at which the kubelet cuts the front off a termination message."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PROCESS = re.compile(r"^(?:.{0,60}?\((?P<process>\w+)(?: \S+)? pid=[^)]*\) ?|\[(?P<rank>rank\d+)\]: )")
"""`(EngineCore pid=83) `, `(VllmWorker rank=1 pid=61) `, `(Worker_TP1 pid=2) `; PyTorch writes `[rank0]: `."""
_HEADER = re.compile(
    r"^.{0,80}?\b(?P<level>TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL) \S+(?: \S+)? \[?(?P<file>[\w./-]+\.py):\d+\] ?"
)
"""`ERROR 11-30 10:02:00 [core.py:1510] `; older versions have no bracket in front of the file."""
_SERVER = re.compile(r"^(?P<level>TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL):\s+")
"""The HTTP server, uvicorn, writes `INFO:     Application startup complete.`."""
_JSON = re.compile(r'^\{.*"level(?:name)?": ?"(?P<level>\w+)"')
"""The same as JSON, where it is told to log that way."""
_HARMLESS = re.compile(r"\b\w*Warning: |\bNCCL INFO\b|^(?:\[rank\d+\]:\s*)?\[[WI]\d* |^\s*warnings\.warn\(")
"""Warnings of Python, and what NCCL and PyTorch write that is no error."""
_CODE = re.compile(r'^(?: {4}|\t|\s*(?:raise |File "))')
"""A line of a program in a traceback."""
_SERVES = re.compile(
    r"Application startup complete|Avg prompt throughput|Exception in ASGI application|"
    r'"(?:GET|POST) /\S* HTTP/[\d.]+"|ERROR \S+(?: \S+)? \[?(?:\w+/)*serving\w*\.py:'
)
"""What only a server that has started writes."""
_FRONT_END = re.compile(r"(?:^|/)(?:serving\w*|async_llm|api_server|launcher|protocol|utils|errors?)\.py$")
_ENGINE_DIED = re.compile(r"EngineDeadError|Engine core proc\w* \S+ died")
_NATIVE = re.compile(
    r"^\[rank\d+\]|NCCL|NVRM|Xid|terminate called|what\(\):|Fatal Python error|[Bb]us error|[Ss]egmentation fault"
)
"""What does not come from Python, and so from no request's traceback."""


@dataclass(frozen=True)
class Line:
    """One line that can tell something."""

    process: str
    """Name of the process that wrote it; empty where the line does not tell."""
    statement: str
    """What it says, without process, level, time and file."""


def telling_lines(text: str) -> tuple[tuple[Line, ...], bool]:
    """The lines that can tell why the engine ended, and whether it had begun to serve."""
    lines = text.splitlines()
    if len(text.encode()) >= MESSAGE_BYTES:
        lines = lines[1:] or lines  # what is left of a line does not tell its level
    lines = [_COLOUR.sub("", line).strip("\r") for line in lines]
    serves = any(_SERVES.search(line) for line in lines)
    return tuple(_telling(lines, serves=serves)), serves


def _telling(lines: list[str], *, serves: bool) -> Iterator[Line]:
    for whole in lines:
        named = _PROCESS.match(whole)
        process, line = (named["process"] or named["rank"], whole[named.end() :]) if named else ("", whole)
        header = _HEADER.match(line) or _SERVER.match(line)
        told = header or _JSON.match(line)
        if told and told["level"] not in {"ERROR", "CRITICAL"}:
            continue
        statement = line[header.end() :] if header else line
        if not statement.strip() or _CODE.match(statement) or _HARMLESS.search(statement):
            continue
        if serves and not _of_the_engine(process, header, statement):
            continue
        yield Line(process=process, statement=statement.strip())


def _of_the_engine(process: str, header: re.Match[str] | None, statement: str) -> bool:
    if _ENGINE_DIED.search(statement):
        return True
    if process:
        return not process.startswith("APIServer")
    file = header.groupdict().get("file") if header else None
    return not _FRONT_END.search(file) if file else bool(_NATIVE.search(statement))
