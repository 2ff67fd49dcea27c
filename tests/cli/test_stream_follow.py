"""``hirank stream --follow``: logs that are rotated, and runs that are killed."""

import gzip
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.streams import csv, table

import hirank

pytest.importorskip("typer")
from hirank.cli.app import Stream
from hirank.cli.lock import locked
from hirank.cli.reporter import Reporter
from hirank.cli.stream import run
from hirank.cli.stream.signals import Signals
from hirank.exceptions import FileError, OutputError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files of POSIX")
X = table(60, seed=4)


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing is saved."""


@pytest.fixture
def follow(model, tmp_path, monkeypatch) -> Callable[..., None]:
    """A function that follows log.csv, and calls the next action whenever there are no new rows."""
    monkeypatch.setattr("hirank.cli.stream.follow.GRACE_SECONDS", 0)

    def follow_log(*actions: Callable[[], object], **options: object) -> None:
        script = iter(actions)

        def wait(self: Signals, seconds: float | None, *fds: int) -> bool:
            next(script, kill)()
            return False

        monkeypatch.setattr(Signals, "wait", wait)
        given = {"source": tmp_path / "log.csv", "output": str(tmp_path / "out.csv")} | options
        run(Stream(model=model, follow=True, **given), Reporter())

    return follow_log


def kill() -> None:
    raise Killed


def append(path: Path, first: int, last: int, *, header: bool = False) -> None:
    with path.open("a") as file:
        file.write(csv(X[first:last], header=header, first=first))


def numbers(folder: Path) -> list[int]:
    """Return the numbers of the rows of the output."""
    return [int(i) for i in re.findall(r"^r(\d+)", (folder / "out.csv").read_text(), re.MULTILINE)]


def test_rows_stay_in_the_output_when_their_log_was_truncated_after_a_kill(follow, tmp_path):
    log = tmp_path / "log.csv"
    append(log, 0, 30, header=True)
    with pytest.raises(Killed):
        follow()
    os.truncate(log, 0)
    append(log, 30, 40, header=True)

    with pytest.raises(FileError, match=r"after line 31 of .*sed -n '1p;32,\$p' COPY .*--restart"):
        follow()
    assert numbers(tmp_path) == list(range(30))
    with pytest.raises(Killed):
        follow(restart=True)

    assert numbers(tmp_path) == list(range(40))
    assert (tmp_path / "out.csv").read_text().count("id,") == 1


def test_a_log_that_was_truncated_and_has_grown_beyond_its_size_is_noticed(follow, tmp_path):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)

    def copytruncate() -> None:
        os.truncate(log, 0)
        append(log, 10, 40, header=True)

    with pytest.raises(FileError, match=r"was truncated while it was read\. Rows after line 11 of"):
        follow(copytruncate)

    assert numbers(tmp_path) == list(range(10))


def test_a_log_of_which_no_row_was_read_is_not_taken_for_a_known_one(follow, tmp_path):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)
    with pytest.raises(Killed):
        follow()
    log.write_text("id,d,c,b,a,note\n")
    with pytest.raises(Killed):
        follow(restart=True)  # before the first row
    append(log, 10, 20)
    os.truncate(log, 0)
    append(log, 20, 30, header=True)

    with pytest.raises(FileError, match="Rows after line 11 of"):
        follow()

    assert numbers(tmp_path) == list(range(10))


def test_a_new_file_is_known_before_its_first_row_is_written(follow, tmp_path):
    log, old = tmp_path / "log.csv", tmp_path / "log.csv.1"
    append(log, 0, 10, header=True)

    def rotate() -> None:
        append(log, 10, 12)
        log.rename(old)
        append(log, 12, 20, header=True)

    with pytest.raises(Killed):
        follow(rotate)
    old.unlink()  # not needed any more
    append(log, 20, 25)
    with pytest.raises(Killed):
        follow()

    assert numbers(tmp_path) == list(range(25))


def test_the_rest_of_a_log_that_was_renamed_after_a_kill_is_read_before_the_new_one(
    follow, tmp_path
):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)
    with pytest.raises(Killed):
        follow()
    append(log, 10, 15)
    log.rename(tmp_path / "log.csv.1")
    append(log, 15, 20, header=True)

    with pytest.raises(Killed):
        follow(lambda: None)

    assert numbers(tmp_path) == list(range(20))


def test_a_log_that_was_compressed_after_a_kill_is_an_error_and_can_be_sent_by_hand(
    follow, tmp_path, model
):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)
    with pytest.raises(Killed):
        follow()
    append(log, 10, 15)
    copy = tmp_path / "log.csv.1.gz"
    with log.open("rb") as file, gzip.open(copy, "wb") as target:
        shutil.copyfileobj(file, target)
    log.unlink()
    append(log, 15, 20, header=True)

    with pytest.raises(FileError, match="Rows after line 11 of") as raised:
        follow()
    assert numbers(tmp_path) == list(range(10))
    # What the message proposes: the header and the lines after line 11.
    rest = tmp_path / "rest"
    lines = gzip.decompress(copy.read_bytes()).splitlines(keepends=True)
    rest.write_bytes(lines[0] + b"".join(lines[11:]))
    assert "sed -n '1p;12,$p'" in str(raised.value)
    with pytest.raises(Killed):
        follow(source=rest, restart=True)
    with pytest.raises(Killed):
        follow(restart=True)

    assert numbers(tmp_path) == list(range(20))


def test_a_log_that_was_rotated_twice_is_an_error_that_names_the_file_in_between(follow, tmp_path):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)
    with pytest.raises(Killed):
        follow()
    log.rename(tmp_path / "log.csv.2")
    append(log, 10, 20, header=True)
    os.utime(log, ns=(0, (tmp_path / "log.csv.2").stat().st_mtime_ns + 10**9))
    log.rename(tmp_path / "log.csv.1")
    append(log, 20, 30, header=True)

    with pytest.raises(FileError, match=r"more than once; log.csv.1 was not read.*after line 11"):
        follow(lambda: None)

    assert numbers(tmp_path) == list(range(10))


def test_a_log_that_is_compressed_while_it_is_read_is_followed_to_the_next(follow, tmp_path):
    log, old = tmp_path / "log.csv", tmp_path / "log.csv.1"
    append(log, 0, 10, header=True)

    def rotate() -> None:
        log.rename(old)
        with gzip.open(tmp_path / "log.csv.1.gz", "wb") as target:
            target.write(old.read_bytes())
        old.unlink()
        append(log, 10, 20, header=True)

    with pytest.raises(Killed):
        follow(rotate)

    assert numbers(tmp_path) == list(range(20))


def test_the_columns_of_a_new_log_are_matched_by_name(follow, tmp_path, model, capfd):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)  # id,d,c,b,a,note

    def rotate() -> None:
        log.rename(tmp_path / "log.csv.1")
        log.write_text("a,new,id,c,d\n0.5,7,r10,0.125,0.0707\n,7,r11,0.125,0.0707\n")

    with pytest.raises(Killed):
        follow(rotate)
    with log.open("a") as file:
        file.write("0.5,7,r12,0.125,0.0707\n")
    with pytest.raises(Killed):
        follow()

    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,d,c,b,a,note"
    for line in (lines[11], lines[13]):
        assert re.fullmatch(r"r1[02],0\.0707,0\.125,-?\d[^,]*,0\.5,", line)
    assert lines[12].startswith("r11,0.0707,0.125,")
    assert float(lines[12].split(",")[4]) == pytest.approx(0.5, abs=0.2)
    printed = capfd.readouterr().err
    assert printed.count("lacks, which count as missing: b.") == 2  # once in each run
    assert "did not begin with are left out: new." in printed
    with pytest.raises(OSError, match="No such file"):
        os.stat(model.with_name(model.name + ".lock"))


def test_a_new_log_without_columns_of_the_model_ends_the_run(follow, tmp_path):
    log = tmp_path / "log.csv"
    append(log, 0, 10, header=True)

    def rotate() -> None:
        log.rename(tmp_path / "log.csv.1")
        log.write_text("k,l,m,n,o,p\n1,2,3,4,5,6\n")

    with pytest.raises(ValueError, match="Line 1: None of the columns of the model is in the"):
        follow(rotate)

    assert numbers(tmp_path) == list(range(10))


def test_a_second_process_with_the_same_model_is_an_error_that_names_the_first(follow, model):
    with (
        locked(model),
        pytest.raises(OutputError, match=rf"in use by process {os.getpid()} .*End it first"),
    ):
        follow()

    left = model.with_name(model.name + ".lock")
    left.write_text("123\n")  # by a process that was killed
    with locked(model):
        assert left.read_text() == f"{os.getpid()}\n"
    assert not left.exists()
    assert hirank.load(model).n_samples_seen_ == 50
