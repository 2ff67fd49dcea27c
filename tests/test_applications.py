"""The applications in examples/, on smaller tables: hirank is ahead of the others, and draws."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
RESULT = re.compile(r"^  (.+?) +(\d+\.\d+)$", re.MULTILINE)

pytestmark = pytest.mark.slow


def run_example(name, *arguments, folder):
    """Return the printed result of each method, by name, in the order of printing."""
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert not run.returncode, run.stderr
    return {method: float(result) for method, result in RESULT.findall(run.stdout)}


@pytest.mark.parametrize("name", ["classification", "clustering", "motion"])
def test_hirank_has_the_lowest_error_and_a_picture_is_drawn(name, tmp_path):
    *others, hirank = run_example(name, "--quick", folder=tmp_path).items()

    assert len(others) >= 3
    assert hirank[0].startswith("hirank")
    # The closest: 1.37 against 1.65 cm of iterative ridge regression, for the motion.
    assert hirank[1] < min(error for _, error in others)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_an_image_is_restored_better_than_by_the_others(tmp_path):
    ratios = run_example("inpainting", "--quick", folder=tmp_path)

    # 21.0 dB; 20.8 dB for iterative ridge regression on the same patches.
    assert ratios["hirank"] > ratios["linear interpolation"] + 0.5
    assert ratios["hirank"] == max(ratios.values())
    assert (tmp_path / "inpainting.png").read_bytes().startswith(b"\x89PNG")


def test_joint_angles_are_read_from_a_motion_capture_file(tmp_path):
    t = np.arange(80)[:, None]
    angles = 30 * np.sin(t / 6 + np.arange(6)) ** 2
    lines = ["#!OML:ASF", ":FULLY-SPECIFIED", ":DEGREES"]
    for frame, (a, b, c, d, e, f) in enumerate(angles, 1):
        lines += [
            f"{frame}",
            "root 1e6 0 0 0 0 0",
            f"femur {a} {b} {c}",
            f"foot {d} {e}",
            f"toe {f}",
        ]
    (tmp_path / "walk.amc").write_text("\n".join(lines))

    errors = run_example("motion", "walk.amc", folder=tmp_path)

    assert errors["hirank"] < errors["linear interpolation"] < 30  # the root is not included
    assert not (tmp_path / "motion.png").exists()
