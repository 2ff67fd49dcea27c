import json


def test_text(in_process, curved):
    done = in_process("advise", curved / "table.csv", "--max-time", 0.5)
    assert done.returncode == 0, done.stderr
    assert "column mean = 1" in done.stdout


def test_json(in_process, curved):
    facts = json.loads(
        in_process("advise", curved / "table.csv", "--json", "--max-time", 20).stdout
    )
    assert facts["error"] < 0.5 * facts["linear_error"]
    assert facts["n_features"] == 4


def test_missing_file(in_process, tmp_path):
    done = in_process("advise", tmp_path / "none.csv")
    assert done.returncode == 3
    assert "none.csv" in done.stderr
