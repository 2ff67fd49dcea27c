import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.compiled import COMPILED, assert_as_numpy, assert_close, layouts

import hirank
from hirank import _compiled

SOURCE = Path(hirank.__file__).parents[1]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh process."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_best_instruction_set_is_used_first():
    expected = COMPILED[0] if COMPILED else "off"
    done = python(
        "from hirank import _compiled; print(_compiled.instruction_set())", HIRANK_COMPILED=""
    )
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("name", ["off", *COMPILED])
def test_the_environment_selects_an_instruction_set(name):
    code = "from hirank import _compiled; print(_compiled.instruction_set())"
    assert python(code, HIRANK_COMPILED=name).stdout.strip() == name


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ImportError, match=r"must be one of .*off on this machine; got 'fastest'"):
        _compiled.using("fastest").__enter__()


def test_blocks_can_be_nested():
    outside = _compiled.instruction_set()
    with _compiled.using("off"):
        for name in COMPILED:
            with _compiled.using(name):
                assert _compiled.instruction_set() == name
        assert _compiled.core() is None
    assert _compiled.instruction_set() == outside


def test_a_module_supports_its_own_instruction_set(core):
    assert core.supports(_compiled.instruction_set())
    assert not core.supports("nonsense")


def test_the_comparison_sees_other_values_and_other_errors():
    def differs():
        return np.zeros(2), 1e-3 * (_compiled.core() is not None)

    def fails():
        raise ValueError(_compiled.instruction_set())

    assert_as_numpy(differs, atol=1e-2)
    if COMPILED:
        with pytest.raises(AssertionError):
            assert_as_numpy(differs, atol=1e-4)
        with pytest.raises(AssertionError):
            assert_as_numpy(fails)
    with pytest.raises(AssertionError):
        assert_close((np.zeros(2),), (np.zeros(2, np.float32),))


def test_layouts_hold_the_same_values():
    A = np.arange(6.0).reshape(2, 3)
    kinds = list(layouts(A))
    assert all((one == A).all() for one in kinds)
    assert sum(one.flags.c_contiguous for one in kinds) == 1


def test_all_modules_that_were_built_can_be_loaded_side_by_side():
    problems = [_compiled._import(name)[1] for name in _compiled.INSTRUCTION_SETS]
    assert not any(problems)
