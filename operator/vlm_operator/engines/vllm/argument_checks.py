"""What is wrong with `spec.engine.args`: each check is a function from inputs to findings.

Arguments are compared with the facts about the version in use, exactly.
"""

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.command_line import END_OF_FLAGS, Given, divide
from vlm_operator.engines.vllm.credentials import holds_credential, is_credential_name, member_names, shown
from vlm_operator.engines.vllm.flags import GATHERED, Flag, KnownFlags, assumed_flags, known_flags, versions_with
from vlm_operator.engines.vllm.removed import SUCCESSORS
from vlm_operator.engines.vllm.reserved import (
    OPERATOR_SETS,
    OVERRIDDEN_SIZES,
    OWNED_FLAGS,
    REFUSED_FLAGS,
    REFUSED_VALUES,
    REQUIRED_FLAGS,
    UNCOUNTED_FLAGS,
    UNCOUNTED_VALUES,
    WITHOUT_EFFECT,
)
from vlm_operator.engines.vllm.value_checks import (
    INVALID_ARGUMENT,
    argument_error,
    item,
    stray_words,
    values_are_right,
    values_taken,
)
from vlm_operator.engines.vllm.versions import is_newer, minor_version, version_of

ARGUMENT_CONFLICT = "ArgumentConflict"
"""An argument sets what a field of the resource or the operator sets."""
ARGUMENT_REFUSED = "ArgumentRefused"
"""An argument would break the replica or the way it is watched."""
REPEATED_ARGUMENT = "RepeatedArgument"
"""A flag is given more than once, and the engine keeps only one of its values."""
UNCOUNTED_ARGUMENT = "UncountedArgument"
"""An argument changes how much memory a replica needs, and the sizing does not know by how much."""
API_KEY_IN_CLEAR = "ApiKeyInClear"
"""An API key or a token stands in the resource."""

_FEW = 3
_KEYS = ("--api-key", "--hf-token")
"""Flags whose value is a secret."""
_IN_SECRET = "spec.engine.env with valueFrom.secretKeyRef"  # noqa: S105 # a field


def arguments_are_right(inputs: PodInputs) -> Iterator[Finding]:
    """Every flag may be used here, the version has it, and it has the values that it takes."""
    version = version_of(inputs.engine)
    exact = known_flags(version)
    known = exact or assumed_flags(version)
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if given.flag in {"", END_OF_FLAGS}:
            yield from stray_words(given)
        elif flag is None:
            doubt = "remove it" if exact else f"make sure that vLLM {minor_version(version)} has it"
            yield from (_doubted(finding, exact) for finding in _unknown(given, known, otherwise=doubt))
        elif refusal := _refusal(given, flag):
            yield refusal
            yield from (_doubted(finding, exact) for finding in stray_words(given, after=_surely_taken(given, flag)))
        else:
            yield from (_doubted(finding, exact) for finding in values_are_right(given, flag, known))


def arguments_are_text(inputs: PodInputs) -> Iterator[Finding]:
    """No argument holds a character that no process can get."""
    for index, word in enumerate(inputs.engine.args):
        if "\0" in word:
            message = "holds a NUL character, which no process can get in an argument"
            yield argument_error(index, INVALID_ARGUMENT, message, "remove the character")


def flags_have_what_they_need(inputs: PodInputs) -> Iterator[Finding]:
    """A switch that needs another flag comes with it."""
    version = version_of(inputs.engine)
    exact = known_flags(version)
    known = exact or assumed_flags(version)
    last: dict[str, Given] = {}
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag and given.option in flag.negations:
            last.pop(flag.name, None)
        elif flag:
            last[flag.name] = given
    for switch, needed in REQUIRED_FLAGS.items():
        if switch in last and needed not in last and known.find(needed):
            message = f"{switch} needs {needed}, without which vLLM does not start"
            yield _doubted(argument_error(last[switch].index, INVALID_ARGUMENT, message, f"add {needed}"), exact)


def memory_is_counted(inputs: PodInputs) -> Iterator[Finding]:
    """No argument changes the memory of a replica in a way that the sizing does not know."""
    known = assumed_flags(version_of(inputs.engine))
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag is None or given.option in flag.negations:
            continue
        value = given.values[0] if given.values else ""
        uncounted = UNCOUNTED_FLAGS.get(flag.name) or UNCOUNTED_VALUES.get(flag.name, {}).get(value)
        if flag.name == "--hf-overrides" and any(map(OVERRIDDEN_SIZES.search, (*given.keys, *member_names(value)))):
            uncounted = "other dimensions of the model"
        if uncounted and value not in WITHOUT_EFFECT.get(flag.name, ()):
            yield Finding(
                reason=UNCOUNTED_ARGUMENT,
                severity="Warning",
                field=item(given.index),
                message=f"the sizing does not count {uncounted}, which {given.option} sets",
                advice="leave memory free for it, or remove it",
            )


def _refusal(given: Given, flag: Flag) -> Finding | None:
    """Why a known flag cannot be used here; None when it can."""
    if flag.name in OWNED_FLAGS:
        return _conflict(given, OWNED_FLAGS[flag.name])
    refused = None if given.option in flag.negations else REFUSED_FLAGS.get(flag.name)
    if refused:
        why, advice = refused
        return argument_error(given.index, ARGUMENT_REFUSED, f"{shown(given.flag)} cannot be used: {why}", advice)
    value = given.values[0] if given.values else ""
    if refused := REFUSED_VALUES.get(flag.name, {}).get(value):
        why, advice = refused
        message = f"{shown(given.flag)} {value} cannot be used: {why}"
        return argument_error(given.index, ARGUMENT_REFUSED, message, advice)
    return None


