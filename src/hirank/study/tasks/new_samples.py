"""Out-of-sample extension: a method learns from a complete table and fills holes in new samples.

Every second row of the table is new, the others are learned from. Option: `data`, options of the
table, such as `n_samples` on each surface.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

from hirank.study.cells import Cell, Measurement
from hirank.study.data import holes, table
from hirank.study.methods import make
from hirank.study.trial import Trial, errors


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures the errors of the new samples, and times.

    "fit seconds" are those of learning, "seconds per sample" those of filling.
    """
    X = table(cell.data, cell.seed, **cell.options.get("data", {})).X
    known, new = X[::2], X[1::2]
    trial = Trial(new, holes(new, cell.pattern, cell.rate, cell.seed), None)
    model = make(cell.method, cell.seed)
    began = process_time()
    model.fit(known)
    learned = process_time()
    filled = model.transform(trial.given)
    done = process_time()
    yield from errors(filled, trial)
    yield Measurement("fit seconds", learned - began)
    yield Measurement("seconds per sample", (done - learned) / len(new))
