"""The image: built from the Dockerfile as it is, and run as a cluster would run it."""

import os
import re
import shlex
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.support import image as images
from cluster.support.contained import ContainedOperator, account_files
from cluster.support.image import Image
from cluster.support.operator import CRD, ROOT, Deployments
from controlplane import ControlPlane, l4, wait_until
from vlm_operator import __version__

if why := images.missing():
    pytest.skip(why, allow_module_level=True)
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(1800),  # the first build
]

DOCUMENT = ROOT / "docs" / "image.md"
BUILT_IN = ROOT / "operator" / "vlm_operator" / "engines" / "templates" / "vllm" / "pod.yaml.j2"
TEMPLATES = "/run/templates"
MEGABYTE = 1_000_000
INSTALLERS = {"pip", "ensurepip", "setuptools", "pkg_resources", "wheel", "hatchling"}
COMPILERS = {"cc", "c++", "gcc", "g++", "clang", "as", "ld", "make"}
UNCHECKED_HASH = (1).to_bytes(4, "little")
MORE_THAN_A_PIPE_HOLDS = 1 << 17
SOME_USER = 1000740000
"""As OpenShift gives to the pods of a namespace."""


@pytest.fixture(scope="module")
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a line for the person who watches the tests."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", flush=True)  # noqa: T201

    return say


@pytest.fixture(scope="module")
def image(tell: Callable[[str], None]) -> Image:
    """The image of the sources as they are."""
    return images.build(tell)


