"""How well a method fills a table, and in what time."""

from __future__ import annotations

from collections.abc import Iterator

from reproduction.cells import Cell, Measurement
from reproduction.trial import Fit, Trial, errors, fitted, trial_of


def run(cell: Cell) -> Iterator[Measurement]:
    """Complete the table of a cell: its errors, and the CPU time of the fit alone."""
    trial = trial_of(cell)
    yield from judged(trial, fitted(cell, trial.given))


def judged(trial: Trial, fit: Fit) -> Iterator[Measurement]:
    """What there is to say of a fit to a trial."""
    yield from errors(fit.filled, trial)
    yield Measurement("fit seconds", fit.seconds)
