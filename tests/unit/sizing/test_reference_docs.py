"""The pages that are generated from the catalogue."""

from pathlib import Path

import pytest

from reference_docs import differences, gpus_page, main, models_page, table, write
from vlm_operator.sizing.catalogue.loading import builtin


def test_every_model_is_on_the_page_with_its_provenance() -> None:
    page = models_page(builtin())
    for row in builtin().models:
        assert page.count(f"| {row.hf_id} |") == 3
    assert "(AWQ, 4 bit) (?)" in page
    assert "| 8.292 (c) |" in page
    assert all(f"- {key}: " in page for row in builtin().models for key in row.sources)


def test_every_gpu_is_on_the_page_and_unknown_memory_is_no_number() -> None:
    page = gpus_page(builtin())
    for row in builtin().gpus:
        assert f"| {row.name} | `{row.product_labels[0]}`" in page
    assert "| 81559 | 79.18 | 9.0 |" in page
    assert "| 192G | - | gfx942 |" in page
    assert "1g.10gb x 7" in page


@pytest.mark.parametrize("page", [models_page, gpus_page])
def test_pages_have_no_python_none(page: object) -> None:
    assert callable(page)
    assert "None" not in page(builtin())


def test_a_table_keeps_its_columns() -> None:
    assert table(("a", "b"), [(1, "x|y"), (None, "")]) == [
        "| a | b |",
        "| --- | --- |",
        "| 1 | x\\|y |",
        "| - | - |",
        "",
    ]


def test_drift_is_told_and_written_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "reference"
    assert main(["--check", str(folder)]) == 1
    write(folder)
    assert main(["--check", str(folder)]) == 0
    assert differences(folder) == ""
    (folder / "gpus.md").write_text("old\n")
    capsys.readouterr()
    assert main(["--check", str(folder)]) == 1
    assert "-old" in capsys.readouterr().out
    assert main([str(folder)]) == 0
    assert main(["--check", str(folder)]) == 0
    assert main([]) == 2