def _surely_taken(given: Given, flag: Flag) -> int:
    """How many words after a flag that cannot be used are no words of their own: what follows its `=` never is."""
    return max(values_taken(given, flag), 1 if given.attached else 0)


def _doubted(finding: Finding, exact: KnownFlags | None) -> Finding:
    """Only a warning when it was found by the facts about another version."""
    return finding if exact else replace(finding, severity="Warning")


def _conflict(given: Given, field: str) -> Finding:
    name = shown(given.flag)
    if not field:
        return argument_error(given.index, ARGUMENT_CONFLICT, f"{name} cannot be used: {OPERATOR_SETS}", "remove it")
    message = f"{name} sets what {field} {_sets(field)}"
    return argument_error(given.index, ARGUMENT_CONFLICT, message, f"remove it and use {field}")


def _sets(field: str) -> str:
    return "set" if " and " in field else "sets"


def _unknown(given: Given, known: KnownFlags, *, otherwise: str) -> Iterator[Finding]:
    """The flag is unknown, and words beyond one value belong to no flag unless one is meant that takes a list."""
    message = f"vLLM {known.version} has no argument {shown(given.flag)}"
    meant = _meant(given, known)
    if change := _change(given, known):
        message, advice = f"{message}: {change[0]}", change[1]
    elif meant in _KEYS:
        advice = f"remove it, and keep the key in a Secret ({_IN_SECRET})"
    elif nearest := _nearest(given.option.lower(), known):
        field = OWNED_FLAGS.get(known.spellings[nearest].name)
        advice = f"did you mean {nearest}?" + (f" {field} {_sets(field)} it" if field else "")
    else:
        advice = otherwise
    yield argument_error(given.index, INVALID_ARGUMENT, message, advice)
    flag = _elsewhere(given) or known.spellings.get(meant)
    if meant not in _KEYS and (given.attached or flag is None or flag.kind != "list"):
        yield from stray_words(given, after=1)


def _elsewhere(given: Given) -> Flag | None:
    """The flag as the newest version knows it that has it."""
    having = versions_with(given.option)
    return assumed_flags(having[-1]).find(given.option) if having else None


def _meant(given: Given, known: KnownFlags) -> str:
    """The spelling that comes nearest, whether it may be used or not; empty when none is alike."""
    return next(iter(get_close_matches(given.option.lower(), known.spellings, n=1, cutoff=0.75)), "")


def _change(given: Given, known: KnownFlags) -> tuple[str, str] | None:
    """What became of a flag that other versions have, and the way out; None when none has it."""
    positive = given.option.replace("--no-", "--", 1)
    if successor := SUCCESSORS.get(given.option) or SUCCESSORS.get(positive):
        return "it was removed", successor
    having = versions_with(given.option)
    if newer := [version for version in having if is_newer(version, known.version)]:
        return f"it came with a later one, vLLM {newer[0]} has it", f"remove it, or use vLLM {newer[0]} or newer"
    return (f"vLLM {having[-1]} was the last known to have it", "remove it") if having else None


def _nearest(wanted: str, known: KnownFlags) -> str | None:
    """The spelling that was probably meant: one that may be used and is alike, or the only few that go on from it."""
    usable = [
        spelling
        for spelling, flag in known.spellings.items()
        if flag.name not in REFUSED_FLAGS and flag.name not in _KEYS and OWNED_FLAGS.get(flag.name) != ""
    ]
    longer = [spelling for spelling in usable if wanted.startswith("--") and spelling.startswith(wanted)]
    if 0 < len(longer) <= _FEW:
        return min(longer, key=len)
    return next(iter(get_close_matches(wanted, usable, n=1, cutoff=0.75)), None)


def flags_come_once(inputs: PodInputs) -> Iterator[Finding]:
    """No flag is given twice, where the engine keeps only one of its values."""
    known = assumed_flags(version_of(inputs.engine))
    earlier: dict[str, list[Given]] = {}
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag is None or flag.name in GATHERED | OWNED_FLAGS.keys() | REFUSED_FLAGS.keys():
            continue
        same = earlier.setdefault(flag.name, [])
        if first := next((other for other in reversed(same) if _one_replaces_the_other(other, given)), None):
            yield _repeated(first, given)
        same.append(given)


def _one_replaces_the_other(first: Given, second: Given) -> bool:
    """Whether two uses of a flag cannot both count. vLLM gathers parts of an object by the flag as it is spelled."""
    if first.key and second.key and first.option == second.option:
        return first.key == second.key and not second.key.endswith("+")  # `+` appends to a list
    return True


def _repeated(first: Given, second: Given) -> Finding:
    kept = first if first.key and not second.key else second  # vLLM puts objects made of parts at the end
    return Finding(
        reason=REPEATED_ARGUMENT,
        severity="Warning",
        field=item(second.index),
        message=f"{second.flag} sets again what {first.flag} in {item(first.index)} sets,"
        f" and of the two vLLM keeps only {kept.flag} in {item(kept.index)}",
        advice="remove one of them",
    )


def arguments_hold_no_credential(inputs: PodInputs) -> Iterator[Finding]:
    """No key and no token stands in plain sight."""
    advice = f"keep it in a Secret, and give it to the engine by {_IN_SECRET}"
    known = assumed_flags(version_of(inputs.engine))
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag and flag.name in REFUSED_FLAGS:
            continue
        named = given.option == "--hf-token" or is_credential_name(given.key)
        if (named and any(given.values[:1])) or any(map(holds_credential, (given.flag, *given.values))):
            where = given.flag.partition(".")[0] if given.flag.startswith("-") else "a word"
            message = f"{shown(where)} has a key or a token in it, which everyone can read who can read the resource"
            yield argument_error(given.index, API_KEY_IN_CLEAR, message, advice)
