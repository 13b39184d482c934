"""A VLMDeployment becomes Ready on a real control plane, in one command.

Says in a line each what it does. Everything it starts ends with it, unless `--keep` asks for it to stay.
"""

import argparse
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from controlplane.api import wait_until
from controlplane.errors import ControlPlaneError
from controlplane.tools import ensure_tools
from demo.stage import Stage, kept_stage, passing_stage

ROOT = Path(__file__).parents[2]
CRD = ROOT / "crds" / "vlmdeployments.vlm.dev.yaml"
SAMPLE = ROOT / "manifests" / "samples" / "qwen2.5-vl-7b-awq.yaml"
CLAIM = Path(__file__).with_name("claim.yaml")
TWO_SOURCES = Path(__file__).with_name("two-weights-sources.yaml")
THREE_GPUS = Path(__file__).with_name("tensor-parallel-three.yaml")
NAME = "qwen25-vl-7b"
PATIENCE = 120.0
"""Seconds until the sample must be Ready; a few are enough."""


def say(text: str) -> None:
    """Tell the audience something, at once."""
    print(text, flush=True)


def perform(stage: Stage) -> None:
    """Play the demonstration."""
    say("* install the CustomResourceDefinition")
    stage.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
    wait_until(lambda: stage.exists("vlmd"), "the API server serves the resource")
    say("* start the operator, with the ServiceAccount and the rights that an installation gives it")
    log = stage.start_operator()
    say(f"* create the claim that would hold the weights, then apply {SAMPLE.relative_to(ROOT)}")
    if not stage.exists("pvc", "models"):
        stage.kubectl("apply", "-f", str(CLAIM))
    stage.kubectl("apply", "-f", str(SAMPLE))
    wait_until_ready(stage, log)
    say("* apply a spec with two weights sources, which the API server refuses:")
    refused = stage.kubectl("apply", "-f", str(TWO_SOURCES), check=False)
    if refused.returncode == 0:
        raise ControlPlaneError("the wrong spec was accepted")
    say(indented(refused.stderr))
    say("* apply a tensor-parallel degree of 3, which the operator refuses before a GPU is booked:")
    stage.kubectl("apply", "-f", str(THREE_GPUS))
    say(indented(refusal_of(stage, "three-gpus")["message"]))
    stage.kubectl("delete", "-f", str(THREE_GPUS))
    show_the_pool(stage)
    say("$ kubectl get vlmd,pods,svc")
    say(stage.kubectl("get", "vlmd,pods,svc").stdout)
    say(
        f"VLMDeployment {NAME} serves Qwen2.5-VL-7B-Instruct AWQ with one replica on two GPUs, and another one stands by."
    )


def show_the_pool(stage: Stage) -> None:
    """A replica on standby takes over for a lost one and through a rollout; a broken revision is taken back."""
    say("* ask for a replica on standby, loaded and without traffic")
    patch(stage, {"warmPool": {"size": 1, "mode": "Standby"}})
    wait_until(lambda: names(stage, "warm"), "one is on standby", timeout_seconds=PATIENCE)
    wait_until(lambda: is_true(stage, "WarmPoolReady"), "the pool is ready", timeout_seconds=PATIENCE)
    (serving,), (warm,) = names(stage, "serving"), names(stage, "warm")
    say(f"* kill the serving replica {serving}")
    stage.kubectl("delete", "pod", serving, "--grace-period=0", "--force", "--wait=false")
    killed = time.monotonic()
    wait_until(lambda: warm in names(stage, "serving"), "the warm one serves", every_seconds=0.05)
    say(f"    {warm} serves instead, {time.monotonic() - killed:.1f} s later; the pool is filled again")
    wait_until(lambda: is_true(stage, "WarmPoolReady"), "the pool is ready", timeout_seconds=PATIENCE)
    before = revision(stage)
    say("* change the longest context: a new revision rolls out through the pool, without a further GPU")
    patch(stage, {"model": {"maxModelLen": 16384}})
    wait_until(lambda: revision(stage) != before, "a new revision is wanted")
    most, least = roll_out(stage)
    say(
        f"    revision {before} -> {revision(stage)}: never more than {most} replicas with their GPUs, never fewer than "
        f"{least} serving"
    )
    good = revision(stage)
    say("* change to an argument with which the engine ends (here the imitated kubelet says so)")
    patch(stage, {"engine": {"args": ["--seed=1"]}})
    wait_until(lambda: revision(stage) != good, "a new revision is wanted")
    fail_pods_of(stage, revision(stage))
    wait_until(lambda: reason(stage, "Ready") == "RolledBack", "it is rolled back", timeout_seconds=PATIENCE)
    say(indented(condition(resource(stage), "Ready")["message"]))
    say("* take the argument back, and all is Ready again")
    patch(stage, {"engine": {"args": None}})
    wait_until(
        lambda: is_true(stage, "Ready") and is_true(stage, "WarmPoolReady"), "all is well", timeout_seconds=PATIENCE
    )


