"""`--group`: rows of one device follow each other."""

import csv

import numpy as np
import pytest
from helpers.program import invoke

QUICK = ("--max-time", "0.3")


@pytest.fixture
def panel(tmp_path):
    """A file with dates, devices with names of text and digits, and gaps."""
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(3, 40, 3)).cumsum(axis=1) + 20 * rng.normal(size=(3, 1, 3))
    lines = ["when,device,x,y,z"]
    for hour in range(40):
        for device, walk in zip(("pump A", "pump B", "7"), walks, strict=True):
            cells = [f"{x:.2f}" if rng.random() > 0.3 else "" for x in walk[hour]]
            lines.append(
                f"2024-01-{1 + hour // 24:02d} {hour % 24:02d}:00,{device},{','.join(cells)}"
            )
    path = tmp_path / "panel.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_tables_of_devices_are_imputed_and_models_applied(panel, tmp_path):
    options = ("--time", "when", "--group", "device", *QUICK)

    done = invoke(
        "complete", panel, "-o", tmp_path / "a.csv", "--save", tmp_path / "m.hirank", *options
    )
    applied = invoke("apply", "-m", tmp_path / "m.hirank", panel, "-o", tmp_path / "b.csv")

    assert done.exit_code == applied.exit_code == 0, done.output + applied.output
    for path in ("a.csv", "b.csv"):
        before, after = rows(panel), rows(tmp_path / path)
        assert all(cell for row in after for cell in row)
        assert all(
            x in ("", y)
            for a, b in zip(before, after, strict=True)
            for x, y in zip(a, b, strict=True)
        )


def test_rows_without_a_device_are_refused(panel, tmp_path):
    panel.write_text(panel.read_text().replace("pump B", "", 1))

    done = invoke("complete", panel, "-o", tmp_path / "a.csv", "--group", "device", *QUICK)

    assert done.exit_code != 0
    assert "1 row has no label in the column of groups, 'device'" in done.output


def test_long_gaps_may_be_left_empty_within_groups(panel, tmp_path):
    done = invoke("fit", panel, "-m", tmp_path / "m.hirank", "--max-gap", "3", *QUICK)

    assert done.exit_code != 0
    assert "--max-gap requires --time or --group." in done.output
