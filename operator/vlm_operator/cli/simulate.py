"""`kubectl vlm simulate`: a trace replayed under a policy, and what came of it."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.cli.files import read_resource
from vlm_operator.cli.progress import Progress
from vlm_operator.cli.simulate_table import Question, lines
from vlm_operator.cli.trace_files import read_trace
from vlm_operator.replicas.evaluate import Judgement, evaluate, findings_that_count
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.scaling.policy import PolicyError
from vlm_operator.simulator.measures import measure
from vlm_operator.simulator.peers.registry import factory
from vlm_operator.simulator.peers.settings import SettingsError
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.replay import TARGETS, WORK_BASED, default_spec, policy_for, replay
from vlm_operator.simulator.result import Result
from vlm_operator.simulator.routing import Routing
from vlm_operator.sizing.catalogue.loading import Catalogue

SIMULATED = ("scaling",)
"""Fields that count here although the operator does not act on all of them yet."""


def run(options: argparse.Namespace, catalogue: Catalogue) -> bool:
    """Replay a trace and tell; False when the VLMDeployment is refused. Raises UnusableInputError."""
    _check(options)
    spec = None
    if options.filename:
        spec, findings = _read(options.filename, catalogue, options)
        for finding in findings:
            sys.stderr.write(f"{finding.severity}: {finding.sentence()}\n")
        if any(finding.severity == "Error" for finding in findings):
            return False
    question = _question(options, spec)
    result = _replayed(question)
    measures = measure(result, slo_seconds=question.slo_seconds)
    if options.plot:
        _draw(options.plot, question, result)
    if options.output == "json":
        sys.stdout.write(json.dumps(measures.as_data(), indent=2, allow_nan=False) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines(question, result, measures)))
    return True


def _check(options: argparse.Namespace) -> None:
    """Tell at once what would else be told after a long replay."""
    if options.trace == "-" == options.filename:
        raise UnusableInputError("only one of --trace and -f can be standard input; give the other as a file")
    if (plot := options.plot) and (plot.is_dir() or not plot.parent.is_dir()):
        what = "is a folder" if plot.is_dir() else "is in a folder that does not exist"
        raise UnusableInputError(f"{plot} {what}; give --plot the name of a file that can be written")
    policy = options.policy
    if policy is not None and policy not in (WORK_BASED, TARGETS):
        try:
            factory(policy)
        except SettingsError as error:
            raise UnusableInputError(f"--policy: {error}") from error
    if policy == TARGETS and not options.filename:
        raise UnusableInputError(f"--policy {TARGETS} needs -f, a VLMDeployment with spec.scaling.targets")


def _read(
    filename: str, catalogue: Catalogue, options: argparse.Namespace
) -> tuple[VLMDeploymentSpec | None, tuple[Finding, ...]]:
    """The spec in a file, and what is to be said about it."""
    judged = evaluate(read_resource(filename), catalogue=catalogue, also=SIMULATED)
    findings = findings_that_count(judged)
    if judged.spec is None or any(finding.severity == "Error" for finding in findings):
        return judged.spec, findings
    unusable = tuple(_not_to_simulate(judged.spec, options))
    if unusable:
        return judged.spec, (*findings, *unusable)
    spec, left_out = _without_custom_targets(judged.spec)
    return _sized(judged, spec), (*findings, *left_out, *_not_to_simulate(spec, options))


def _without_custom_targets(spec: VLMDeploymentSpec) -> tuple[VLMDeploymentSpec, tuple[Finding, ...]]:
    """The spec without targets on metrics that a trace tells nothing of, and a word about them."""
    scaling = spec.scaling
    if scaling is None or scaling.targets is None or not scaling.targets.custom:
        return spec, ()
    names = ", ".join(custom.name for custom in scaling.targets.custom)
    left_out = Finding(
        reason=INVALID_FIELD,
        severity="Warning",
        field="spec.scaling.targets.custom",
        message=f"is left out ({names}): a trace tells nothing of metrics of one's own",
        advice="try these targets in a cluster with mode: Advisory",
    )
    kept = scaling.targets.model_copy(update={"custom": []})
    return spec.model_copy(update={"scaling": scaling.model_copy(update={"targets": kept})}), (left_out,)


def _sized(judged: Judgement, spec: VLMDeploymentSpec) -> VLMDeploymentSpec:
    """The spec with the degree that the sizing chooses where it says Auto."""
    if spec.parallelism.tensor != "Auto" or judged.assessment is None or judged.assessment.tensor_parallel is None:
        return spec
    chosen = spec.parallelism.model_copy(update={"tensor": judged.assessment.tensor_parallel})
    return spec.model_copy(update={"parallelism": chosen})


def _not_to_simulate(spec: VLMDeploymentSpec, options: argparse.Namespace) -> Iterator[Finding]:
    """What is wrong with a spec as something that is scaled."""
    try:
        policy_for(spec, _policy(options, spec), Physics(), scrape_seconds=options.scrape)
    except PolicyError as error:
        yield error.finding
    if not spec.replicas:
        yield Finding(
            reason=INVALID_FIELD,
            severity="Error",
            field="spec.replicas",
            message="is 0, which turns the deployment off",
            advice="set the number of replicas that there are when the trace begins",
        )


def _policy(options: argparse.Namespace, spec: VLMDeploymentSpec | None) -> str:
    """The name of the policy: as asked for, or that of the spec."""
    by_targets = spec is not None and spec.scaling is not None and spec.scaling.policy == "Targets"
    asked: str | None = options.policy
    return asked if asked is not None else TARGETS if by_targets else WORK_BASED


def _question(options: argparse.Namespace, spec: VLMDeploymentSpec | None) -> Question:
    loaded = read_trace(options.trace, options.format, seed=options.seed)
    for notice in loaded.notices:
        sys.stderr.write(f"Warning: {notice}\n")
    if loaded.trace.seconds < options.scrape:
        sys.stderr.write(
            f"Warning: the trace takes {loaded.trace.seconds:.3g} s, less than the {options.scrape:g} s between two readings "
            "of a replica: scaling sees next to nothing; give a longer trace, or a shorter --scrape\n"
        )
    physics = Physics(cold_start_seconds=options.cold_start, front_end_seconds_per_image=options.front_end)
    rules = policy_for(spec or default_spec(), WORK_BASED, physics, scrape_seconds=options.scrape)
    return Question(
        name="standard input" if options.trace == "-" else _printable(options.trace),
        trace=loaded.trace,
        spec=spec,
        policy=_policy(options, spec),
        least=rules.min_replicas,
        most=rules.max_replicas,
        physics=physics,
        routing=Routing(options.routing),
        scrape_seconds=options.scrape,
        slo_seconds=options.slo,
        seed=options.seed,
    )


def _printable(name: str) -> str:
    """The name of a file, whatever bytes it has."""
    return os.fsencode(name).decode(errors="replace")


def _replayed(question: Question) -> Result:
    progress = Progress(question.trace.seconds, sys.stderr)
    try:
        return replay(
            question.trace,
            question.physics,
            question.policy,
            spec=question.spec,
            routing=question.routing,
            scrape_seconds=question.scrape_seconds,
            seed=question.seed,
            progress=progress,
        )
    finally:
        progress.end()


def _draw(path: Path, question: Question, result: Result) -> None:
    from vlm_operator.simulator.plot import png  # noqa: PLC0415 # needs one library more

    image = png(question.trace, result, slo_seconds=question.slo_seconds, title=question.title)
    try:
        path.write_bytes(image)
    except OSError as error:
        raise UnusableInputError(f"{path} cannot be written: {str(error.strerror).lower()}") from error
