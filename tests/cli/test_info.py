import json


def test_text(in_process, fitted):
    done = in_process("info", fitted / "model.hirank")
    assert done.returncode == 0, done.stderr
    for word in ("Imputer", "format 2", "a, b, c, d", "held-out entries"):
        assert word in done.stdout


def test_json(in_process, fitted):
    facts = json.loads(in_process("info", fitted / "model.hirank", "--json").stdout)
    assert facts["model"]["feature_names"] == ["a", "b", "c", "d"]


def test_damaged_file(in_process, fitted, tmp_path):
    (tmp_path / "m.hirank").write_bytes((fitted / "model.hirank").read_bytes()[:-50])
    done = in_process("info", tmp_path / "m.hirank")
    assert done.returncode == 3
    assert "m.hirank" in done.stderr


def test_without_a_file_versions_are_printed(in_process):
    done = in_process("info")
    assert done.returncode == 0, done.stderr
    assert "compiled core: " in done.stdout
    facts = json.loads(in_process("info", "--json").stdout)
    assert facts["packages"]["numpy"]
