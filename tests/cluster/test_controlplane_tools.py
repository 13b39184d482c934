"""The cache of built programs: built once, checked at each use, and mended by itself. No Go is needed here."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane import cache, toolchain
from controlplane.errors import ControlPlaneError, PrerequisiteError
from controlplane.tools import FAMILIES, KUBERNETES, Family, GoBuild, Program, ensure_tools


class FakeBuild:
    """Writes a script in place of a program and counts."""

    def __init__(self, *, waits_for: threading.Event | None = None) -> None:
        self.built: list[str] = []
        self._waits_for = waits_for

    def __call__(self, family: Family, program: Program, output: Path) -> None:
        assert (family.folder / "go.mod").exists()
        if self._waits_for:
            self._waits_for.wait(10)
        self.built.append(program.name)
        output.write_text(f"#!/bin/sh\necho {program.name}\n")


@pytest.fixture
def family(tmp_path: Path) -> Family:
    folder = tmp_path / "go" / "fake"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module fake\n\ngo 1.26.0\n")
    (folder / "go.sum").write_text("")
    names = ("alpha", "beta")
    return Family(folder=folder, programs=tuple(Program(name=n, package=f"fake/{n}", build_seconds=1) for n in names))


def ensure(family: Family, root: Path, build: FakeBuild) -> dict[str, Path]:
    return dict(ensure_tools([family], root=root, build=build, report=lambda _: None))


def test_each_program_is_announced_built_once_and_then_only_found(family: Family, tmp_path: Path) -> None:
    build, lines = FakeBuild(), list[str]()
    paths = ensure_tools([family], root=tmp_path, build=build, report=lines.append)
    assert subprocess.check_output([paths["beta"]], text=True) == "beta\n"
    assert lines == [
        "[1/2] alpha: building (about 1 s)",
        "[1/2] alpha: done in 0 s",
        "[2/2] beta: building (about 1 s)",
        "[2/2] beta: done in 0 s",
    ]
    ensure_tools([family], root=tmp_path, build=build, report=lines.append)
    assert (build.built, len(lines)) == (["alpha", "beta"], 4)


def truncate(binary: Path) -> None:
    binary.write_text("#!/bin")


def forbid(binary: Path) -> None:
    binary.chmod(0o644)


def corrupt(binary: Path) -> None:
    binary.write_text(binary.read_text().replace("echo", "ohce"))


def lose_stamp(binary: Path) -> None:
    binary.with_name(f"{binary.name}.stamp").unlink()


def spoil_stamp(binary: Path) -> None:
    binary.with_name(f"{binary.name}.stamp").write_text("{")


def half_build(binary: Path) -> None:
    binary.rename(binary.with_name(f".{binary.name}.unfinished"))


@pytest.mark.parametrize("harm", [Path.unlink, truncate, forbid, corrupt, lose_stamp, spoil_stamp, half_build])
def test_a_broken_binary_is_built_anew_and_the_others_are_left(
    family: Family, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    build = FakeBuild()
    alpha = ensure(family, tmp_path, build)["alpha"]
    harm(alpha)
    ensure(family, tmp_path, build)
    assert build.built == ["alpha", "beta", "alpha"]
    assert subprocess.check_output([alpha], text=True) == "alpha\n"


def test_a_copied_cache_is_believed_after_a_look_at_the_content(family: Family, tmp_path: Path) -> None:
    build = FakeBuild()
    ensure(family, tmp_path / "one", build)
    shutil.copytree(tmp_path / "one", tmp_path / "two", copy_function=shutil.copy)
    ensure(family, tmp_path / "two", build)
    assert build.built == ["alpha", "beta"]


def test_two_at_once_build_once(family: Family, tmp_path: Path) -> None:
    gate = threading.Event()
    build = FakeBuild(waits_for=gate)
    both = [threading.Thread(target=ensure, args=(family, tmp_path, build)) for _ in range(2)]
    for one in both:
        one.start()
    gate.set()
    for one in both:
        one.join(10)
    assert build.built == ["alpha", "beta"]


def test_the_lock_of_a_killed_builder_is_free(tmp_path: Path) -> None:
    script = "import sys, time; from pathlib import Path; from controlplane.cache import locked\n"
    script += "with locked(Path(sys.argv[1])): print(1, flush=True); time.sleep(60)"
    hack = Path(cache.__file__).parents[1]
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, env={"PYTHONPATH": str(hack)}, stdout=subprocess.PIPE) as builder:
        assert builder.stdout
        builder.stdout.readline()
        builder.kill()
    with cache.locked(tmp_path):
        pass


def test_the_key_follows_the_modules_and_the_flags(family: Family) -> None:
    keys = {family.key}
    (family.folder / "go.sum").write_text("something else")
    keys.add(family.key)
    (family.folder / "go.mod").write_text("module fake\n\nrequire (\n\tfake.example/k v1.2.3\n)\n")
    keys.add(family.key)
    stamped = Family(
        folder=family.folder, programs=(), version_packages=("fake/version",), version_module="fake.example/k"
    )
    keys.add(stamped.key)
    assert len(keys) == 4
    assert "-X fake/version.gitVersion=v1.2.3" in stamped.ldflags


def test_the_version_of_kubernetes_is_read_from_its_go_mod() -> None:
    assert KUBERNETES.version.startswith("v1.36.")
    assert sum(len(family.programs) for family in FAMILIES) == 6


def test_a_folder_that_cannot_be_written_is_a_sentence(family: Family, tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(PrerequisiteError, match="set XDG_CACHE_HOME"):
        ensure(family, occupied / "below", FakeBuild())


@pytest.fixture
def no_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(toolchain, "_USUAL_PLACES", ())


@pytest.mark.usefixtures("no_go")
def test_without_go_and_without_an_index_it_says_what_to_do(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    with pytest.raises(PrerequisiteError, match=r"needs Go 1\.26 or newer.*install Go or check the network"):
        ensure_tools([family], root=tmp_path, report=lambda _: None)


def fake_go(folder: Path, *, words: str) -> Path:
    go = folder / "fake-go"
    go.write_text(f'#!/bin/sh\n[ "$1" = env ] && echo go1.26.8 && exit 0\necho "{words}" >&2\nexit 1\n')
    go.chmod(0o755)
    return go


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("dial tcp: lookup modules.example: no such host", PrerequisiteError("connect to the network")),
        ("write: no space left on device", PrerequisiteError("disk space")),
        ("undefined: surprise", ControlPlaneError("output of Go is in")),
    ],
)
def test_a_failed_build_is_a_sentence(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, error: Exception
) -> None:
    go = fake_go(tmp_path, words=words)
    monkeypatch.setattr("controlplane.tools.find_go", lambda *_: go)
    build = GoBuild(root=tmp_path, report=lambda _: None)
    with pytest.raises(type(error), match=str(error)):
        ensure_tools([family], root=tmp_path, build=build, report=lambda _: None)
