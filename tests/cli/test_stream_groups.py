"""``hirank stream`` with groups of rows, and with forecasts at the end."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.streams import finish

import hirank
from hirank.cli.app import Stream
from hirank.cli.stream import run
from hirank.exceptions import InputError, ModelFileError, OutputError, ParameterError

pytest.importorskip("typer")
from hirank.cli.reporter import Reporter

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")

HEADER = "when,device,id,a,b\n"


def lines(n: int, start: int = 0) -> list[str]:
    """Two devices by turns, at levels that are far apart; every third value of a is missing."""
    walk = np.cumsum(np.random.default_rng(0).normal(size=(400, 2)), axis=0)
    found = []
    for i in range(start, start + n):
        a = walk[i, i % 2] + 1000 * (i % 2)
        cell = "" if i % 3 == 2 else f"{a:.4f}"
        hour = f"2024-01-{1 + i // 48:02}T{i // 2 % 24:02}:00"
        found.append(f'{hour},"pump {i % 2}, left",s{i},{cell},{2 * a:.4f}\n')
    return found


def stream(folder: Path, rows: list[str], **options: object) -> list[str]:
    """Return the lines of the output after rows that are appended to the input."""
    source, out = folder / "in.csv", str(folder / "out.csv")
    if not source.exists():
        source.write_text(HEADER)
    with source.open("a") as file:
        file.writelines(rows)
    given = {"groups": "device", **options}
    run(Stream(model=folder / "m.hirank", source=source, output=out, **given), Reporter())
    return Path(out).read_text().splitlines()


def test_the_real_program_keeps_groups_apart_and_forecasts_each(tmp_path):
    text = HEADER + "".join(lines(90))
    done = finish(
        "-m", tmp_path / "m.hirank", "--group", "device", "--time", "when", "--interval", "0.8",
        "--forecast", 2, text=text,
    )  # fmt: skip
    assert not done.returncode, done.stderr.decode()
    found = done.stdout.decode().splitlines()
    assert found[0].endswith(",a,b,a lower,a upper,b lower,b upper,forecast")
    assert len(found) == 1 + 90 + 4
    assert all(line.endswith(",") for line in found[1:91])
    for line, device, hour, step in zip(
        found[91:], ("0", "0", "1", "1"), ("21", "22") * 2, ("1", "2") * 2, strict=True
    ):
        when, label, ident, a, b, *ends, number = line.replace(", left", "").split(",")
        assert (when, label, ident, number) == (
            f"2024-01-02T{hour}:00",
            f'"pump {device}"',
            "",
            step,
        )
        assert abs(float(a) - 1000 * int(device)) < 100
        assert abs(float(b) - 2000 * int(device)) < 200
        assert float(ends[0]) < float(a) < float(ends[1])


def test_values_are_those_of_the_same_device(tmp_path):
    found = stream(tmp_path, lines(60))
    for i, line in enumerate(found[3:], 2):
        assert abs(float(line.split(",")[4]) - 1000 * (i % 2)) < 100
        assert line.split(",")[1] == f'"pump {i % 2}'
    model = hirank.load(tmp_path / "m.hirank")
    assert model.groups == "device"
    assert sorted(model.groups_) == ["pump 0, left", "pump 1, left"]
    assert list(model.feature_names_in_) == ["device", "a", "b"]


def test_forecasts_at_the_end_of_a_file_are_replaced_when_it_is_continued(tmp_path):
    first = stream(tmp_path, lines(60), forecast=3)
    more = stream(tmp_path, lines(10, 60), forecast=3)
    assert len(first) == 1 + 60 + 6
    assert len(more) == 1 + 70 + 6
    assert more[:61] == first[:61]
    assert [line.rsplit(",", 1)[1] for line in more[71:]] == ["1", "2", "3"] * 2
    again = stream(tmp_path, [], forecast=3)
    assert again == more


def test_what_a_stream_learns_does_not_depend_on_where_it_was_continued(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = stream(tmp_path / "one", lines(100), forecast=2)
    stream(tmp_path / "two", lines(61), forecast=2)
    two = stream(tmp_path / "two", lines(39, 61), forecast=2)
    assert [line.split(",")[-1] for line in one] == [line.split(",")[-1] for line in two]
    assert one == two


def test_rows_of_a_file_are_imputed_as_if_they_came_one_by_one(tmp_path):
    written = [line.split(",") for line in stream(tmp_path, lines(70), groups=None)[1:]]
    stream(tmp_path, lines(40, 70), groups=None)
    more = [line.split(",") for line in stream(tmp_path, [], groups=None)[71:]]
    X = np.array([[float(cell or "nan") for cell in line.split(",")[-2:]] for line in lines(110)])
    expected = hirank.OnlineImputer(random_state=0).partial_fit_transform(X)
    found = np.array([[float(cell) for cell in line[-2:]] for line in written + more])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_json_lines_have_the_step_as_a_member(tmp_path):
    rows = [
        json.dumps({"t": i / 2, "unit": i % 2, "a": None if i % 5 == 3 else i * 1.0, "b": 1.0 - i})
        for i in range(60)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(rows) + "\n")
    out = tmp_path / "out.jsonl"
    options = {"time": "t", "groups": "unit", "forecast": 1, "output": str(out)}
    run(Stream(model=tmp_path / "m.hirank", source=tmp_path / "in.jsonl", **options), Reporter())
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(found) == 62
    assert all("forecast" not in one for one in found[:60])
    assert [(one["t"], one["unit"], one["forecast"]) for one in found[60:]] == [
        (30.0, 0, 1),
        (30.5, 1, 1),
    ]
    assert set(found[60]) == {"t", "unit", "a", "b", "forecast"}


def test_forecasts_need_no_groups(tmp_path):
    found = stream(tmp_path, lines(50), groups=None, forecast=4)
    assert len(found) == 1 + 50 + 4
    assert found[-1].startswith(",,,")


@pytest.mark.parametrize("cell", ["", "NA", '" "'])
def test_a_row_without_a_label_is_a_bad_line(tmp_path, capfd, cell):
    rows = lines(30)
    rows[20] = f"2024-01-01,{cell},s,1,2\n"
    assert len(stream(tmp_path, rows)) == 30
    assert "line 22 skipped: column device: it has no label" in capfd.readouterr().err


def test_a_column_of_groups_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ParameterError, match="groups names 'pump'"):
        stream(tmp_path, lines(5), groups="pump")


def test_another_column_of_groups_needs_another_model(tmp_path):
    stream(tmp_path, lines(30))
    with pytest.raises(ModelFileError, match="Omit --group"):
        stream(tmp_path, lines(5, 30), groups="id")


def test_forecasts_need_an_input_that_ends_and_an_output_with_their_column(tmp_path):
    with pytest.raises(ParameterError, match="Omit follow"):
        stream(tmp_path, lines(5), forecast=2, follow=True)
    stream(tmp_path, lines(30))
    with pytest.raises(OutputError, match="without --interval or --forecast"):
        stream(tmp_path, lines(5, 30), forecast=2)


def test_a_column_with_the_name_of_the_steps_is_an_error(tmp_path):
    (tmp_path / "in.csv").write_text("device,a,forecast\nx,1,2\n")
    with pytest.raises(InputError, match="--forecast would add"):
        stream(tmp_path, [], forecast=2)


def test_a_header_only_has_no_forecast(tmp_path, capfd):
    assert stream(tmp_path, [], forecast=2) == [HEADER.strip() + ",forecast"]
    assert "no row has arrived" in capfd.readouterr().err


def test_models_without_order_have_no_forecasts(tmp_path):
    rng = np.random.default_rng(0)
    hirank.OnlineImputer(time=None).partial_fit(rng.normal(size=(20, 2))).save(
        tmp_path / "m.hirank"
    )
    with pytest.raises(ModelFileError, match="Omit --forecast"):
        stream(tmp_path, lines(5), groups=None, forecast=2)


def test_bad_times_extreme_values_and_empty_rows_leave_every_cell_imputed(tmp_path, capfd):
    rows = lines(120)
    cells = [line.rstrip("\n").rsplit(",", 2) for line in rows]
    for i in (10, 11, 70):
        cells[i][0] = cells[i - 4][0]  # backward, and the same as another row
    cells[50][1], cells[52][2] = "1e200", "-1e200"
    cells[0][1:] = cells[1][1:] = cells[80][1:] = ["", ""]
    given = [",".join(one) + "\n" for one in cells]

    found = stream(tmp_path, given, time="when", interval=0.9, forecast=1)

    for line, (_, a, b) in zip(found[1:121], cells, strict=True):
        imputed = line.replace(", left", "").split(",")[3:5]
        assert all(x == y for x, y in zip(imputed, (a, b), strict=True) if y)
        assert all(cell and np.isfinite(float(cell)) for cell in imputed)
    assert len(found) == 123
    notes = capfd.readouterr().err
    assert notes.count("earlier than the row before") == 1


def test_offsets_come_back_to_the_last_digit(tmp_path):
    rows = [f"x,{1e12 + i},{'' if i % 4 == 3 else 1e12 - i}\n" for i in range(60)]
    (tmp_path / "in.csv").write_text("device,a,b\n")
    found = stream(tmp_path, rows, digits=15)
    assert [line.split(",")[1] for line in found[1:]] == [row.split(",")[1] for row in rows]
    imputed = [float(found[1 + i].split(",")[2]) for i in range(43, 60, 4)]
    np.testing.assert_allclose(imputed, 1e12 - np.arange(43, 60, 4), atol=2)
