"""Does the prequential error track the true error? Both in standard deviations, by stream.

Stationary streams: root mean square over the second half, true error of missing entries and
prequential error of held-out ones. Changing streams: correlation of the logarithms over
blocks of 200.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arrivals import on_arrival
from streams import load

sys.path.insert(0, str(Path(__file__).parents[1]))
from common import report, seeds

STATIONARY = ("one surface", "three surfaces", "ten subspaces")
CHANGING = ("abrupt change", "gradual change")
BLOCK = 200


def blocks(
    truth: np.ndarray, observed: np.ndarray, filled: np.ndarray, history: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the true and the prequential error of each block of samples after the first."""
    squares = ((filled - truth) / truth.std(axis=0)) ** 2
    true, own = [], []
    for low in range(BLOCK, len(truth), BLOCK):
        missing = ~observed[low : low + BLOCK]
        true.append(np.sqrt(squares[low : low + BLOCK][missing].mean()))
        part = history[(history["samples"] > low) & (history["samples"] <= low + BLOCK)]
        own.append(np.sqrt(np.average(part["error"] ** 2, weights=part["entries"])))
    return np.array(true), np.array(own)


def rows() -> Iterator[dict]:
    for name in (*STATIONARY, *CHANGING):
        found = []
        for seed in seeds(3 if name in CHANGING else 5):
            truth, observed = load(name, 0.5, seed)
            filled, model, _ = on_arrival(truth, observed, random_state=seed)
            true, own = blocks(truth, observed, filled, model.error_history_)
            half = slice(len(true) // 2, None)
            found.append(
                (
                    np.sqrt(np.mean(true[half] ** 2)),
                    np.sqrt(np.mean(own[half] ** 2)),
                    np.corrcoef(np.log(true), np.log(own))[0, 1],
                )
            )
        true, own, correlation = np.median(found, axis=0)
        yield {
            "case": name,
            "true": float(true),
            "prequential": float(own),
            "ratio": float(own / true),
            "correlation": float(correlation) if name in CHANGING else "",
        }


if __name__ == "__main__":
    report(rows())