def roll_out(stage: Stage) -> tuple[int, int]:
    """Wait until only the new revision is left; the most pods that there were, and the fewest that served."""
    most, least = 0, sys.maxsize

    def done() -> bool:
        nonlocal most, least
        live = resource(stage)
        most, least = max(most, len(pods(stage))), min(least, live["status"].get("servingReplicas", 0))
        wanted = live["status"]["updatedRevision"]
        return is_true(stage, "WarmPoolReady") and all(f"-{wanted}-" in name for name in pods(stage))

    wait_until(done, "the new revision is rolled out", timeout_seconds=PATIENCE)
    return most, least


def fail_pods_of(stage: Stage, wanted: str) -> None:
    """Have the engine of the first pod of a revision end with a complaint about an argument."""
    new = wait_until(
        lambda: [name for name in pods(stage) if f"-{wanted}-" in name], "it has a pod", timeout_seconds=PATIENCE
    )
    words = "vllm: error: unrecognized arguments: --no-such-flag"
    stage.kubectl(
        "annotate", "pod", new[0], "sim.vlm.dev/fault=exit", "sim.vlm.dev/exit-code=2", f"sim.vlm.dev/message={words}"
    )


def resource(stage: Stage) -> dict[str, Any]:
    """The VLMDeployment."""
    found: dict[str, Any] = json.loads(stage.kubectl("get", "vlmd", NAME, "-o", "json").stdout)
    return found


def patch(stage: Stage, spec: dict[str, Any]) -> None:
    """Change its spec."""
    stage.kubectl("patch", "vlmd", NAME, "--type=merge", "-p", json.dumps({"spec": spec}))


def is_true(stage: Stage, kind: str) -> bool:
    """Whether a condition holds for the spec as it is now."""
    live = resource(stage)
    found = condition(live, kind)
    return found.get("status") == "True" and found.get("observedGeneration") == live["metadata"]["generation"]


def reason(stage: Stage, kind: str) -> str:
    """The reason of a condition."""
    return str(condition(resource(stage), kind).get("reason"))


def revision(stage: Stage) -> str:
    """The revision that the spec asks for."""
    return str(resource(stage).get("status", {}).get("updatedRevision"))


def pods(stage: Stage) -> dict[str, str]:
    """The roles of its pods, by name; of those that end, too."""
    items = json.loads(stage.kubectl("get", "pods", "-l", f"vlm.dev/deployment={NAME}", "-o", "json").stdout)["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["labels"].get("vlm.dev/role", "") for pod in items}


def names(stage: Stage, role: str) -> list[str]:
    """Its pods with a role."""
    return sorted(name for name, found in pods(stage).items() if found == role)


def wait_until_ready(stage: Stage, log: Path) -> None:
    """Tell each change of the Ready condition until it is True."""
    told, deadline = "", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ready = condition(json.loads(stage.kubectl("get", "vlmd", NAME, "-o", "json").stdout), "Ready")
        now = f"{ready.get('reason', 'Pending')}: {ready.get('message', 'the operator has not seen it yet')}"
        if now != told:
            say(f"    {now}")
            told = now
        if ready.get("status") == "True":
            return
        time.sleep(0.2)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise ControlPlaneError(f"{NAME} was not Ready within {PATIENCE:.0f} s. The operator's last words:\n{tail}")


def refusal_of(stage: Stage, name: str) -> dict[str, Any]:
    """The condition Accepted once it is False."""

    def refusal() -> dict[str, Any] | None:
        found = condition(json.loads(stage.kubectl("get", "vlmd", name, "-o", "json").stdout), "Accepted")
        return found if found.get("status") == "False" else None

    return wait_until(refusal, f"{name} is refused")


def condition(resource: dict[str, Any], kind: str) -> dict[str, Any]:
    """The condition of that type, empty when there is none yet."""
    conditions: list[dict[str, Any]] = resource.get("status", {}).get("conditions", [])
    return next((found for found in conditions if found["type"] == kind), {})


def indented(text: str) -> str:
    """The lines of a text, set in."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines())


def how_to_go_on(stage: Stage) -> str:
    """What a person can do with what was left running."""
    kubectl = shlex.quote(str(ensure_tools()["kubectl"]))
    return (
        "It is left running. To use it (any kubectl from 1.35 to 1.37 does):\n"
        f"    export KUBECONFIG={shlex.quote(str(stage.kubeconfig))}\n"
        f"    {kubectl} get vlmd --watch\n"
        f"    {kubectl} scale vlmd {NAME} --replicas=2\n"
        "To stop it:\n"
        "    make cluster-down"
    )


def main() -> int:
    """Entry point of `make demo`."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running")
    keep = parser.parse_args().keep
    started = time.monotonic()
    try:
        say("* start a Kubernetes control plane with GPU nodes (their kubelets imitated by kwok)")
        with kept_stage() if keep else passing_stage() as stage:
            perform(stage)
            if keep:
                say(how_to_go_on(stage))
    except ControlPlaneError as error:
        print(f"the demo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("interrupted; everything was stopped")
        return 130
    if not keep:
        say("Everything was stopped and removed again.")
    say(f"({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
