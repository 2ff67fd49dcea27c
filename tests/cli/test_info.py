import json


def test_in_words(hirank, fitted):
    done = hirank("info", fitted / "model.hirank")
    assert done.returncode == 0, done.stderr
    for word in ("KFMC", "format 1", "a, b, c, d", "hidden entries"):
        assert word in done.stdout


def test_as_json(hirank, fitted):
    facts = json.loads(hirank("info", fitted / "model.hirank", "--json").stdout)
    assert facts["model"]["feature_names"] == ["a", "b", "c", "d"]


def test_damaged(hirank, fitted, tmp_path):
    (tmp_path / "m.hirank").write_bytes((fitted / "model.hirank").read_bytes()[:-50])
    done = hirank("info", tmp_path / "m.hirank")
    assert done.returncode == 3
    assert "m.hirank" in done.stderr
