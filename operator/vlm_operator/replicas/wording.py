"""Words of engines, kubelets and registries as they may stand in a status: one line, bounded, without secrets."""

import re

MESSAGE_LENGTH = 300
REASON_LENGTH = 128
REDACTED = "***"

_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    # Signed addresses carry their key in the query.
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s?#'\"]*)\?[^\s'\"]+", re.IGNORECASE), rf"\1?{REDACTED}"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@'\"]+@", re.IGNORECASE), rf"\1{REDACTED}@"),
    (re.compile(r"[?&]X-(?:Amz|Goog)-\S+", re.IGNORECASE), f"?{REDACTED}"),
    (re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]+", re.IGNORECASE), rf"\1 {REDACTED}"),
    (
        re.compile(
            r"\b([\w-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|credentials?)"
            r"['\"]?\s*[=:]\s*)(?:\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^\s,;)}\]]+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(--[\w-]*(?:api-key|token|password|secret)[= ]+)\S+", re.IGNORECASE), rf"\1{REDACTED}"),
    (re.compile(r"\b(?:hf_|hf-|sk-|gh[oprsu]_|github_pat_|glpat-|nvapi-|xox[abprs]-)[\w-]{6,}"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA|AIza)[\w-]{12,}"), REDACTED),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), REDACTED),
)
"""What a log may hold that no status may show, and what stands there instead."""


def one_line(text: str) -> str:
    """The text without secrets, control characters and line breaks, at most `MESSAGE_LENGTH` characters long."""
    printable = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    for secret, instead in _SECRETS:
        printable = secret.sub(instead, printable)
    return printable if len(printable) <= MESSAGE_LENGTH else printable[: MESSAGE_LENGTH - 1] + "…"


def one_word(reason: str) -> str:
    """A reason that a condition may have. Kubelets also say `OutOfnvidia.com/gpu`, container runtimes `seccomp killed`."""
    parts = re.findall(r"[A-Za-z0-9]+", reason)
    word = "".join(part[0].upper() + part[1:] for part in parts).lstrip("0123456789")
    return word[:REASON_LENGTH] or "Unknown"
