"""`kubectl vlm models` and `kubectl vlm gpus`."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from vlm_operator.cli.kubectl import main


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_all_models_and_those_that_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(listed(capsys, "models")) == 60
    names = [row["name"] for row in listed(capsys, "models", "qwen2.5-vl", "7b")]
    assert names == ["Qwen/Qwen2.5-VL-7B-Instruct"]


def test_gpus_by_part_of_their_name(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = listed(capsys, "gpus", "l40s")
    assert (row["product"], row["memoryMiB"], row["capability"]) == ("NVIDIA-L40S", 46068, "8.9")


@pytest.mark.parametrize("command", ["models", "gpus"])
def test_a_table_has_a_head_and_a_line_for_each(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = listed(capsys, command)
    assert main([command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0] == lines[0].upper()
    assert main([command, "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == rows


def test_nothing_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "abacus"]) == 1
    assert "nothing in the catalogue matches 'abacus'" in capsys.readouterr().err


def test_what_an_admin_adds_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ours.yaml"
    row = {"name": "X1", "vendor": "nvidia", "productLabels": ["NVIDIA-X1"], "memoryMib": 50000, "capability": "9.0"}
    file.write_text(yaml.safe_dump({"gpus": [row]}))
    (found,) = listed(capsys, "gpus", "x1", "--catalogue", str(file))
    assert found["memoryMiB"] == 50000


def test_of_a_folder_every_file_of_a_catalogue_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"vendor": "nvidia", "memoryMib": 50000, "capability": "9.0"}
    for name in ("X1", "X2"):
        rows = [row | {"name": name, "productLabels": [f"NVIDIA-{name}"]}]
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"gpus": rows}))
    (tmp_path / "notes.txt").write_text("none")
    assert main(["gpus", "nvidia-x", "--catalogue", str(tmp_path), "-o", "json"]) == 0
    said = capsys.readouterr()
    assert [row["name"] for row in json.loads(said.out)] == ["X1", "X2"]
    assert f"Warning: {tmp_path}/notes.txt is not read: its name must end with .yaml, .yml, .json" in said.err


def test_an_addition_that_is_wrong_is_told_by_its_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(yaml.safe_dump({"gpus": [{"name": "X1", "vendor": "nvidia", "memory": 1}]}))
    assert main(["gpus", "--catalogue", str(file)]) == 2
    said = capsys.readouterr().err
    assert "gpus[0].memory" in said
    assert "gpus[0].productLabels" in said
