"""Out-of-sample extension: a method learns from a complete table and fills holes in new samples.

Every second row of the table is new, the others are learned from. Option: `table`, options of the
table, such as `samples` on each surface.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import numpy as np

from hirank.metrics import missing_relative_error, relative_error
from hirank.study.cells import Cell, Measurement
from hirank.study.data import holes, table
from hirank.study.methods import make


def run(cell: Cell) -> Iterator[Measurement]:
    """Measures "relative error" and "missing error" of the new samples, and times.

    "fit seconds" are those of learning, "seconds per sample" those of filling.
    """
    X = table(cell.data, cell.seed, **cell.options.get("table", {})).X
    known, new = X[::2], X[1::2]
    observed = holes(new, cell.pattern, cell.rate, cell.seed)
    model = make(cell.method, cell.seed)
    began = process_time()
    model.fit(known)
    learned = process_time()
    filled = model.transform(np.where(observed, new, np.nan))
    done = process_time()
    yield Measurement("relative error", relative_error(filled, new))
    yield Measurement("missing error", missing_relative_error(filled, new, observed))
    yield Measurement("fit seconds", learned - began)
    yield Measurement("seconds per sample", (done - learned) / len(new))
