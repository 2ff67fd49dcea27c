"""The examples of the documentation run: README, guide, docstrings and the gallery."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    pytest.param("docs/guide.md", marks=pytest.mark.slow),
    pytest.param("docs/choosing.md", marks=pytest.mark.slow),
    pytest.param("docs/algorithms.md", marks=pytest.mark.slow),
]
PACKAGES = ["hirank", "hirank.baselines", "hirank.cluster", "hirank.datasets", "hirank.theory"]
# These, with what they share, are tested with smaller tables: test_demo.py, test_applications.py.
APPLICATIONS = {
    *("demo.py", "classification.py", "clustering.py", "inpainting.py", "motion.py"),
    "others.py",
}
GALLERY = sorted({path.name for path in (ROOT / "examples").glob("*.py")} - APPLICATIONS)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAPER = {"Algorithm": 3, "Lemma": 6, "Figure": 11, "Table": 2}  # and 80 equations
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    for package in ("matplotlib", "jinja2", "pandas", "river", "dask", "pyarrow"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)  # the blocks write files
    text = (ROOT / page).read_text()
    blocks = [(match[1], text[: match.start(1)].count("\n")) for match in BLOCK.finditer(text)]
    assert blocks

    names = {}
    for source, line in blocks:
        exec(compile("\n" * line + source, page, "exec"), names)  # errors name the line


@pytest.mark.slow
@pytest.mark.parametrize("name", GALLERY)
def test_a_script_of_the_gallery_runs(name, tmp_path):
    pytest.importorskip("matplotlib")
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "examples" / name)]

    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)

    assert not run.returncode, run.stderr
    assert run.stdout


@pytest.mark.parametrize("package", [*PACKAGES, "hirank.metrics"])
def test_every_public_name_has_an_example(package):
    module = importlib.import_module(package)

    missing = [name for name in module.__all__ if ">>>" not in getattr(module, name).__doc__]

    assert module.__all__
    assert not missing


@pytest.mark.skipif(not (ROOT / "reproduction").exists(), reason="not in the source archive")
def test_links_between_pages_lead_to_files():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages += [*(ROOT / "benchmarks").rglob("*.md"), *(ROOT / "examples").glob("*.md")]

    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]

    assert not broken


def test_notes_that_the_code_refers_to_exist():
    source = [*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]
    named = {
        note for path in source for note in re.findall(r"docs/notes/\w+\.md", path.read_text())
    }

    assert named
    assert not [note for note in named if not (ROOT / note).exists()]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_architecture_page_names_every_module():
    text = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Modules\n")[2]
    source = ROOT / "src" / "hirank"
    package, described = "", set()
    for line in text.splitlines():
        if line.startswith("**"):
            package = match[1] + "/" if (match := re.match(r"\*\*`(\w+)`", line)) else ""
        elif match := re.match(r"\| `([\w/]+)` \|", line):
            described.add(f"{package}{match[1]}.py")
    modules = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if path.name != "__init__.py"
    }

    assert described == modules


def test_names_in_the_four_ways_exist():
    for package in ("typer", "jinja2", "pyarrow"):
        pytest.importorskip(package)
    text = (ROOT / "docs" / "architecture.md").read_text().partition("\n## To add")[0]
    packages = {path.name for path in (ROOT / "src" / "hirank").iterdir() if path.is_dir()}
    names = re.findall(r"`(\w+(?:\.\w+)+)`", text)
    checked = [name for name in names if name.partition(".")[0] in packages]

    missing = [name for name in checked if not _exists(f"hirank.{name}")]

    assert len(checked) > 60
    assert not missing


@pytest.mark.skipif(not (ROOT / "reproduction").exists(), reason="not in the source archive")
def test_every_statement_of_the_paper_names_code_and_tests_that_exist():
    text = (ROOT / "docs" / "paper.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| [A-Z\d]", line)]
    numbers = [row[0].removeprefix("| ") for row in rows]
    expected = [f"{kind} {i}" for kind, most in PAPER.items() for i in range(1, most + 1)]

    assert len(numbers) == len(set(numbers))
    assert {*map(str, range(1, 81)), *expected, "Theorem 2"} <= {*numbers}
    for name, _, code, checked, holds in rows:
        quoted = [re.findall(r"`([^`]+)`", cell) for cell in (code, checked)]
        assert all(quoted), f"{name} has no code, or nothing that checks it"
        missing = [found for cell in quoted for found in cell if not _is_in_repository(found)]
        assert not missing, f"{name}: {missing}"
        assert re.match(r"(yes|partly|no)\b", holds), name


def _is_in_repository(name):
    """Return whether a file, a file::beginning of a test, or a name in hirank exists."""
    if "/" not in name:
        return _exists(f"hirank.{name}")
    path, _, beginning = name.partition("::")
    return (ROOT / path).exists() and (
        not beginning or f"\ndef {beginning}" in (ROOT / path).read_text()
    )


def _exists(name):
    """Return whether a dotted name is a module, or an attribute of one."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
