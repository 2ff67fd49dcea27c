import json

METHODS = {"column mean", "k nearest neighbors", "iterative ridge", "soft-impute", "hirank"}


def test_table_and_plot(in_process, curved, tmp_path):
    done = in_process(
        "compare", curved / "table.csv", "--plot", tmp_path / "p.png", "--max-time", 0.5
    )
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in METHODS)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_best_comes_first(in_process, curved):
    facts = json.loads(
        in_process(
            "compare", curved / "table.csv", "--json", "--hold-out", 0.2, "--max-time", 0.5
        ).stdout
    )
    assert {row["method"] for row in facts["results"]} == METHODS
    errors = [row["error"] for row in facts["results"]]
    assert errors == sorted(errors)
    assert facts["results"][-1]["method"] == "column mean"


def test_too_few_values_to_hold_out(in_process, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,3\n3,5\n")
    done = in_process("compare", "t.csv", cwd=tmp_path)
    assert done.returncode == 3
    assert "--hold-out" in done.stderr
