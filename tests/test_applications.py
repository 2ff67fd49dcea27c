"""The applications in examples/, on smaller tables: hirank is ahead of the others, and draws."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
RESULT = re.compile(r"^  (.+?) +(\d+\.\d+)$", re.MULTILINE)

pytestmark = pytest.mark.slow


def run_example(name, folder):
    """Return the printed result of each method, by name, in the order of printing."""
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert not run.returncode, run.stderr
    return {method: float(result) for method, result in RESULT.findall(run.stdout)}


@pytest.mark.parametrize("name", ["classification", "clustering", "motion"])
def test_hirank_has_the_lowest_error_and_a_picture_is_drawn(name, tmp_path):
    *others, hirank = run_example(name, tmp_path).items()

    assert len(others) >= 3
    assert hirank[0].startswith("hirank")
    # The closest: 1.37 against 1.65 cm of iterative ridge regression, for the motion.
    assert hirank[1] < min(error for _, error in others)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_an_image_is_restored_better_than_by_the_others(tmp_path):
    ratios = run_example("inpainting", tmp_path)

    # 21.0 dB; 20.8 dB for iterative ridge regression on the same patches.
    assert ratios["hirank"] > ratios["linear interpolation"] + 0.5
    assert ratios["hirank"] == max(ratios.values())
    assert (tmp_path / "inpainting.png").read_bytes().startswith(b"\x89PNG")
