"""Standard streams that are closed or full, and errors as JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.program import invoke

pytest.importorskip("typer")
from hirank.cli import main
from hirank.cli.reporter import Reporter
from hirank.exceptions import InputError

posix = pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
TABLE = "a,b\n1,2\n2,3\n3,4\n"


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `hirank ARGUMENTS REDIRECTIONS` in a shell, without typer's boxes."""
    program = f"{sys.executable} -m hirank {command}"
    return subprocess.run(["sh", "-c", program], cwd=folder, capture_output=True, text=True)


@posix
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("complete - -o f.csv <&-", 3, "-: It is closed. Open it, or use a file."),
        ("complete t.csv -o - >&-", 4, "-: It is closed."),
        ("complete t.csv -o f.csv >&- 2>&-", 0, ""),
        ("stream -m m.hirank <&-", 3, "standard input: It is closed."),
        ("stream -m m.hirank t.csv >&-", 4, "standard output: It is closed."),
        ("complete t.csv -o f.csv > /dev/full", 4, "standard output: No space is left"),
    ],
)
def test_closed_and_full_standard_streams_are_named(tmp_path, command, code, message):
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    (tmp_path / "t.csv").write_text(TABLE)

    done = shell(command, tmp_path)

    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "t.csv").read_text() == TABLE


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("complete", "none.csv", "-o", "f.csv"), 3),
        (("fit", "none.csv", "-m", "m"), 3),
        (("apply", "none.csv", "-m", "none", "-o", "f.csv"), 3),
        (("advise", "none.csv"), 3),
        (("compare", "none.csv"), 3),
        (("info", "none"), 3),
    ],
)
def test_with_json_an_error_is_one_json_object(tmp_path, monkeypatch, arguments, code):
    monkeypatch.chdir(tmp_path)

    done = invoke(*arguments, "--json")

    assert done.exit_code == code
    printed = json.loads(done.stderr)
    assert printed["exit_code"] == code
    assert "none" in printed["error"]


def test_with_json_an_error_of_a_stream_is_an_event(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = invoke("stream", "none.csv", "-m", "m", "--json")

    last = json.loads(done.stderr.splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("error", 3)
    assert "none.csv" in last["message"]


@pytest.mark.parametrize("arguments", [("complete",), ("apply",), ("fit", "--nonsense")])
def test_with_json_wrong_options_are_a_json_object(monkeypatch, capsys, arguments):
    monkeypatch.setattr(sys, "argv", ["hirank", *arguments, "--json"])

    with pytest.raises(SystemExit) as raised:
        main()

    assert raised.value.code == 2
    assert json.loads(capsys.readouterr().err)["exit_code"] == 2


def test_with_json_a_defect_is_a_json_object_with_its_traceback(capsys):
    reporter = Reporter(as_json=True)
    reporter.note("before")

    with pytest.raises(SystemExit) as raised, reporter:
        raise ZeroDivisionError("x")

    printed = json.loads(capsys.readouterr().err)
    assert raised.value.code == printed["exit_code"] == 1
    assert printed["error"] == "ZeroDivisionError: x"
    assert printed["notes"] == ["before"]
    assert "test_standard_streams" in printed["traceback"]


def test_without_json_an_error_is_a_line_of_text(capsys):
    with pytest.raises(SystemExit), Reporter():
        raise InputError("The table is empty.")

    assert capsys.readouterr().err == "hirank: The table is empty.\n"
