"""Limited-memory BFGS for many independent problems side by side.

Each row of an array is a problem of its own: own step length, own curvature, own line search. One
round costs one evaluation of all rows. A row whose trial point is good enough accepts it and
turns to a new direction; the others shorten their step and try again in the next round. So no row
waits for, or depends on, another. A joint problem is the case of one row.

With limits to the variables this is a projected method. Variables that sit at a limit which
descent would lead them across are held: direction and curvature are those of the others. Trial
points are projected onto the box, and judged by the decrease that the projected step promises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from hirank._typing import Array, BoolArray, IntArray
from hirank.core.bounds import Box

SUFFICIENT = 1e-4  # part of the decrease predicted by the slope that a step must reach (Armijo)
MIN_CURVATURE = 0.1  # part of the curvature of a step that must remain without held variables

Precondition: TypeAlias = Callable[[Array], Array]
"""A symmetric positive definite guess at the inverse Hessians, applied to b x N."""


class Pair(NamedTuple):
    """The steps of one round and the changes of the gradient along them."""

    s: Array  # b x N
    y: Array  # b x N
    rho: Array  # b: 1 / <s, y>, or 0 where the row took no usable step


@dataclass(frozen=True)
class Rows:
    """Where every row stands: b problems with N variables each."""

    x: Array  # b x N, accepted points
    value: Array  # b
    gradient: Array  # b x N
    direction: Array  # b x N
    length: Array  # b, next trial step along the direction
    gamma: Array  # b, curvature scale of the last usable step
    history: tuple[Pair | None, ...]  # of the last rounds; None where no row took a step
    precondition: Precondition | None = None
    box: Box | None = None  # the points are within


def dot(a: Array, b: Array) -> Array:
    """Return inner products row by row, b x N -> b."""
    return np.einsum("ij,ij->i", a, b)


def begin(
    x: Array,
    value: Array,
    gradient: Array,
    memory: int,
    precondition: Precondition | None = None,
    box: Box | None = None,
) -> Rows:
    """Begin with steepest descent and a short first step; x, b x N, must be in the box."""
    if box is None:
        direction = -gradient if precondition is None else -precondition(gradient)
    else:
        direction = _free_direction(
            gradient, box.held(x, gradient), np.ones(len(x), x.dtype), (), precondition
        )
    norm = np.sqrt(np.maximum(-dot(gradient, direction), 0))
    length = 1 / np.maximum(norm, np.finfo(x.dtype).tiny ** 0.5)
    return Rows(
        x=x,
        value=value,
        gradient=gradient,
        direction=direction,
        length=np.minimum(1, length).astype(x.dtype),
        gamma=np.ones(len(x), x.dtype),
        history=(None,) * memory,
        precondition=precondition,
        box=box,
    )


class Minima(NamedTuple):
    """Where many small problems ended."""

    x: Array  # b x N
    value: Array  # b
    evaluations: IntArray  # b


def minimize_rows(
    evaluate: Callable[[Array, IntArray], tuple[Array, Array]],
    x: Array,
    *,
    rounds: int,
    memory: int,
    box: Box | None = None,
    inverses: Array | None = None,
    tolerance: float = 0.0,
    min_decrease: float = 0.0,
) -> Minima:
    """Take up to so many rounds from x, b x N, of which none is recorded.

    ``evaluate(points, rows)`` returns the values and gradients of the problems at the positions
    `rows`. `inverses`, b x N x N, are guesses at the inverse Hessians. A row ends where no entry of
    its next step is larger than `tolerance`, or where that step promises no decrease larger than
    `min_decrease`; it is not evaluated any more.
    """
    active = np.arange(len(x))
    guide = None if inverses is None else partial(_apply, inverses)
    rows = begin(x, *evaluate(x, active), memory, guide, box)
    end = Minima(rows.x.copy(), rows.value.copy(), np.ones(len(x), np.intp))
    for _ in range(rounds):
        largest = np.abs(rows.direction).max(axis=1, initial=0)
        promised = -dot(rows.gradient, rows.direction) / 2
        going = (largest > tolerance) & (promised > min_decrease)
        if not going.all():
            active, rows = active[going], _select(rows, going)
            if inverses is not None:
                inverses = inverses[going]
                rows = replace(rows, precondition=partial(_apply, inverses))
        if not len(active):
            break
        point = trial(rows)
        rows = update(rows, point, *evaluate(point, active))
        end.x[active], end.value[active] = rows.x, rows.value
        end.evaluations[active] += 1
    return end


def _apply(matrices: Array, v: Array) -> Array:
    """Return the products of b x N x N matrices with b x N vectors, each on its own."""
    product: Array = (matrices @ v[:, :, None])[:, :, 0]
    return product


def _select(rows: Rows, kept: BoolArray) -> Rows:
    """Return some of the rows."""
    return replace(
        rows,
        **{
            name: getattr(rows, name)[kept]
            for name in ("x", "value", "gradient", "direction", "length", "gamma")
        },
        history=tuple(
            None if pair is None else Pair(*(part[kept] for part in pair)) for pair in rows.history
        ),
        box=None if rows.box is None else Box(rows.box.lower[kept], rows.box.upper[kept]),
    )


def trial(rows: Rows) -> Array:
    """Return the points to evaluate next, b x N."""
    point = rows.x + rows.length[:, None] * rows.direction
    return point if rows.box is None else rows.box.clip(point)


def update(rows: Rows, point: Array, value: Array, gradient: Array) -> Rows:
    """Accept or reject the trial points by their values (b) and gradients (b x N)."""
    if rows.box is None:
        slope = dot(rows.gradient, rows.direction)
    else:  # mean slope of the projected path to the point
        slope = dot(rows.gradient, point - rows.x) / rows.length
    accepted = value <= rows.value + SUFFICIENT * rows.length * slope
    if rows.box is not None:
        accepted &= slope <= 0
    shorter = _shorter(rows, value, slope)
    if not accepted.any():
        return replace(rows, length=shorter, history=(*rows.history[1:], None))
    s, y = point - rows.x, gradient - rows.gradient
    if not accepted.all():
        column = accepted[:, None]
        s, y = np.where(column, s, 0), np.where(column, y, 0)
        point = np.where(column, point, rows.x)
        gradient = np.where(column, gradient, rows.gradient)
        value = np.where(accepted, value, rows.value)
    if rows.box is not None:
        y = np.where(s == 0, 0, y)  # curvature along the variables that moved
    sy = dot(s, y)
    yy = dot(y, y if rows.precondition is None else rows.precondition(y))
    usable = accepted & (sy > np.finfo(sy.dtype).eps * yy * rows.gamma)
    pair = Pair(s, y, np.divide(1, sy, out=np.zeros_like(sy), where=usable))
    gamma = np.divide(sy, yy, out=rows.gamma.copy(), where=usable)
    history = (*rows.history[1:], pair)
    if rows.box is None:
        direction = _two_loop(gradient, gamma, history, rows.precondition)
    else:
        held = rows.box.held(point, gradient)
        direction = _free_direction(gradient, held, gamma, history, rows.precondition)
    if not accepted.all():
        direction = np.where(column, direction, rows.direction)
    length = np.where(accepted, 1, shorter).astype(shorter.dtype)
    return replace(
        rows,
        x=point,
        value=value,
        gradient=gradient,
        direction=direction,
        length=length,
        gamma=gamma,
        history=history,
    )


def _shorter(rows: Rows, value: Array, slope: Array) -> Array:
    """Return the length at the minimum of the interpolating parabola, times 0.1 to 0.5 at most."""
    with np.errstate(all="ignore"):
        t = rows.length
        best = -slope * t / (2 * (value - rows.value - slope * t))
    factor = np.where(np.isfinite(best), np.clip(best, 0.1, 0.5), 0.1)
    return (rows.length * factor).astype(rows.length.dtype)


def _free_direction(
    gradient: Array,
    held: BoolArray,
    gamma: Array,
    history: tuple[Pair | None, ...],
    precondition: Precondition | None,
) -> Array:
    """Return the direction of `_two_loop` for variables that are not held, b x N, 0 for the others.

    All of H is restricted, not only its result, which might otherwise not be a descent direction.
    """

    def free(a: Array) -> Array:
        return np.where(held, 0, a)

    def freed(pair: Pair) -> Pair:
        s, y = free(pair.s), free(pair.y)
        sy = dot(s, y)
        usable = (pair.rho > 0) & (sy * pair.rho > MIN_CURVATURE)
        return Pair(s, y, np.divide(1, sy, out=np.zeros_like(sy), where=usable))

    guide = None if precondition is None else lambda a: free(precondition(free(a)))
    pairs = tuple(freed(pair) for pair in history if pair is not None)
    return _two_loop(free(gradient), gamma, pairs, guide)


def _two_loop(
    gradient: Array,
    gamma: Array,
    history: tuple[Pair | None, ...],
    precondition: Precondition | None,
) -> Array:
    """Return - H gradient, b x N, for the inverse Hessian H that the history describes."""
    q = -gradient
    pairs = [pair for pair in history if pair is not None]
    weights = []
    for pair in reversed(pairs):
        a = pair.rho * dot(pair.s, q)
        q -= a[:, None] * pair.y
        weights.append(a)
    if precondition is not None:
        q = precondition(q)
    q *= gamma[:, None]
    for pair, a in zip(pairs, reversed(weights), strict=True):
        b = pair.rho * dot(pair.y, q)
        q += (a - b)[:, None] * pair.s
    return q
