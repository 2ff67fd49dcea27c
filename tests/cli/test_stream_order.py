"""``hirank stream`` with rows in order: a column of times, and intervals."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import hirank
from hirank.exceptions import ModelFileError, OutputError, ParameterError

pytest.importorskip("typer")
from hirank.cli.app import Stream
from hirank.cli.reporter import Reporter
from hirank.cli.stream import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def lines(n: int, start: int = 0) -> list[str]:
    """A walk and its double with dates; every third value of a is missing."""
    walk = np.cumsum(np.random.default_rng(0).normal(size=400))
    return [
        f"2024-01-{1 + i // 24:02}T{i % 24:02}:00,s{i},{'' if i % 3 == 2 else f'{walk[i]:.4f}'},"
        f"{2 * walk[i]:.4f}\n"
        for i in range(start, start + n)
    ]


def stream(folder: Path, rows: list[str], **options: object) -> list[list[str]]:
    """Return the cells of the output after rows that are appended to the input."""
    source = folder / "in.csv"
    if not source.exists():
        source.write_text("when,id,a,b\n")
    with source.open("a") as file:
        file.writelines(rows)
    out = str(folder / "out.csv")
    run(Stream(model=folder / "m.hirank", source=source, output=out, **options), Reporter())
    return [line.split(",") for line in Path(out).read_text().splitlines()]


def test_times_are_read_as_dates_and_written_as_they_are(tmp_path):
    found = stream(tmp_path, lines(90), time="when")
    assert found[0] == ["when", "id", "a", "b"]
    assert [row[0] for row in found[1:]] == [line.split(",")[0] for line in lines(90)]
    assert all(row[2] for row in found[1:])
    model = hirank.load(tmp_path / "m.hirank")
    assert model.time == "when"
    assert list(model.feature_names_in_) == ["when", "a", "b"]
    assert model._stream.arrivals.ordered.clock.usual == 3600
    stream(tmp_path, lines(10, 90))  # the model knows its column
    assert hirank.load(tmp_path / "m.hirank").n_samples_seen_ == 100


def test_a_time_that_cannot_be_read_is_a_bad_line(tmp_path, capfd):
    rows = lines(30)
    rows[20] = "yesterday,s,1,2\n"
    assert len(stream(tmp_path, rows, time="when")) == 30
    assert "column when: 'yesterday' is neither a number nor an ISO date" in capfd.readouterr().err


@pytest.mark.parametrize("time", ["then", "auto"])
def test_a_column_of_times_that_is_not_there_is_named(tmp_path, time):
    with pytest.raises(ParameterError, match="time"):
        stream(tmp_path, lines(5), time=time)


def test_another_column_of_times_needs_another_model(tmp_path):
    stream(tmp_path, lines(30), time="when")
    with pytest.raises(ModelFileError, match="Omit --time"):
        stream(tmp_path, lines(5, 30), time="a")


def test_intervals_are_added_where_values_are_missing(tmp_path):
    found = stream(tmp_path, lines(90), time="when", interval=0.9)
    assert found[0] == ["when", "id", "a", "b", "a lower", "a upper", "b lower", "b upper"]
    for i, row in enumerate(found[1:]):
        assert row[6:] == ["", ""]
        if i % 3 != 2:
            assert row[4:6] == ["", ""]
        elif i > 20:
            assert float(row[4]) < float(row[2]) < float(row[5])
    more = stream(tmp_path, lines(10, 90), interval=0.9)
    assert len(more) == 101
    assert {len(row) for row in more} == {8}


def test_an_output_without_intervals_is_not_continued_with_them(tmp_path):
    stream(tmp_path, lines(30))
    with pytest.raises(OutputError, match="without --interval"):
        stream(tmp_path, lines(5, 30), interval=0.9)


def test_intervals_of_json_lines_are_members(tmp_path):
    walk = np.cumsum(np.random.default_rng(0).normal(size=60))
    rows = [
        json.dumps({"t": i, "a": None if i % 4 == 3 else x, "b": 2 * x})
        for i, x in enumerate(walk.tolist())
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out.jsonl"
    options = {"time": "t", "interval": 0.9, "output": str(out)}
    run(Stream(model=tmp_path / "m.hirank", source=tmp_path / "in.jsonl", **options), Reporter())
    last = json.loads(out.read_text().splitlines()[-1])
    assert set(last) == {"t", "a", "b", "a lower", "a upper"}
    assert last["a lower"] < last["a"] < last["a upper"]


@pytest.mark.parametrize("interval", [0.0, 1.0])
def test_a_coverage_that_is_none_is_refused(tmp_path, interval):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        stream(tmp_path, lines(5), interval=interval)
