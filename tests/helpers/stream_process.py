"""A process that streams rows without end, to be killed: ``stream_process.py STATE CLASS``.

It continues from the saved state if there is one. A row is reported, by its number on a line, once
a state that has learned from it is saved.
"""

import sys
from pathlib import Path

import numpy as np

import hirank
from helpers.estimators import fast_online
from helpers.saved_state import load, save

SAVE_EVERY = 20


def row(number: int) -> np.ndarray:
    """The same row for the same number, 1 x 6."""
    rng = np.random.default_rng([7, number])
    t = rng.uniform(-1, 1)
    values = np.array([[t, t**2, t**3, np.cos(3 * t), np.sin(2 * t), 1 - t]])
    values[0, rng.integers(6)] = np.nan
    return values


def make_model(kind: str) -> hirank.OnlineImputer | hirank.OnlineKFMC:
    return fast_online(getattr(hirank, kind), batch_size=15)


def main(path: Path, kind: str) -> None:
    new = make_model(kind)
    model = type(new).from_state(load(path)) if path.exists() else new
    number = model.n_samples_seen_ if path.exists() else 0
    while True:
        model.partial_fit(row(number))
        number += 1
        if number % SAVE_EVERY == 0:
            save(model.get_state(), path)
            print(number, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
