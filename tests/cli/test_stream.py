"""``hirank stream`` in a process: signals, pipes and growing files."""

import json
import os
import re
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers.streams import NAMES, csv, finish, running, table

import hirank

pytest.importorskip("typer")
from hirank.cli.app import Stream
from hirank.cli.reporter import Reporter
from hirank.cli.stream import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def completed(model_bytes: bytes, X: np.ndarray, tmp_path: Path) -> np.ndarray:
    """Return the rows as the library imputes them."""
    path = tmp_path / "other.hirank"
    path.write_bytes(model_bytes)
    return hirank.load(path).partial_fit_transform(_frame(X))


def _frame(X: np.ndarray) -> object:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=list(NAMES))


def next_line(stream: object, seconds: float = 30) -> bytes:
    """Return the next line; fail if it does not arrive."""
    data = b""
    end = time.monotonic() + seconds
    while not data.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0, end - time.monotonic()))
        assert ready, f"no line within {seconds} s, only {data!r}"
        byte = os.read(stream.fileno(), 1)
        assert byte, f"the end came after {data!r}"
        data += byte
    return data


def until(condition: object, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.005)


def test_rows_are_written_at_once_and_only_missing_cells_change(model, model_bytes, tmp_path):
    X = table(40, seed=1)
    text = csv(X).splitlines(keepends=True)
    out = []
    with running("-m", model, "--json") as process:
        for line in text:  # each answer is there before the next row is sent
            process.stdin.write(line.encode())
            process.stdin.flush()
            out.append(next_line(process.stdout).decode())
        process.send_signal(signal.SIGINT)  # the input is still open
        events = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert process.wait(30) == 130
    assert events[-1]["event"] == "end"
    assert (events[-1]["rows"], events[-1]["skipped"], events[-1]["saved"]) == (40, 0, True)

    expected = completed(model_bytes, X, tmp_path)
    assert out[0] == text[0]
    for i, (before, after) in enumerate(zip(text[1:], out[1:], strict=True)):
        old, new = before.split(",", 5), after.split(",", 5)
        assert old[0] == new[0]
        assert old[5] == new[5]
        for j, (o, n) in enumerate(zip(old[1:5], new[1:5], strict=True)):
            if o:
                assert n == o
            else:
                np.testing.assert_allclose(float(n), expected[i, 3 - j], rtol=1e-6)
    assert hirank.load(model).n_samples_seen_ == 90


