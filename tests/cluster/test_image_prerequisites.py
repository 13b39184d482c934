"""What the tests of the image say where it cannot be built. None of it needs the control plane, or builds anything."""

import os
from pathlib import Path

import pytest

from cluster.support import image as images


def test_a_sentence_says_why_it_cannot_be_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert images.missing() == "Building the image takes root: run this as root."
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert images.missing().startswith("Building the image takes buildah and mmdebstrap: install what is missing")
    for program in images.PROGRAMS:
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    (tmp_path / "setpriv").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "setpriv").chmod(0o755)
    assert images.missing().startswith("Building the image takes mounts of its own, which root may not make here")
