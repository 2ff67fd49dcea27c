"""Help, completion of the shell, and modules that are imported."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("complete", "fit", "apply", "stream", "advise", "info", "compare")
HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "matplotlib")
SLOW = ("sklearn.impute", "sklearn.linear_model", "sklearn.neighbors", "matplotlib")


def test_help_names_every_command(hirank):
    done = hirank("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_begins_with_an_example(hirank, command):
    lines = [line.strip() for line in hirank(command, "--help").stdout.splitlines()]
    shown = [line for line in lines if line]
    assert shown[0].startswith("Usage")
    assert shown[1].startswith("Example: ")
    assert f"hirank {command}" in shown[1]


def test_help_imports_no_large_package():
    code = (
        "import sys; sys.argv = ['hirank', '--help']\n"
        "from hirank.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


def test_apply_needs_no_module_that_takes_long_to_import():
    code = (
        "import sys, hirank.cli.apply, hirank.cli.models\n"
        f"print(*[name for name in {SLOW} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_version(hirank):
    assert hirank("--version").stdout.startswith("hirank 0.")


def test_unknown_command(hirank):
    assert hirank("fill").returncode == 2


def test_without_the_extra_one_line_names_the_package_to_install(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    done = subprocess.run(
        [sys.executable, "-m", "hirank", "--help"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.strip() == 'The command line requires typer: pip install "hirank[cli]"'


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_script(hirank, shell):
    env = {"_HIRANK_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [_program(), "--show-completion", shell], capture_output=True, text=True, check=False,
        env={**os.environ, **env, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )  # fmt: skip
    assert done.returncode == 0
    assert "_HIRANK_COMPLETE" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_completion_in_bash(tmp_path):
    script = (
        f'PATH="{Path(_program()).parent}:$PATH"\n'
        'eval "$(_HIRANK_COMPLETE=source_bash hirank)"\n'
        "COMP_WORDS=(hirank comp)\nCOMP_CWORD=1\n"
        "_hirank_completion hirank\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split()) == ["compare", "complete"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_completion_in_zsh():
    env = {**os.environ, "_HIRANK_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "hirank comp"}
    done = subprocess.run([_program()], capture_output=True, text=True, check=False, env=env)
    assert "complete" in done.stdout
    assert "compare" in done.stdout


def _program():
    """The installed command, beside the interpreter that runs the tests."""
    found = Path(sys.executable).with_name("hirank")
    if not found.exists():
        pytest.skip("hirank is not installed as a command here")
    return str(found)
