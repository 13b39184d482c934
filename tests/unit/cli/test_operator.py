"""`vlm-operator`: options that cannot be used are told by the names that they have."""

from pathlib import Path

import pytest

from vlm_operator.cli.operator import main


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--namespace=", "--namespace must be the name of a namespace: lower-case letters, digits and -"),
        ("--namespace=Team A", "--namespace Team A must be the name of a namespace: lower-case letters, digits and -"),
        ("--health-port=70000", "--health-port 70000 must be less than or equal to 65535"),
        ("--workers=0", "--workers 0 must be greater than or equal to 1"),
        (
            "--leader-elect-namespace=A b",
            "--leader-elect-namespace A b must be the name of a namespace: lower-case letters, digits and -",
        ),
        (
            "--leader-elect-lease-seconds=10",
            "--leader-elect-deadline-seconds 10.0 must be less than --leader-elect-lease-seconds",
        ),
        (
            "--leader-elect-retry-seconds=4",
            "--leader-elect-retry-seconds 4.0 must be at most a third of --leader-elect-deadline-seconds",
        ),
        ("--resync-seconds=0.5", "--resync-seconds 0.5 must be greater than or equal to 1"),
    ],
)
def test_a_bad_value_is_told_with_the_option_as_it_is_typed(
    argument: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", argument]) == 2
    assert capsys.readouterr().err == f"vlm-operator: {sentence}\n"


@pytest.mark.parametrize("option", ["--catalogue", "--templates"])
def test_an_empty_path_is_told(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", f"{option}="])
    assert ended.value.code == 2
    assert f"argument {option}: must not be empty" in capsys.readouterr().err


def test_a_wrong_catalogue_ends_it_with_a_line_for_each_thing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ours.yaml").write_text("gpus: [T4]\nmodel: []\n")
    assert main(["run", f"--catalogue={tmp_path}", f"--catalogue={tmp_path}/none.yaml"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"vlm-operator: {tmp_path}/none.yaml cannot be read: no such file or directory; correct or remove it",
        f"vlm-operator: {tmp_path}/ours.yaml: model: is unknown; use models, gpus or sources",
        f'vlm-operator: {tmp_path}/ours.yaml: gpus[0]: is "T4" but must be a map of fields',
    ]


def test_a_folder_of_templates_that_is_not_there_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"--templates={tmp_path}/none"]) == 1
    assert capsys.readouterr().err.endswith("none cannot be read: no such file or directory; correct --templates\n")
