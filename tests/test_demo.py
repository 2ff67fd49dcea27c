import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.mark.slow
def test_the_demo_prints_a_table_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "demo.png"
    command = [sys.executable, str(DEMO), "--images", "100", "--picture", str(picture)]

    run = subprocess.run(command, capture_output=True, text=True, check=True)

    lines = run.stdout.splitlines()
    errors = {line[:22].strip(): float(line[22:30]) for line in lines[3:8]}
    assert len(errors) == 5
    assert errors["hirank"] < 0.9 * errors["column mean"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in run.stdout
