import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import hirank
from hirank.optim.algorithm2_steps import spectral_norm
from hirank.optim.compiled import compiled

MODULE = """
import numpy as np
from hirank.optim.compiled import compiled

LIMIT = 3

@compiled
def double(x):
    return 2.0 * x

@compiled
def chain(x):
    for _ in range(LIMIT):
        x = double(x)
    return x
"""


def python(code: str, cwd: Path, **environment: str) -> str:
    """What a fresh process prints."""
    source = str(Path(hirank.__file__).parents[1])
    path = os.pathsep.join([source, str(cwd)])
    result = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(code)],
        cwd=cwd,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.fixture
def project(tmp_path):
    """A directory with a module of two compiled functions, one of which calls the other."""
    (tmp_path / "small.py").write_text(MODULE)
    return tmp_path


def test_importing_hirank_does_not_import_numba(tmp_path):
    code = """
        import sys, hirank, hirank.optim.algorithm2
        print("numba" in sys.modules)
    """
    assert python(code, tmp_path) == "False"


def test_both_forms_give_the_same():
    H = np.random.default_rng(0).standard_normal((6, 6))
    H += H.T
    exact = np.linalg.norm(H, 2)
    assert spectral_norm(H) == pytest.approx(exact, rel=1e-3)
    assert spectral_norm.plain(H) == pytest.approx(spectral_norm(H), rel=1e-12)
    assert spectral_norm(np.zeros((3, 3))) == spectral_norm.plain(np.zeros((3, 3))) == 0


def test_the_plain_form_calls_plain_forms(project):
    code = """
        import sys, small
        print(small.chain.plain(1.0), "numba" in sys.modules)
    """
    assert python(code, project) == "8.0 False"


def test_a_compiled_function_keeps_its_name_and_docstring():
    assert spectral_norm.__name__ == "spectral_norm"
    assert "power method" in spectral_norm.__doc__


def test_only_functions_can_be_compiled():
    with pytest.raises(TypeError, match="function"):
        compiled(np.sum)


@pytest.mark.parametrize(
    "absence",
    [
        "sys.modules['numba'] = None",
        # As Numba greets a NumPy that is newer than itself.
        "open('numba.py', 'w').write('raise ImportError(\"Numba needs NumPy 1.0 or less\")')",
        "open('numba.py', 'w').write('raise SystemError(\"broken\")')",
    ],
)
def test_without_numba_the_plain_form_runs(absence, project):
    code = f"""
        import sys
        sys.path.insert(0, ".")
        {absence}
        import small
        print(small.chain(1.0), small.chain.fastest is small.chain.plain)
    """
    assert python(code, project) == "8.0 True"


COMPILED = """
    import small
    print(small.chain(1.0), small.double(1.0))
    for function in (small.chain.fastest, small.double.fastest):
        print(sum(function.stats.cache_hits.values()), sum(function.stats.cache_misses.values()))
"""


def test_a_second_process_finds_the_machine_code_on_disk(project):
    pytest.importorskip("numba")
    home = str(project / "cache")
    assert python(COMPILED, project, NUMBA_CACHE_DIR=home).split("\n")[0] == "8.0 2.0"
    assert python(COMPILED, project, NUMBA_CACHE_DIR=home).split("\n") == ["8.0 2.0", "1 0", "1 0"]


def test_without_a_writable_directory_it_compiles_all_the_same(project):
    pytest.importorskip("numba")
    # A file is where the directory would have to be: root may write anywhere else.
    (project / "__pycache__").write_text("")
    (project / "home").write_text("")
    home = str(project / "home")
    code = """
        import small
        print(small.chain(1.0), hasattr(small.chain.fastest, "stats"))
        print(small.chain.fastest.stats.cache_path)
    """
    got = python(
        code,
        project,
        HOME=home,
        XDG_CACHE_HOME=home,
        NUMBA_CACHE_DIR="",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert got == "8.0 True\nNone"
