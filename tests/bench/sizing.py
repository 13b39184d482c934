"""The arithmetic of `sizing` against start-up logs of vLLM.

The logs are read where they lie: `SIZING_CASES` names the file, else it is looked for beside the repository. Without it
there is nothing to compare, and the table says so.
"""

import csv
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

from bench.sizing_models import text_model
from bench.table import Row
from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.catalogue.rows import GpuRow
from vlm_operator.sizing.demand import A100_CAPABILITY
from vlm_operator.sizing.memory import GIB, Device, Layout, Load, Memory, cuda_bytes, estimate

BESIDE = Path(__file__).parents[3] / "shared" / "facts" / "models" / "sizing_cases.csv"
FORMATS = {"awq": "AWQ", "gptq": "GPTQ", "fp8": "FP8", "mxfp4": "MXFP4", "int8": "INT8", "int4": "INT4"}
NEWEST_OLDER_ENGINE = (0, 7, 3)
"""What logs of 0.8 to 0.10 that say V0 are read as: the older engine lived on beside the newer one."""
OLDEST_PROFILING = (0, 5)
"""Older engines are not modelled."""
NOT_AS_USUAL = {
    "fork": "it is of a fork of vLLM",
    "outlier": "the log itself is an outlier: a setting that matters is not stated",
    "other processes": "other processes held memory of the GPU",
    "no quantisation detected": "the engine did not see that the weights were quantised",
    "unequal cards": "the GPUs differ",
}
"""Words of a log's remarks that tell that it cannot be worked out, and why."""


@dataclass(frozen=True)
class Case:
    """One log."""

    given: dict[str, str]

    def text(self, name: str) -> str:
        """A column as it is."""
        return self.given[name]

    def number(self, name: str) -> float | None:
        """A column as a number."""
        return float(self.given[name]) if self.given[name] else None

    def whole(self, name: str) -> int | None:
        """A column as a whole number."""
        found = self.number(name)
        return None if found is None else int(found)

    @cached_property
    def architecture(self) -> Architecture | None:
        """The sizes of the model, when it is one model and known."""
        name = self.text("model").split(" (")[0].split(" and ")[-1]
        match = builtin().model(name.split(" ")[0])
        if match is not None:
            return match.architecture
        if self.text("vlm") != "yes":
            return text_model(name)
        short = re.split(r" class| HF", name)[0]
        rows = [row for row in builtin().search_models(short) if short.lower() in row.hf_id.lower()]
        return rows[0].architecture if rows else None

    @cached_property
    def quantization(self) -> str | None:
        """The stored format; None when the method is not named."""
        said = self.text("dtype_quant")
        if not said or said == "int4" or "/" in said:
            return None
        return next((name for word, name in FORMATS.items() if word in said), "None")

    @cached_property
    def cuda(self) -> int | None:
        """What CUDA reports: logged, implied by the log's remarks, or from the GPU's name."""
        logged = self.number("gpu_total_gib")
        if logged is not None:
            return round(logged * GIB)
        if implied := re.search(r"implied ([0-9.]+)", self.text("gpu") + self.text("notes")):
            return round(float(implied[1]) * GIB)
        if self.row is not None and self.row.memory_mib is not None:
            return round(self.row.cuda_gib * GIB) if self.row.cuda_gib else cuda_bytes(self.row.memory_mib)
        said = None if "class" in self.text("gpu") else _SIZE.search(self.text("gpu"))
        return None if said is None else cuda_bytes(int(said[1]) * 1024)

    @cached_property
    def row(self) -> GpuRow | None:
        """The GPU in the catalogue, when the log's words tell which one it is."""
        said = _SIZE.search(self.text("gpu"))
        name = re.sub(r"[^a-z0-9]+", " ", self.text("gpu").lower()).split()
        found = [row for row in builtin().gpus if set(_model_words(row)) <= set(name)]
        if said is not None:
            found = [row for row in found if row.memory_mib and abs(row.memory_mib / 1024 - int(said[1])) <= 2]
        return found[0] if len({row.memory_mib for row in found}) == 1 else None

    @cached_property
    def version(self) -> tuple[int, ...]:
        """The engine's version, unknown taken as the newest of the logs."""
        said = self.text("vllm_version")
        found = tuple(int(number) for number in re.findall(r"[0-9]+", said.split("-")[0])[:3])
        if "V0" in said or "(V0)" in self.text("notes"):
            return min(found, NEWEST_OLDER_ENGINE) if found else NEWEST_OLDER_ENGINE
        return (0, 21) if "2x" in said else found or (0, 11)

    @cached_property
    def capability(self) -> str | None:
        """Compute capability, by the GPU's name."""
        if self.row is not None:
            return self.row.capability
        return A100_CAPABILITY if "A100" in self.text("gpu") else None

    @cached_property
    def why_not(self) -> str | None:
        """Why it cannot be worked out."""
        remarks = f"{self.text('vllm_version')} {self.text('notes')} {self.text('gpu')}"
        for words, why in NOT_AS_USUAL.items():
            if words in remarks:
                return why
        if self.architecture is None:
            return "the model is not named or its sizes are unknown"
        if self.whole("tp") is None:
            return "the degree of tensor parallelism is not stated"
        if self.version < OLDEST_PROFILING:
            return "the engine is older than 0.5 and measured otherwise"
        return None

    @cached_property
    def why_not_memory(self) -> str | None:
        """Why nothing but its weights can be worked out."""
        return self.why_not or ("the memory of the GPU is unknown" if self.cuda is None else None)

    @cached_property
    def memory(self) -> Memory:
        """What the arithmetic says."""
        if self.architecture is None:
            raise ValueError(self.why_not)
        vendor = "amd" if "AMD" in self.text("gpu") else "nvidia"
        device = Device(
            cuda_bytes=self.cuda,
            capability=self.capability or ("unknown" if vendor == "amd" else None),
            memory_utilization=self.number("gpu_memory_utilization") or _usual_share(self.version),
            vendor=vendor,
        )
        layout = Layout(tensor=self.whole("tp") or 1, pipeline=self.whole("pp") or 1)
        load = Load(
            quantization=self.quantization or "INT4",
            max_model_len=self.whole("max_model_len"),
            max_num_seqs=self.whole("max_num_seqs"),
            max_num_batched_tokens=self.whole("max_num_batched_tokens"),
            eager="eager" in self.text("notes"),
        )
        return estimate(self.architecture, device, layout, load, self.version)


