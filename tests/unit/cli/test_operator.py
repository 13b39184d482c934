"""`vlm-operator`: options that cannot be used are told by the names that they have."""

import pytest

from vlm_operator.cli.operator import main


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("--namespace=", "--namespace must be the name of a namespace: lower-case letters, digits and -"),
        ("--namespace=Team A", "--namespace Team A must be the name of a namespace: lower-case letters, digits and -"),
        ("--health-port=70000", "--health-port 70000 must be less than or equal to 65535"),
        ("--workers=0", "--workers 0 must be greater than or equal to 1"),
        ("--resync-seconds=0.5", "--resync-seconds 0.5 must be greater than or equal to 1"),
    ],
)
def test_a_bad_value_is_told_with_the_option_as_it_is_typed(
    argument: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", argument]) == 2
    assert capsys.readouterr().err == f"vlm-operator: {sentence}\n"
