import json


def test_text(hirank, fitted):
    done = hirank("info", fitted / "model.hirank")
    assert done.returncode == 0, done.stderr
    for word in ("Imputer", "format 2", "a, b, c, d", "held-out entries"):
        assert word in done.stdout


def test_json(hirank, fitted):
    facts = json.loads(hirank("info", fitted / "model.hirank", "--json").stdout)
    assert facts["model"]["feature_names"] == ["a", "b", "c", "d"]


def test_damaged_file(hirank, fitted, tmp_path):
    (tmp_path / "m.hirank").write_bytes((fitted / "model.hirank").read_bytes()[:-50])
    done = hirank("info", tmp_path / "m.hirank")
    assert done.returncode == 3
    assert "m.hirank" in done.stderr