@pytest.mark.slow
def test_no_row_is_lost_when_runs_are_killed_and_logs_rotated(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks" / "program")
    from kills import Loop

    seed = int.from_bytes(os.urandom(4), "little")
    print(f"python benchmarks/program/kills.py 3 --seed {seed}")  # shown if the test fails
    counts = Loop(tmp_path, seed).run(3)

    assert counts["killed"] + counts["stopped"] >= 3
    assert counts["rows"] > counts["announced"]


@pytest.mark.slow
def test_killed_runs_give_what_one_run_gives(model, model_bytes, tmp_path, capfd):
    source = tmp_path / "in.csv"
    text = csv(table(500, seed=2)).splitlines(keepends=True)
    text.insert(200, "nonsense\n")
    source.write_text("".join(text))
    out = tmp_path / "out.csv"
    arguments = ("-m", model, source, "-o", out, "--save-every", "40", "-q")
    rng = np.random.default_rng(int.from_bytes(os.urandom(4), "little"))
    sizes = []
    for share in (0.3, 0.7):
        wanted = (share + rng.uniform(-0.1, 0.1)) * source.stat().st_size
        with running(*arguments) as process:
            until(lambda: out.exists() and out.stat().st_size > wanted)  # noqa: B023
            time.sleep(rng.uniform(0, 0.1))
            process.kill()
        sizes.append(out.stat().st_size)
    assert finish(*arguments).returncode == 0

    whole = tmp_path / "whole.csv"
    once = tmp_path / "once.hirank"
    once.write_bytes(model_bytes)
    run(Stream(model=once, source=source, output=str(whole), save_every=40), Reporter())
    assert "line 201 skipped: 1 cells instead of 6" in capfd.readouterr().err
    assert max(sizes) <= whole.stat().st_size
    assert out.read_bytes() == whole.read_bytes()
    assert len(out.read_bytes().splitlines()) == 501
    assert model.read_bytes() == once.read_bytes()
    assert not [p for p in tmp_path.iterdir() if "next" in p.name]


def test_a_followed_file_may_grow_and_be_renamed_and_created_again(model, tmp_path):
    log, out = tmp_path / "log.csv", tmp_path / "out.csv"
    X = table(40, seed=4)
    follow = ("-m", model, log, "--follow", "-o", out)

    def lines() -> int:
        return out.read_bytes().count(b"\n") if out.exists() else 0

    with running(*follow) as process:
        log.write_text(csv(X[:10])[:-5])
        until(lambda: lines() == 10)  # the last line has no end yet
        with log.open("a") as file:
            file.write(csv(X[:10])[-5:])
        until(lambda: lines() == 11)
        log.rename(tmp_path / "log.csv.1")
        with (tmp_path / "log.csv.1").open("a") as file:
            file.write(csv(X[10:15], header=False, first=10))
        log.write_text(csv(X[15:20], first=15))  # with a header of its own
        until(lambda: lines() == 21)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0

    # Between two runs the file is renamed with two more rows, and created again.
    with log.open("a") as file:
        file.write(csv(X[20:22], header=False, first=20))
    log.rename(tmp_path / "log.csv.2")
    log.write_text(csv(X[22:30], first=22))
    with running(*follow) as process:
        until(lambda: lines() == 31)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    ids = re.findall(r"^r(\d+)", out.read_text(), re.MULTILINE)
    assert [int(i) for i in ids] == list(range(30))
    assert out.read_text().count("id,") == 1

    # A second rotation, of which the first file is gone, cannot be followed.
    (tmp_path / "log.csv.3").write_bytes(log.read_bytes())
    log.unlink()
    log.write_text(csv(X[30:], first=30))
    done = finish(*follow)
    assert done.returncode == 3
    assert b"not the file that was read before, which is no longer in its folder" in done.stderr


def test_a_followed_file_that_is_truncated_ends_the_run_with_the_state_saved(model, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text(csv(table(10, seed=4)))
    with running("-m", model, log, "--follow") as process:
        for _ in range(11):
            next_line(process.stdout)
        os.truncate(log, 0)
        assert process.wait(30) == 3
        assert b"was truncated while it was read. Rows after line 11 of" in process.stderr.read()
    assert hirank.load(model).n_samples_seen_ == 60


def test_json_lines_keep_their_values(model, model_bytes, tmp_path):
    X = table(3, seed=5)
    X[0] = [0.5, np.nan, 0.125, np.nan]
    lines = ['{"id": 7, "c": 0.1250, "b":null , "a": 5e-1, "tags": ["x", 1]}']
    lines += [json.dumps(dict(zip(NAMES, row, strict=True))) for row in X[1:].tolist()]
    lines[1:1] = ['{"a": }', "[1]", '{"a": "high"}', '{"a": 1} 2']
    done = finish("-m", model, "--frozen", text="\n".join(lines))
    assert done.returncode == 0
    for number in (2, 3, 4, 5):
        assert f"line {number} skipped".encode() in done.stderr
    out = done.stdout.decode().splitlines()
    first = json.loads(out[0])
    assert list(first) == ["id", "c", "b", "a", "tags", "d"]
    assert first | {"b": None, "d": None} == {**json.loads(lines[0]), "d": None}
    expected = hirank.load(model).transform(_frame(X))
    np.testing.assert_allclose([first["b"], first["d"]], expected[0, [1, 3]], rtol=1e-6)
    rest = [[json.loads(line)[name] for name in NAMES] for line in out[1:]]
    np.testing.assert_allclose(rest, expected[1:], rtol=1e-6)
    assert model.read_bytes() == model_bytes  # frozen


def test_a_broken_pipe_ends_quietly_with_the_state_saved(model):
    X = table(400, seed=6)
    text = csv(X).encode()
    with running("-m", model) as process:
        process.stdin.write(text[: len(text) // 4])
        process.stdin.flush()
        for _ in range(31):
            next_line(process.stdout)
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.write(text[len(text) // 4 :])
            process.stdin.close()
        assert process.wait(30) == 0
        assert b"Traceback" not in process.stderr.read()
    assert 80 <= hirank.load(model).n_samples_seen_ < 450


def test_a_full_disk_does_not_end_the_stream(model, model_bytes):
    import resource

    small = 4000  # a position fits, the model does not

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (small, small))

    assert len(model_bytes) > small
    with running("-m", model, "--save-every", "20", preexec_fn=limit) as process:
        out, err = process.communicate(csv(table(50, seed=7)).encode(), timeout=60)
        assert process.returncode == 4
    assert out.count(b"\n") == 51
    assert f"could not be saved: {model}: ".encode() in err
    assert model.read_bytes() == model_bytes
    assert sorted(p.name for p in model.parent.iterdir()) == [model.name, f"{model.name}.position"]
