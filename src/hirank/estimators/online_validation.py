"""What the constructor arguments of OnlineKFMC mean: checked, and as the plan of a stream."""

from __future__ import annotations

from typing import Any

from hirank.estimators.validation import (
    check_choice,
    check_common,
    check_count,
    check_missing_values,
    check_number,
    components_of,
    kernel_of,
)
from hirank.kernels import RBF
from hirank.online.config import Plan
from hirank.optim.algorithm2 import (
    BANDWIDTH,
    FIRST_BETA,
    LAST_BETA,
    POLY_ALPHA,
    POLY_BETA,
    STREAM_BETA,
)
from hirank.optim.path import BANDWIDTHS, SolverConfig, Stage, default_path
from hirank.optim.path import LAST_BETA as END_OF_PATH

BATCH = 50
START = 200
WALK_STEPS, WALK_TOL = 60, 1e-2
PAPER_STEPS, PAPER_TOL = 50, 1e-5


def check_online(model: Any) -> None:
    """Raise if an argument of OnlineKFMC is wrong, and say what to give instead."""
    check_common(model)
    check_missing_values(model.missing_values)
    check_choice("mode", model.mode, ("window", "paper"))
    check_choice("self_score", model.self_score, ("react", "watch", "off"))
    for name in ("window", "n_start", "n_passes"):
        check_count(name, getattr(model, name))
    for name in ("batch_size", "max_iter"):
        if getattr(model, name) is not None:
            check_count(name, getattr(model, name))
    if model.tol is not None:
        check_number("tol", model.tol, least=0)
    if model.mode == "paper":
        return
    if model.window < 2:
        raise ValueError(f"window must be at least 2; got {model.window}.")
    if model.n_components != "auto" and model.n_components > model.window:
        raise ValueError(
            f"n_components={model.n_components} is more than the rows that window={model.window} "
            "remembers. Use a larger window or fewer components."
        )


def plan_of(model: Any) -> Plan:
    """The plan of a stream."""
    paper = model.mode == "paper"
    kernel = kernel_of(model)
    alpha = float(model.alpha)
    falling = None
    if paper:
        rbf = isinstance(kernel, RBF)
        bandwidth = BANDWIDTH if model.bandwidth == "path" else float(model.bandwidth)
        beta = model.beta
        if beta is None:
            beta = STREAM_BETA if rbf else POLY_BETA
            falling = (FIRST_BETA, LAST_BETA) if rbf else None
        if not rbf and not alpha:
            alpha = POLY_ALPHA
        stages: tuple[Stage, ...] = (Stage(bandwidth, float(beta)),)
    else:
        fixed = model.bandwidth != "path"
        bandwidths = (float(model.bandwidth),) * len(BANDWIDTHS) if fixed else BANDWIDTHS
        stages = default_path(bandwidths, END_OF_PATH if model.beta is None else model.beta)
    steps, tol = (PAPER_STEPS, PAPER_TOL) if paper else (WALK_STEPS, WALK_TOL)
    options = SolverConfig(
        alpha,
        steps if model.max_iter is None else int(model.max_iter),
        tol if model.tol is None else float(model.tol),
    )
    size = model.n_components
    batch = (1 if paper else BATCH) if model.batch_size is None else int(model.batch_size)
    start = int(model.n_start) if paper else min(int(model.n_start), int(model.window))
    return Plan(
        kernel=kernel,
        stages=stages,
        components=lambda n: components_of(model, n) if size == "auto" or paper else min(n, size),
        options=options,
        scale=bool(model.scale),
        window=int(model.window),
        batch_size=batch,
        n_start=start if size == "auto" else max(start, int(size)),
        passes=int(model.n_passes),
        falling=falling,
        scoring=model.self_score != "off",
        react=model.self_score == "react",
    )