def measure(_quick: bool) -> list[Row]:  # the one switch of every measurement
    """How far weights and KV cache are from the logs, and whether fits are told from failures."""
    path = Path(os.environ.get("SIZING_CASES", BESIDE))
    if not path.is_file():
        return [Row(what="sizing against start-up logs", ours="skipped: there are no logs beside the repository")]
    with path.open(encoding="utf-8", newline="") as lines:
        cases = [Case(given=given) for given in csv.DictReader(lines)]
    used = [case for case in cases if case.why_not is None]
    whole = [case for case in used if case.why_not_memory is None]
    if "SIZING_DETAILS" in os.environ:
        _print_details(used)
    families = defaultdict(list)
    for case in used:
        families[_family(case)].append(case)
    rows = [row for name in sorted(families) for row in _accuracy(name, families[name])]
    rows += _accuracy("all", used)
    rows += _verdicts(whole)
    rows += _left_out(cases)
    unnamed = [case for case in used if case.quantization is None and case.number("weights_gib")]
    rows.append(
        Row(what="left out of the weights: the 4-bit method is not named", ours=f"{len(unnamed)}: {_names(unnamed)}")
    )
    return rows


def _left_out(cases: Iterable[Case]) -> list[Row]:
    by_reason = defaultdict(list)
    for case in cases:
        if case.why_not_memory is not None:
            by_reason[case.why_not_memory].append(case)
    return [
        Row(what=f"left out: {why}", ours=f"{len(found)}: {_names(found)}")
        for why, found in sorted(by_reason.items(), key=lambda pair: -len(pair[1]))
    ]


def _accuracy(name: str, cases: list[Case]) -> list[Row]:
    weights = [
        error for case in cases if case.quantization and (error := _error(case.memory.weights, case, "weights_gib"))
    ]
    kv = [error for case in cases if (error := _error(case.memory.kv, case, "kv_gib")) and case.text("kind") == "fit"]
    rows = []
    if weights:
        worst = max(weights, key=lambda error: abs(error - 1))
        rows.append(_row(f"{name}: weights, {len(weights)} logs, worst", worst, "within 3 %"))
    if kv:
        middle = median(abs(error - 1) for error in kv)
        rows.append(Row(what=f"{name}: KV memory, {len(kv)} logs, median error", ours=f"{middle:.1%}", aim="<= 8 %"))
        rows.append(_row(f"{name}: KV memory, most optimistic", max(kv), "<= +10 %"))
    return rows


def _verdicts(cases: list[Case]) -> list[Row]:
    fits = [case for case in cases if case.text("kind") == "fit" and case.number("kv_gib")]
    failures = [case for case in cases if case.text("kind") == "no_fit"]
    refused = [case for case in fits if case.memory.fits is False]
    passed = [case for case in failures if case.memory.fits is not False]
    return [
        Row(what="real successes refused", ours=f"{len(refused)} of {len(fits)} {_names(refused)}", aim="<= 1 in 32"),
        Row(what="real failures called fitting", ours=f"{len(passed)} of {len(failures)} {_names(passed)}", aim="none"),
    ]


def _print_details(cases: Iterable[Case]) -> None:
    print("case      model                              weights log/ours   activation log/ours   KV log/ours      fits")
    for case in cases:
        m = case.memory
        pairs = [("weights_gib", m.weights), ("activation_gib", m.activation), ("kv_gib", m.kv)]
        shown = "   ".join(
            f"{case.text(name) or '-':>6} {'-' if ours is None else f'{ours / GIB:.2f}':>6}" for name, ours in pairs
        )
        print(f"{case.text('case_id'):5} {case.text('model')[:36]:38} {shown}   {case.text('kind')} {m.fits} {m.limit}")


def _row(what: str, error: float, aim: str) -> Row:
    return Row(what=what, ours=f"{error - 1:+.1%}", ratio=error, aim=aim)


def _error(ours: int | None, case: Case, column: str) -> float | None:
    logged = case.number(column)
    return None if ours is None or not logged else ours / GIB / logged


def _names(cases: Iterable[Case]) -> str:
    return " ".join(case.text("case_id") for case in cases)


def _family(case: Case) -> str:
    name = re.split(r"[/ ]", case.text("model").removeprefix("unsloth/"))
    short = next(piece for piece in reversed(name) if any(letter.isdigit() for letter in piece) and piece[0].isalpha())
    return re.split(r"-[0-9]", short)[0]


def _usual_share(version: tuple[int, ...]) -> float:
    return 0.92 if version >= (0, 20) else 0.9


_SIZE = re.compile(r"([0-9]+) ?GB")
_FORMS = frozenset({"sxm", "sxm2", "sxm4", "pcie", "nvlink"})


def _model_words(row: GpuRow) -> list[str]:
    """The words of a GPU's name without its memory and its form."""
    words = re.sub(r"[^a-z0-9]+", " ", row.name.lower()).split()
    return [word for word in words if word not in _FORMS and not re.fullmatch(r"[0-9]+gb", word)]
