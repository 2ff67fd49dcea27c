"""Samples after an abrupt change until the on-arrival error is back within 1.5 times its level.

A curved surface, and another one from sample 2000 of 4000 on, with drift detection and without;
and a stream that does not change, where drift detection must not increase the error.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arrivals import on_arrival
from streams import load

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report, seeds

from hirank.metrics import missing_relative_error

CHANGE, BLOCK = 2000, 100


def rows() -> Iterator[dict]:
    for seed in seeds(3):
        for name, detection in (
            ("abrupt change", "refit"),
            ("abrupt change", "monitor"),
            ("three surfaces", "refit"),
            ("three surfaces", "monitor"),
        ):
            truth, observed = load(name, 0.5, seed)
            settings = {"random_state": seed, "drift_detection": detection}
            filled, _, refits = on_arrival(truth, observed, **settings)

            def error(low: int, high: int, t=truth, f=filled, o=observed) -> float:
                return missing_relative_error(f[low:high], t[low:high], o[low:high])

            row = {"case": name, "seed": seed, "detection": detection, "refits": refits}
            if name != "abrupt change":
                yield row | {"level": error(600, 1200), "samples to recover": "", "mean after": ""}
                continue
            level = error(CHANGE - 600, CHANGE)
            lows = range(CHANGE, len(truth), BLOCK)
            back = [low for low in lows if error(low, low + BLOCK) <= 1.5 * level]
            yield row | {
                "level": level,
                "samples to recover": back[0] - CHANGE if back else np.inf,
                "mean after": error(CHANGE + 100, CHANGE + 1000),
            }


if __name__ == "__main__":
    report(rows())
