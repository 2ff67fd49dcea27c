import json
import os

from hirank.cli.lock import locked


def test_a_model_is_fitted_and_saved(fitted, in_process, tmp_path):
    assert (fitted / "model.hirank").stat().st_size > 1000
    done = in_process(
        "fit", fitted / "table.csv", "-m", tmp_path / "m.hirank", "--max-time", 0.5, "--json"
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["columns"] == 4
    assert facts["model"].endswith("m.hirank")


def test_the_summary_is_printed(fitted, in_process, tmp_path):
    page = tmp_path / "r.html"
    done = in_process(
        "fit",
        fitted / "table.csv",
        "-m",
        tmp_path / "m.hirank",
        "--max-time",
        0.5,
        "--report",
        page,
    )
    assert "held-out entries" in done.stdout
    assert page.exists()


def test_does_not_overwrite_a_model(fitted, in_process):
    before = (fitted / "model.hirank").read_bytes()
    done = in_process("fit", fitted / "table.csv", "-m", fitted / "model.hirank")
    assert done.returncode == 4
    assert (fitted / "model.hirank").read_bytes() == before


def test_a_model_that_a_stream_uses_is_not_replaced(fitted, in_process):
    model = fitted / "model.hirank"
    before = model.read_bytes()

    with locked(model):
        done = in_process("fit", fitted / "table.csv", "-m", model, "--force")

    assert done.returncode == 4
    assert f"in use by process {os.getpid()}" in done.stderr
    assert model.read_bytes() == before


def test_no_permission(in_process, fitted, tmp_path):
    done = in_process("fit", fitted / "table.csv", "-m", tmp_path / "nowhere" / "m.hirank")
    assert done.returncode == 4
    assert "folder" in done.stderr
