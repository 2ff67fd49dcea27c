"""Tables whose rows follow each other in time: what is held out, and the smoother."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hirank._typing import Array, BoolArray
from hirank.core.masking import MaskingConfig, mask_gaps
from hirank.core.missingness import columns_missing_together
from hirank.models.fit_smoother import fit_smoother
from hirank.models.timeline import Timeline
from hirank.selection.trial import SearchData, Selected


def make_gap_folds(
    timeline: Timeline, observed: BoolArray, rng: np.random.Generator, config: MaskingConfig
) -> list[BoolArray]:
    """Return entries to hold out, n x v, in gaps like those of the table; none without gaps.

    Columns that are missing together, such as those of one device, are held out together.
    """
    held_out, order = np.zeros(observed.shape, bool), timeline.order
    if not observed.size:
        return []
    columns = columns_missing_together(observed, config)
    held_out[order] = mask_gaps(observed[order], rng, groups=columns, config=config)
    return [held_out] if held_out.any() else []


def with_smoother(
    timeline: Timeline, data: SearchData, selected: Selected, first_fold: Array
) -> Selected:
    """Fit the smoother, and impute the held-out entries of the first fold with it as well.

    `first_fold` is the table, n x v, as the stack imputed it without the held-out entries.
    """
    if not data.X.size:
        return selected
    order, held_out = timeline.order, np.zeros(data.observed.shape, bool)
    entries = selected.result.held_out
    if entries is not None:
        held_out = data.folds[0]
    smoother = fit_smoother(
        data.X[order],
        data.observed[order],
        held_out[order],
        timeline.take(order),
        first_fold[order],
        data.rng,
    )
    selected = selected._replace(smoother=smoother)
    if entries is None or not held_out.any():
        return selected
    imputed = smoother.combine_rows(data.X, data.observed & ~held_out, timeline, first_fold)
    mine = replace(entries.take(slice(int(held_out.sum()))), imputed=imputed[held_out])
    result = replace(selected.result, held_out=mine)
    return selected._replace(result=result, error_factor=1.0)
