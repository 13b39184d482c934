"""`vlm-operator`: options that cannot be used are told by the names that they have."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from vlm_operator.cli.operator import RUN_OPTIONS, main
from vlm_operator.runtime.settings import Settings


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--namespace=", "--namespace must be a name: up to 63 lower-case letters, digits and -"),
        ("--namespace=Team A", "--namespace Team A must be a name: up to 63 lower-case letters, digits and -"),
        ("--health-port=70000", "--health-port 70000 must be less than or equal to 65535"),
        ("--health-port=8o", "--health-port 8o must be a whole number"),
        ("--health-host=", "--health-host must not be empty"),
        *(
            (
                f"--pod-proxy={given}",
                f"--pod-proxy {told}must be http://HOST:PORT, without a user, a password or a path",
            )
            for given, told in (
                ("", ""),
                ("proxy:3128", "proxy:3128 "),
                ("socks5://proxy:1080", "socks5://proxy:1080 "),
                ("http://", "http:// "),
                ("http://proxy:0", "http://proxy:0 "),
                ("http://proxy:99999", "http://proxy:99999 "),
                ("http://proxy/pods", "http://proxy/pods "),
                ("http://me:secret@proxy:3128", "http://...@proxy:3128 "),
            )
        ),
        ("--workers=0", "--workers 0 must be greater than or equal to 1"),
        ("--workers=2.5", "--workers 2.5 must be a whole number"),
        ("--log-level=nonsense", "--log-level nonsense must be 'debug', 'info', 'warning' or 'error'"),
        ("--log-format=xml", "--log-format xml must be 'text' or 'json'"),
        ("--kubeconfig=", "--kubeconfig must not be empty"),
        ("--context=", "--context must not be empty"),
        ("--catalogue=", "--catalogue must not be empty"),
        ("--templates=", "--templates must not be empty"),
        ("--leader-elect-name=", "--leader-elect-name must be a name: up to 63 lower-case letters, digits and -"),
        (
            "--leader-elect-namespace=A b",
            "--leader-elect-namespace A b must be a name: up to 63 lower-case letters, digits and -",
        ),
        (
            "--leader-elect-lease-seconds=10",
            "--leader-elect-deadline-seconds 10.0 must be less than --leader-elect-lease-seconds",
        ),
        (
            "--leader-elect-retry-seconds=4",
            "--leader-elect-retry-seconds 4 must be at most a third of --leader-elect-deadline-seconds",
        ),
        ("--resync-seconds=0.5", "--resync-seconds 0.5 must be greater than or equal to 1"),
        ("--resync-seconds=inf", "--resync-seconds inf must be a number"),
        ("--resync-seconds=nan", "--resync-seconds nan must be a number"),
        ("--resync-seconds=often", "--resync-seconds often must be a number"),
    ],
)
def test_a_bad_value_is_told_with_the_option_as_it_is_typed(
    argument: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", argument]) == 2
    assert capsys.readouterr().err == f"vlm-operator: {sentence}\n"


def test_all_that_is_wrong_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--log-level=nonsense", "--workers=x", "--namespace=one", "--namespace=Two"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "vlm-operator: --namespace Two must be a name: up to 63 lower-case letters, digits and -",
        "vlm-operator: --log-level nonsense must be 'debug', 'info', 'warning' or 'error'",
        "vlm-operator: --workers x must be a whole number",
    ]


def test_unknown_options_are_told_with_those_that_may_be_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--name-space=one", "--lead", "--nonsense", "4", "--", "more"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "vlm-operator: --name-space is an unknown option; did you mean --namespace?",
        "vlm-operator: --lead is an unknown option; did you mean --leader-elect?",
        "vlm-operator: --nonsense is an unknown option; `vlm-operator run --help` lists what there is",
        "vlm-operator: 4 is one word too many; `vlm-operator run --help` lists what there is",
        "vlm-operator: more is one word too many; `vlm-operator run --help` lists what there is",
    ]
    assert main(["crd", "--nonsense"]) == 2


def test_every_setting_has_an_option_and_no_option_is_without_one() -> None:
    plural = {"namespaces": "namespace", "catalogues": "catalogue"}
    settings = {plural.get(name, name).replace("_", "-") for name in Settings.model_fields}
    assert settings == set(RUN_OPTIONS)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValidationError, match="nonsense"):
        Settings(nonsense=1)  # type: ignore[call-arg]


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
