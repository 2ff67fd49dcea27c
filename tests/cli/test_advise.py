import json


def test_text(hirank, curved):
    done = hirank("advise", curved / "table.csv", "--max-time", 2)
    assert done.returncode == 0, done.stderr
    assert "column mean = 1" in done.stdout


def test_json(hirank, curved):
    facts = json.loads(hirank("advise", curved / "table.csv", "--json", "--max-time", 3).stdout)
    assert facts["error"] < 0.5 * facts["linear_error"]
    assert facts["n_features"] == 4


def test_missing_file(hirank, tmp_path):
    done = hirank("advise", tmp_path / "none.csv")
    assert done.returncode == 3
    assert "none.csv" in done.stderr
