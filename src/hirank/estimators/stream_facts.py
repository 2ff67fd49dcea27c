"""What the header of a model file states about a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hirank.online.arrival import Arrivals
from hirank.online.config import ArrivalConfig
from hirank.online.grouped import GroupedStream

if TYPE_CHECKING:
    from hirank.estimators import OnlineImputer

AGES = {"value in the row before": 1.0, "missing for 10 rows": 10.0}
"""Rows since the last value of an entry, for which weights are stated."""
MAX_WEIGHTED = 100
"""Groups, those with the newest rows, whose weights are stated."""


def describe_stream(model: OnlineImputer) -> dict[str, Any]:
    """Return rows seen, recent errors by feature, and what has weight; also of each group."""
    stream, config = model._stream, model._config().arrival
    facts: dict[str, Any] = {
        "rows": stream.samples,
        "recent_error": _known(stream.scores.recent),
        "feature_errors": [_known(error) for error in model.feature_errors_],
    }
    if not isinstance(stream, GroupedStream):
        return {**facts, "weights": _weights(stream.arrivals, config)}
    groups: dict[str, dict[str, Any]] = {}
    for label in [*stream.groups][:-MAX_WEIGHTED]:
        groups[label] = {"rows": stream.groups[label].moments.rows}
    for label, ordered in [*stream.groups.items()][-MAX_WEIGHTED:]:
        weights = _weights(replace(stream.arrivals, ordered=ordered), config)
        groups[label] = {"rows": ordered.moments.rows, "weights": weights}
    return {**facts, "weights": _mean_weights(groups), "groups": groups}


def _weights(arrivals: Arrivals, config: ArrivalConfig | None) -> dict[str, dict[str, float]]:
    return {where: arrivals.mean_weights(age, config) for where, age in AGES.items()}


def _mean_weights(groups: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean weights of groups."""
    known = [facts["weights"] for facts in groups.values() if "weights" in facts]
    return {
        where: {
            kind: float(np.mean([weights[where][kind] for weights in known]))
            for kind in known[0][where]
        }
        for where in (AGES if known else ())
    }


def _known(error: float) -> float | None:
    """Return an error with three digits; None if it is not known."""
    return None if np.isnan(error) else float(f"{error:.3g}")
