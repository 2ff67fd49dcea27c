import json

import numpy as np
import pandas as pd
import pytest
from helpers.estimators import fast_online

from hirank import OnlineImputer


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


def test_a_stream_shows_its_rows_its_errors_and_what_has_weight(in_process, tmp_path):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(120, 3)), axis=0)
    X[rng.random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fast_online(OnlineImputer, time="auto").partial_fit(frame).save(tmp_path / "m.hirank")
    text = in_process("info", tmp_path / "m.hirank").stdout
    assert "rows seen: 120; recent error: 0." in text
    assert "recent error by feature: a 0." in text
    assert "weights (missing for 10 rows): static 0." in text
    facts = json.loads(in_process("info", tmp_path / "m.hirank", "--json").stdout)
    weights = facts["model"]["stream"]["weights"]["value in the row before"]
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["level"] + weights["trend"] > 0.5


def test_a_stream_shows_its_groups(in_process, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(np.cumsum(rng.normal(size=(120, 3)), axis=0), columns=["a", "b", "c"])
    frame["device"] = [f"pump {i // 40}" for i in range(120)]
    model = fast_online(OnlineImputer, time="auto", groups="device").partial_fit(frame)
    model.save(tmp_path / "m.hirank")
    lines = in_process("info", tmp_path / "m.hirank").stdout.splitlines()
    at = lines.index("groups: 3, that with the newest row first:")
    assert lines[at + 1].startswith("  pump 2: 40 rows; ")
    assert lines[at + 3].startswith("  pump 0: 40 rows; ")
