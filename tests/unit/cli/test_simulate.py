"""`kubectl vlm simulate`: what it takes, what it says, and what it refuses."""

import io
import json
import os
import re
import subprocess
import sys
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from unit.simulator.results import result
from vlm_operator.cli import simulate, simulate_options
from vlm_operator.cli.kubectl import ACCEPTED, INTERRUPTED, REFUSED, UNUSABLE, main
from vlm_operator.cli.progress import Progress
from vlm_operator.cli.simulate_table import duration
from vlm_operator.simulator.policies import POLICIES
from vlm_operator.simulator.result import Result
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.traces.registry import FORMATS

KEYS = ["attainment", "gpuHours", "p50Wait", "p95Wait", "p99Wait", "scaleEvents", "flaps", "requests", "worst10min"]
HEADER = "time_s,prompt_tokens,output_tokens,images,vision_tokens\n"
TRACE = HEADER + "".join(f"{number * 0.5},{900 + number % 7 * 100},{20 + number % 40},1,768\n" for number in range(400))


def deployment(**spec: Any) -> dict[str, Any]:
    base = {
        "model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "quantization": "AWQ", "maxModelLen": 32768},
        "weights": {"persistentVolumeClaim": {"claimName": "models"}},
        "parallelism": {"tensor": 2},
        "gpu": {"products": ["NVIDIA-L40S"]},
        "multimodal": {"limitsPerPrompt": {"image": 2, "video": 0}, "maxPixels": 1003520},
        "replicas": 2,
        "scaling": {"maxReplicas": 6},
    }
    return {
        "apiVersion": "vlm.dev/v1alpha1",
        "kind": "VLMDeployment",
        "metadata": {"name": "qwen"},
        "spec": base | spec,
    }


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a trace and a deployment."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(TRACE)
    (tmp_path / "vlmd.yaml").write_text(yaml.safe_dump(deployment()))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def said(*options: str, trace: str = "t.csv", form: str = "csv") -> tuple[int, str, str]:
        try:
            code = main(["simulate", "--trace", trace, "--format", form, *options])
        except SystemExit as left:
            code = int(str(left.code))
        found = capsys.readouterr()
        return code, found.out, found.err

    return said


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would be replayed, instead of replaying it: all requests wait for 1 s."""
    asked: list[dict[str, Any]] = []

    def replay(trace: Any, physics: Any, policy: str, **options: Any) -> Result:
        asked.append({"trace": trace, "physics": physics, "policy": policy, **options})
        return result(trace.times.tolist(), [1.0] * len(trace))

    monkeypatch.setattr(simulate, "replay", replay)
    return asked


def deploy(**spec: Any) -> None:
    Path("vlmd.yaml").write_text(yaml.safe_dump(deployment(**spec)))


# -- a whole run -------------------------------------------------------------------------------------------------------
def test_json_has_these_keys_and_nothing_else_is_said(run: Any) -> None:
    code, out, err = run("-o", "json")
    data = json.loads(out)
    assert (code, err) == (ACCEPTED, "")
    assert list(data) == KEYS
    assert data["requests"] == 400
    assert 0 <= data["worst10min"] <= data["attainment"] <= 1
    assert data["gpuHours"] > 0


def test_the_same_seed_gives_the_same_answer_and_another_one_another(run: Any) -> None:
    one, same, other = (run("-o", "json", "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert one == same
    assert one != other


def test_the_table_says_it_in_words(run: Any) -> None:
    code, out, _ = run("-f", "vlmd.yaml", "--front-end", "0.35", "--cold-start", "45", "--routing", "least-outstanding")
    assert code == ACCEPTED
    assert re.match(r"t\.csv under work-based: [\d.]+% in time, [\d.]+ GPU hours\n", out)
    for words in (
        "Requests: 400 within 3 min 19 s, 2.01 per second",
        "Prompt of a request: 1199 tokens on average, 64% of them of images; images: 1\n",
        "Answer to a request: 40 tokens on average",
        "Scaling: work-based, from 1 to 6 replicas, read every 15 s; a request goes to the replica with the fewest requests\n",
        "Replica: 2 GPUs, 64 requests at once, 250000 tokens of KV cache",
        "  Prompts: 4000 tokens per second, 0.05 s for each image, 0.015 s for each request",
        "  Answers: 0.025 s for each token, 0.0005 s more for each request that runs",
        "  Front end: 0.35 s for each image, 0.002 s for each request, 1 at a time",
        "  Cold start: 45 s, give or take 20%",
        "In the queue for up to 2 s: ",
        " in the worst 10 minutes\n",
        "Wait in the queue: half up to ",
        "GPU hours: ",
        "Changes of the size: ",
    ):
        assert words in out, words


def test_a_picture_is_written(run: Any, folder: Path) -> None:
    code, _, _ = run("--plot", "out.png")
    assert code == ACCEPTED
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")


# -- what it takes -----------------------------------------------------------------------------------------------------
def test_what_is_asked_for_is_what_is_replayed(run: Any, replayed: list[dict[str, Any]]) -> None:
    run(
        "--policy",
        "hpa",
        "--routing",
        "fewest-unstarted",
        "--cold-start",
        "0",
        "--scrape",
        "5",
        "--front-end",
        "0.35",
        "--seed",
        "7",
    )
    (asked,) = replayed
    assert asked["policy"] == "hpa"
    assert asked["routing"] is Routing.FEWEST_UNSTARTED
    assert (asked["scrape_seconds"], asked["seed"], asked["spec"]) == (5, 7, None)
    assert (asked["physics"].cold_start_seconds, asked["physics"].front_end_seconds_per_image) == (0, 0.35)
    assert len(asked["trace"]) == 400


def test_defaults(run: Any, replayed: list[dict[str, Any]]) -> None:
    run()
    (asked,) = replayed
    assert (asked["policy"], asked["routing"], asked["scrape_seconds"], asked["seed"]) == (
        "work-based",
        Routing.RANDOM,
        15,
        1,
    )
    assert (asked["physics"].cold_start_seconds, asked["physics"].front_end_seconds_per_image) == (90, 0.35)


TARGETS = {"maxReplicas": 6, "policy": "Targets", "targets": {"queueDepth": 4}}


@pytest.mark.parametrize(
    ("scaling", "options", "policy"),
    [
        ({"maxReplicas": 6}, [], "work-based"),
        ({"maxReplicas": 6, "policy": "WorkBased"}, [], "work-based"),
        (TARGETS, [], "targets"),
        (TARGETS, ["--policy", "work-based"], "work-based"),
        (TARGETS | {"policy": "WorkBased"}, ["--policy", "targets"], "targets"),
        (TARGETS, ["--policy", "static:3"], "static:3"),
    ],
)
def test_the_policy_is_the_one_asked_for_or_that_of_the_spec(
    run: Any, replayed: list[dict[str, Any]], scaling: dict[str, Any], options: list[str], policy: str
) -> None:
    deploy(scaling=scaling)
    code, _, err = run("-f", "vlmd.yaml", *options)
    assert (code, err) == (ACCEPTED, "")
    assert replayed[0]["policy"] == policy
    assert replayed[0]["spec"].scaling.max_replicas == 6


def test_all_of_scaling_counts_though_the_operator_does_not_act_on_it_yet(
    run: Any, replayed: list[dict[str, Any]]
) -> None:
    schedules = [{"schedule": "0 7 * * 1-5", "timeZone": "Europe/Berlin", "minReplicas": 3}]
    behavior = {
        "scaleDown": {"stabilizationWindowSeconds": 60, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    }
    deploy(scaling=TARGETS | {"schedules": schedules, "behavior": behavior, "minReplicas": 2}, warmPool={"size": 1})
    code, out, err = run("-f", "vlmd.yaml")
    assert (code, err) == (ACCEPTED, "")
    assert "from 2 to 6 replicas" in out
    assert replayed[0]["spec"].scaling.schedules[0].min_replicas == 3
    assert main(["plan", "-f", "vlmd.yaml"]) == REFUSED


def test_the_degree_is_that_of_the_sizing_where_the_spec_leaves_it_open(
    run: Any, replayed: list[dict[str, Any]]
) -> None:
    deploy(parallelism={"tensor": "Auto"})
    run("-f", "vlmd.yaml")
    assert replayed[0]["spec"].parallelism.tensor == 1


def test_standard_input(run: Any, replayed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(TRACE.encode()))))  # type: ignore[arg-type] # it reads as a raw stream does
    code, out, _ = run(trace="-")
    assert (code, len(replayed[0]["trace"])) == (ACCEPTED, 400)
    assert out.startswith("standard input under work-based: ")


def test_a_closed_standard_input_is_told(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    said = "kubectl vlm: standard input is closed; give it a trace, or name a file\n"
    assert run(trace="-") == (UNUSABLE, "", said)
    assert run("-f", "-") == (UNUSABLE, "", "kubectl vlm: standard input is closed\n")


def test_a_name_that_is_no_text_is_shown_as_well_as_it_can_be(run: Any, folder: Path) -> None:
    name = os.fsdecode(b"a\xff.csv")
    (folder / "t.csv").rename(folder / name)
    code, out, _ = run("--plot", "out.png", trace=name)
    assert (code, out.partition(" under")[0]) == (ACCEPTED, "a\ufffd.csv")


def test_other_formats_are_files_or_folders(run: Any, replayed: list[dict[str, Any]], folder: Path) -> None:
    (folder / "azure").mkdir()
    (folder / "azure" / "code.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n"
    )
    (folder / "moon.jsonl").write_text(
        '{"timestamp": 5, "input_length": 600, "output_length": 2, "hash_ids": [1, 2]}\n'
    )
    holds = {"text_tokens": "{9: 1}", "image_tokens": "{5: 1}", "image_count": "{1: 1}", "output_tokens": "{7: 1}"}
    (folder / "chunk-4-trace.csv").write_text("0,0.5,1,Gamma,1,2\n")
    (folder / "chunk-4-dataset.json").write_text(json.dumps({"0": holds}))
    for trace, form, requests in (
        ("azure", "azure", 1),
        ("azure/code.csv", "azure", 1),
        ("moon.jsonl", "mooncake", 1),
        (".", "servegen", 300),
        ("chunk-4-trace.csv", "servegen", 300),
        ("./chunk-4-trace.csv", "servegen", 300),
    ):
        assert run(trace=trace, form=form)[0] == ACCEPTED
        assert len(replayed.pop()["trace"]) == requests
    drawn = [
        run("--seed", seed, trace=".", form="servegen") and replayed.pop()["trace"].times for seed in ("1", "1", "2")
    ]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_the_options_name_every_format() -> None:
    assert set(simulate_options.FORMATS) == FORMATS.keys()


def test_the_help_names_every_policy_and_how_to_set_another_target(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    code, out, _ = run("--help")
    assert code == ACCEPTED
    assert f"what decides the size: {', '.join(POLICIES)}; " in out
    assert "NAME:VALUE sets another main target of those from hpa on, as in hpa:5; " in out


def test_the_longest_times_give_plain_numbers(run: Any) -> None:
    longest = f"{simulate_options.LONGEST_SECONDS:g}"
    seconds = [part for option in ("--cold-start", "--scrape", "--front-end", "--slo") for part in (option, longest)]
    code, out, err = run("-o", "json", *seconds)
    assert (code, "RuntimeWarning" in err) == (ACCEPTED, False)
    assert all(isfinite(value) for value in json.loads(out).values())


@pytest.mark.parametrize(("waits", "shown"), [(1.0, 1.0), (inf, None)])
def test_json_is_valid_where_waits_have_no_end(
    run: Any, monkeypatch: pytest.MonkeyPatch, waits: float, shown: float | None
) -> None:
    monkeypatch.setattr(simulate, "replay", lambda trace, *_, **__: result(trace.times.tolist(), [waits] * len(trace)))
    code, out, _ = run("-o", "json")
    data = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (code, data["p50Wait"], data["p99Wait"]) == (ACCEPTED, shown, shown)


# -- warnings ----------------------------------------------------------------------------------------------------------
def test_requests_out_of_order_are_a_warning(run: Any, replayed: list[dict[str, Any]]) -> None:
    Path("t.csv").write_text(HEADER + "30,1,1,0,0\n0,1,1,0,0\n")
    code, _, err = run()
    assert (code, len(replayed)) == (ACCEPTED, 1)
    assert err == (
        "Warning: t.csv, line 3: is 30 s earlier than the line before; the requests are replayed in the order of their times\n"
    )


def test_a_trace_shorter_than_a_reading_of_the_replicas_is_a_warning(run: Any, replayed: list[dict[str, Any]]) -> None:
    code, _, err = run("--scrape", "300")
    assert (code, len(replayed)) == (ACCEPTED, 1)
    assert err == (
        "Warning: the trace takes 200 s, less than the 300 s between two readings of a replica: scaling sees next to nothing; "
        "give a longer trace, or a shorter --scrape\n"
    )


def test_one_request_and_a_gap_of_a_day_work(run: Any) -> None:
    Path("t.csv").write_text(HEADER + "5,100,10,1,64\n")
    assert (run("-o", "json")[0], run()[0], run("--plot", "one.png")[0]) == (ACCEPTED,) * 3
    Path("t.csv").write_text(HEADER + "5,100,10,1,64\n86405,100,10,1,64\n")
    code, out, _ = run("-o", "json", "--scrape", "300")
    assert (code, json.loads(out)["requests"]) == (ACCEPTED, 2)


# -- what it refuses ---------------------------------------------------------------------------------------------------
OPTIONS = [
    (["--cold-start", "-1"], "argument --cold-start: '-1' must be a number of seconds from 0 to 86400"),
    (["--cold-start", "nan"], "argument --cold-start: 'nan' must be a number of seconds from 0 to 86400"),
    (["--cold-start", "86400.1"], "argument --cold-start: '86400.1' must be a number of seconds from 0 to 86400"),
    (["--front-end", "1e39"], "argument --front-end: '1e39' must be a number of seconds from 0 to 86400"),
    (["--front-end", "inf"], "argument --front-end: 'inf' must be a number of seconds from 0 to 86400"),
    (["--slo", "soon"], "argument --slo: 'soon' must be a number of seconds from 0 to 86400"),
    (["--slo", "9" * 300], "argument --slo: '999"),
    (["--scrape", "0"], "argument --scrape: '0' must be a number of seconds from 0.1 to 86400"),
    (["--scrape", "1e300"], "argument --scrape: '1e300' must be a number of seconds from 0.1 to 86400"),
    (["--seed", "-1"], "argument --seed: '-1' must be a whole number from 0 to 4294967295"),
    (["--seed", "1.5"], "argument --seed: '1.5' must be a whole number from 0 to 4294967295"),
    (["--seed", "9" * 30], f"argument --seed: '{'9' * 30}' must be a whole number from 0 to 4294967295"),
    (["--seed", "9" * 5000], " must be a whole number from 0 to 4294967295"),
    (["--seed", "0" * 12 + "9" * 12], " must be a whole number from 0 to 4294967295"),
    (["--routing", "best"], "argument --routing: invalid choice: 'best' (choose from "),
    (["-o", "yaml"], "argument -o/--output: invalid choice: 'yaml'"),
    (["--plot", "out.jpg"], "argument --plot: 'out.jpg' must be the name of a file that ends with .png"),
    (
        ["--plot", "no/out.png"],
        "no/out.png is in a folder that does not exist; give --plot the name of a file that can be written",
    ),
    (["--plot", "folder.png"], "folder.png is a folder; give --plot the name of a file that can be written"),
    (["--policy", "best"], "--policy: there is no policy 'best'; there are work-based, targets, hpa, "),
    (["--policy", ""], "--policy: there is no policy ''; there are work-based, "),
    (["--policy", "static:x"], "--policy: the policy 'static:x' needs a number of replicas from 1 to 1000"),
    (["--policy", "wva-v1:7"], "--policy: the policy 'wva-v1:7' needs a number from 0.001 to 5 after the colon"),
    (["--policy", "targets"], "--policy targets needs -f, a VLMDeployment with spec.scaling.targets"),
    (["-f", "none.yaml"], "none.yaml cannot be read: no such file or directory"),
    (["--trace", "none.csv"], "none.csv cannot be read: no such file or directory"),
    (["--trace", "folder.png"], "folder.png is a folder; name the csv file itself"),
    (
        ["--trace", "vlmd.yaml"],
        (
            "vlmd.yaml, line 1: columns time_s, prompt_tokens, output_tokens, images, vision_tokens are missing, "
            "and 'apiVersion: vlm.dev/v1alpha1' is not known; "
        ),
    ),
    (["--trace", ""], "argument --trace: expected the name of a file"),
    (["--trace", "x" * 5000], "cannot be read: file name too long"),
    (["--trace", "-", "-f", "-"], "only one of --trace and -f can be standard input; give the other as a file"),
]


@pytest.mark.parametrize(("options", "said"), OPTIONS, ids=[" ".join(options)[:40] for options, _ in OPTIONS])
def test_options_and_files_that_cannot_be_used(
    run: Any, replayed: list[dict[str, Any]], folder: Path, options: list[str], said: str
) -> None:
    (folder / "folder.png").mkdir()
    code, out, err = run(*options)
    assert (code, out, replayed) == (UNUSABLE, "", [])
    assert said in err
    assert "Traceback" not in err


def test_a_trace_that_does_not_fit_into_memory(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setitem(FORMATS, "csv", full)
    said = "kubectl vlm: t.csv does not fit into the memory that is free; give a part of it\n"
    assert run() == (UNUSABLE, "", said)


def test_a_folder_that_may_not_be_read(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", denied)
    assert run(trace=".", form="servegen") == (UNUSABLE, "", "kubectl vlm: . cannot be read: permission denied\n")


SPECS = [
    ({"scaling": {"maxReplicas": 6, "policy": "Targets"}}, "spec.scaling.policy: is Targets and there is no target"),
    ({"scaling": {"minReplicas": 7, "maxReplicas": 6}}, "minReplicas must not be greater than maxReplicas"),
    ({"scaling": TARGETS | {"targets": {"gpuUtilization": 101}}}, "spec.scaling.targets.gpuUtilization: is 101 "),
    ({"scaling": TARGETS | {"targets": {"gpuUtilization": 0}}}, "spec.scaling.targets.gpuUtilization: is 0 "),
    ({"scaling": TARGETS | {"targets": {"queueDepth": -1}}}, "spec.scaling.targets.queueDepth: is -1 "),
    (
        {"scaling": TARGETS | {"targets": {"custom": [{"name": "a", "query": "b", "target": "0"}]}}},
        "spec.scaling.targets.custom/a: is 0; set a value greater than 0",
    ),
    (
        {"scaling": {"maxReplicas": 6, "schedules": [{"schedule": "0 0 30 2 *", "minReplicas": 2}]}},
        'spec.scaling.schedules[0].schedule: "0 0 30 2 *" never comes; name a day that its month has',
    ),
    (
        {
            "scaling": {
                "maxReplicas": 6,
                "schedules": [{"schedule": "0 0 1 2 *", "timeZone": "Europe/Atlantis", "minReplicas": 2}],
            }
        },
        "spec.scaling.schedules[0].timeZone: Europe/Atlantis is no time zone that is known here; ",
    ),
    (
        {"scaling": {"maxReplicas": 6, "schedules": [{"schedule": "0 0 1 2 *", "minReplicas": 9}]}},
        "spec.scaling.schedules[0].minReplicas: is 9, which is greater than maxReplicas (6)",
    ),
    ({"replicas": 0}, "spec.replicas: is 0, which turns the deployment off; set the number of replicas"),
    ({"parallelism": {"tensor": 3}}, "spec.parallelism.tensor: tensor is 3, but the model has 28 attention heads"),
    (
        {"podTemplate": {"compileCache": {}}},
        "spec.podTemplate.compileCache: this field is not supported yet; remove it",
    ),
]


@pytest.mark.parametrize(("spec", "said"), SPECS, ids=[said[:50] for _, said in SPECS])
def test_a_spec_that_is_refused_is_told_in_sentences(
    run: Any, replayed: list[dict[str, Any]], spec: dict[str, Any], said: str
) -> None:
    deploy(**spec)
    code, out, err = run("-f", "vlmd.yaml")
    assert (code, out, replayed) == (REFUSED, "", [])
    assert said in err
    assert err.startswith("Error: ")
    assert "remove spec.scaling" not in err, "all of spec.scaling counts here"


def test_targets_asked_for_that_the_spec_does_not_have(run: Any) -> None:
    code, _, err = run("-f", "vlmd.yaml", "--policy", "targets")
    assert (code, "there is no target; set one under spec.scaling.targets" in err) == (REFUSED, True)


def test_warnings_about_a_spec_are_told_and_it_goes_on(run: Any, replayed: list[dict[str, Any]]) -> None:
    deploy(parallelism={"tensor": 3}, checks="Warn")
    code, _, err = run("-f", "vlmd.yaml")
    assert (code, len(replayed)) == (ACCEPTED, 1)
    assert err.startswith("Warning: spec.parallelism.tensor: ")


CUSTOM = {"custom": [{"name": "tokens", "query": "sum(tokens)", "target": "10"}]}


def test_targets_on_metrics_of_ones_own_are_left_out_with_a_warning(run: Any, replayed: list[dict[str, Any]]) -> None:
    deploy(scaling=TARGETS | {"targets": {"queueDepth": 4} | CUSTOM})
    code, _, err = run("-f", "vlmd.yaml")
    assert (code, replayed[0]["spec"].scaling.targets.custom) == (ACCEPTED, [])
    assert err.startswith("Warning: spec.scaling.targets.custom: is left out (tokens): ")


def test_targets_on_nothing_but_metrics_of_ones_own_are_refused(run: Any, replayed: list[dict[str, Any]]) -> None:
    deploy(scaling=TARGETS | {"targets": CUSTOM})
    code, _, err = run("-f", "vlmd.yaml")
    assert (code, replayed) == (REFUSED, [])
    assert "spec.scaling.policy: is Targets and there is no target" in err


# -- surroundings ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("missing", "options", "said"),
    [
        (["numba"], [], "simulate needs numba, which is not installed"),
        (["numba", "numpy"], [], "simulate needs numpy and numba, which are not installed"),
        (["matplotlib"], ["--plot", "a.png"], "simulate needs matplotlib, which is not installed"),
    ],
)
def test_a_library_that_is_missing_is_told_with_what_to_install(
    run: Any, monkeypatch: pytest.MonkeyPatch, missing: list[str], options: list[str], said: str
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = run(*options)
    assert (code, out) == (UNUSABLE, "")
    assert err == f"kubectl vlm: {said}; install the extra: pip install 'vlm-operator[simulate]'\n"


def test_without_a_plot_nothing_for_plots_is_needed(
    run: Any, replayed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert (run()[0], len(replayed)) == (ACCEPTED, 1)


def test_the_other_commands_load_nothing_of_the_simulator() -> None:
    script = (
        "import sys; from vlm_operator.cli.kubectl import main; main(['models', 'qwen']); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'matplotlib', 'vlm_operator.simulator.trace')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).returncode == 0


def test_an_interrupt_ends_it_without_a_traceback(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "replay", interrupted)
    assert run() == (INTERRUPTED, "", "")


def test_a_plot_that_cannot_be_written_is_told(
    run: Any, replayed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    code, out, err = run("--plot", "out.png")
    assert (code, out, len(replayed)) == (UNUSABLE, "", 1)
    assert err == "kubectl vlm: out.png cannot be written: no space left on device\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_in_place_on_a_terminal_and_wiped() -> None:
    terminal = Terminal()
    progress = Progress(200.0, terminal)
    for done in (0.0, 0.5, 100.0, 100.1, 500.0):
        progress(done)
    progress.end()
    *drawn, wiped, end = terminal.getvalue().split("\r")[1:]
    assert [line[-5:] for line in drawn] == ["  0 %", " 50 %", "100 %"]
    assert drawn[1].count("#") == 15
    assert (wiped.strip(), end) == ("", "")


def test_progress_elsewhere_or_of_nothing_is_silent() -> None:
    for whole, stream in ((200.0, io.StringIO()), (0.0, Terminal())):
        progress = Progress(whole, stream)
        progress(0.0)
        progress.end()
        assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 s"),
        (0.25, "0.25 s"),
        (59.9, "59.9 s"),
        (60, "1 min 0 s"),
        (3599.9, "59 min 59 s"),
        (86399, "23 h 59 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_durations_in_their_two_largest_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said
