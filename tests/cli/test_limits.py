"""Tables that are refused: too large, or with integers that would be rounded."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.mark.parametrize("command", ["complete", "fit", "apply", "advise", "compare"])
def test_a_table_above_the_limit_of_memory_is_refused(
    in_process, fitted, curved, tmp_path, command
):
    outputs = {
        "complete": ("-o", tmp_path / "f.csv"),
        "fit": ("-m", tmp_path / "m.hirank"),
        "apply": ("-m", fitted / "model.hirank", "-o", tmp_path / "f.csv"),
    }

    done = in_process(
        command, curved / "table.csv", *outputs.get(command, ()), "--max-memory", "1K"
    )

    assert done.returncode == 3
    assert "of memory, but the limit is 1.0K" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_limit_that_is_not_a_size_is_a_wrong_option(in_process, curved):
    done = in_process("advise", curved / "table.csv", "--max-memory", "much")

    assert done.returncode == 2
    assert "--max-memory must be a size such as 4G" in done.stderr


@pytest.mark.parametrize("command", ["complete", "apply"])
def test_a_header_of_more_than_a_megabyte_is_refused(in_process, fitted, tmp_path, command):
    (tmp_path / "t.csv").write_text("name," * 300_000 + "last\n1,2\n")
    model = ("-m", fitted / "model.hirank") if command == "apply" else ()

    done = in_process(command, tmp_path / "t.csv", "-o", tmp_path / "f.csv", *model)

    assert done.returncode == 3
    assert "The first row is longer than 1 MiB" in done.stderr


def test_large_integers_are_refused_unless_imputed_values_are_whole(in_process, tmp_path):
    rng = np.random.default_rng(0)
    t = rng.normal(size=60)
    counts = [2**60 + 1, *(None if i % 7 == 3 else i for i in range(1, 60))]
    path, output = tmp_path / "t.parquet", tmp_path / "f.parquet"
    pq.write_table(pa.table({"t": t, "u": 2 * t, "n": pa.array(counts, pa.int64())}), path)
    command = ("complete", path, "-o", output, "--max-time", "0.1")

    refused = in_process(*command, "--raw")
    done = in_process(*command, "--save", tmp_path / "m.hirank")
    applied = in_process(
        "apply", path, "-m", tmp_path / "m.hirank", "-o", tmp_path / "a.parquet", "--rows", 20
    )

    assert refused.returncode == 4
    assert '1152921504606846977 in column "n" would be rounded' in refused.stderr
    assert "--integers 'n'" in refused.stderr
    assert done.returncode == applied.returncode == 0, applied.stderr
    for name in ("f.parquet", "a.parquet"):
        found = pq.read_table(tmp_path / name)["n"].to_pylist()
        assert [x for x, y in zip(found, counts, strict=True) if y is not None] == [
            y for y in counts if y is not None
        ]