def run(image: Image, *argv: str, user: int | None = None, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a container to its end."""
    command = image.container(user=user).command(*argv)
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)


def test_it_says_how_it_is_run(image: Image) -> None:
    assert image.config["User"] == "65532:65532"
    assert image.config["Entrypoint"] == ["vlm-operator"]
    assert image.config["Cmd"] == ["run"]
    assert list(image.config["ExposedPorts"]) == ["8080/tcp"]
    assert image.config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_what_is_unchanged_is_not_built_again(image: Image) -> None:
    assert images.build(pytest.fail) == image


def test_its_size_over_the_base(image: Image, tell: Callable[[str], None]) -> None:
    tell(f"the image is {image.bytes_over_base / MEGABYTE:.0f} MB larger than its base")
    assert image.bytes_over_base <= 220 * MEGABYTE


def test_nothing_in_it_installs_or_compiles(image: Image) -> None:
    found = {path.name for path in image.rootfs.rglob("*")}
    programs = {path.name for path in image.rootfs.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    assert "python3.11" in programs
    assert programs & COMPILERS == set()
    assert [name for name in found if name in INSTALLERS or name.startswith(("pip-", "pip3", "setuptools-"))] == []


def test_all_of_python_is_there_as_byte_code_that_is_never_checked(image: Image) -> None:
    homes = [image.rootfs / "opt" / "vlm-operator", *image.rootfs.glob("usr/lib/python3.*")]
    modules = {module for home in homes for module in home.rglob("*.py")}
    codes = [code for home in homes for code in home.rglob("*.pyc")]
    assert len(modules) > 3000
    assert modules - {code.parents[1] / f"{code.name.partition('.')[0]}.py" for code in codes} == set()
    # PEP 552: by hash, without a look at the source. Otherwise all would hang on the times of the files.
    assert {code.read_bytes()[4:8] for code in codes} == {UNCHECKED_HASH}


def test_only_root_may_change_it(image: Image) -> None:
    files = [file for file in (image.rootfs / "opt").rglob("*") if not file.is_symlink()]
    assert [file for file in files if file.stat().st_uid or file.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)] == []


def test_a_container_has_no_rights_and_cannot_write(image: Image) -> None:
    places = ("", "/tmp", "/run", "/dev", "/dev/shm", "/opt")  # noqa: S108
    look = 'id -u; echo $$; grep -hE "CapEff|NoNewPrivs" /proc/self/status; for place; do touch "$place/x"; done'
    done = run(image, "sh", "-c", look, "sh", *places)
    assert done.stdout.split() == ["65532", "1", "CapEff:", "0000000000000000", "NoNewPrivs:", "1"]
    assert [line.split("'")[1] for line in done.stderr.splitlines()] == [f"{place}/x" for place in places]


@pytest.mark.parametrize("user", [None, SOME_USER], ids=["its-own-user", "some-user"])
def test_it_helps(image: Image, user: int | None) -> None:
    for program in ("vlm-operator", "kubectl-vlm"):
        done = run(image, program, "--help", user=user)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"usage: {program.replace('-vlm', ' vlm')}")
    assert run(image, "vlm-operator", "--version", user=user).stdout == f"vlm-operator {__version__}\n"


def test_it_prints_the_crd(image: Image) -> None:
    assert run(image, "vlm-operator", "crd").stdout == CRD.read_text()


def test_it_plans_as_its_document_shows(image: Image) -> None:
    shown = re.search(r"^docker run .* --entrypoint (\S+) \S+:(\S+) (.*) < (\S+)$", DOCUMENT.read_text(), re.MULTILINE)
    assert shown
    program, version, arguments, file = shown.groups()
    assert version == __version__
    done = run(image, program, *shlex.split(arguments), text=(ROOT / file).read_text())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("qwen25-vl-7b: accepted")


def test_without_a_cluster_it_says_so(image: Image) -> None:
    done = run(image, *image.config["Entrypoint"], *image.config["Cmd"])
    assert done.returncode == 1
    assert "vlm-operator: no usable cluster configuration" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_works_in_a_cluster(image: Image, tell: Callable[[str], None]) -> None:
    with ControlPlane() as plane:
        plane.add_gpu_nodes(l4("gpu-l4", gpus=4))
        plane.install_crd(CRD)
        plane.bound_claim("default", "models")
        deployments = Deployments(control_plane=plane, namespace="default")
        operator = ContainedOperator(
            control_plane=plane,
            name="contained",
            arguments=("--leader-elect", f"--templates={TEMPLATES}"),
            image=image,
            files=account_files(plane) | {f"{TEMPLATES}/vllm-pod.yaml.j2": BUILT_IN.read_text()},
            user=SOME_USER,
        )
        started = time.monotonic()
        operator.start()
        tell(f"the operator in its image is ready after {time.monotonic() - started:.1f} s")
        deployments.create()
        deployments.until_ready()
        assert f"is overridden by {TEMPLATES}" in operator.text()
        plane.signal_program("contained", signal.SIGTERM)
        wait_until(lambda: "contained" in plane.ended_programs(), "it has ended")
        assert plane.ended_programs()["contained"] == 0
        assert operator.text().splitlines()[-1].endswith("stopped")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_ends_it(image: Image, number: signal.Signals) -> None:
    command = image.container().command("vlm-operator", "run", "--catalogue=-")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as starting:
        assert starting.stdin
        assert starting.stdout
        starting.stdin.write(b"#" * MORE_THAN_A_PIPE_HOLDS)  # returns when it has begun to read, and it reads for ever
        starting.stdin.flush()
        while starting.poll() is None:
            starting.send_signal(number)  # one that comes just before a read is noticed when the read is over
            time.sleep(0.5)
        assert starting.returncode == 128 + number
        assert starting.stdout.read() == b""


def test_a_killed_container_leaves_nothing(image: Image) -> None:
    mounts = Path("/proc/self/mounts")
    before = mounts.read_text()
    command = image.container().command("sh", "-c", "echo up; exec sleep 3600")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as runner:
        assert runner.stdout
        assert runner.stdout.readline() == b"up\n"
        (inside,) = Path(f"/proc/{runner.pid}/task/{runner.pid}/children").read_text().split()
        assert mounts.read_text() == before
        runner.kill()
    wait_until(lambda: not Path(f"/proc/{inside}").exists(), "what ran in it is gone")
    assert mounts.read_text() == before
