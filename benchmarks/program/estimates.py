"""The time left that a fit announces, beside the time that it took.

First the share of a fit that is done when a family or a phase is reported, which is where SHARES of
hirank.estimators.progress comes from; then announced over actual time left, at ten moments of each
fit, and how often the announced end was within a factor of two.

    python benchmarks/program/estimates.py --cases "wine 20 %,one surface 30 %" --seeds 0,1
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from versus_cases import CASES, load, observe

from hirank import Imputer
from hirank.estimators.callbacks import subscribed
from hirank.estimators.progress import TimeLeft
from hirank.optim.trace import PhaseStarted, ProgressEvent

DEFAULT = (
    "iris 20 %,wine 20 %,breast cancer 20 %,air quality 20 %,one surface 30 %,three surfaces 50 %"
)
MOMENTS = np.linspace(0.05, 0.95, 10)


class Fit(NamedTuple):
    """The events of a fit, and the seconds that it took."""

    name: str
    events: list[ProgressEvent]
    seconds: float


def fit(name: str, seed: int) -> Fit:
    case = CASES[name]
    truth = load(case.table, seed)
    observed = observe(truth, "uniform", case.missing, seed)
    events: list[ProgressEvent] = []
    began = time.perf_counter()
    with subscribed(events.append):
        Imputer(random_state=seed).fit(np.where(observed, truth, np.nan))
    return Fit(name, events, time.perf_counter() - began)


def key(event: ProgressEvent) -> str:
    return event.phase.name if isinstance(event, PhaseStarted) else event.family


def print_shares(fits: Iterable[Fit]) -> None:
    shares = defaultdict(list)
    for one in fits:
        for name in dict.fromkeys(map(key, one.events)):
            reports = [event.seconds for event in one.events if key(event) == name]
            shares[name].append(np.median(reports) / one.seconds)
    print("\n| reported | fits | share done: 10 % | median | 90 % |\n|---|---|---|---|---|")
    for name, values in sorted(shares.items(), key=lambda pair: np.median(pair[1])):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
        print(f"| {name} | {len(values)} | {low:.2f} | {middle:.2f} | {high:.2f} |")


def ratios(one: Fit) -> list[float]:
    """Return announced over actual time left, at the moments when something is announced."""
    left, found, events = TimeLeft(), [], list(one.events)
    for moment in MOMENTS * one.seconds:
        while events and events[0].seconds <= moment:
            left.update(events.pop(0))
        if left.at(moment) < np.inf:
            found.append(left.at(moment) / (one.seconds - moment))
    return found


def print_calibration(fits: Iterable[Fit]) -> None:
    print("\n| case | s | announced / actual: 10 % | median | 90 % | within 2 |")
    print("|---|---|---|---|---|---|")
    everything = []
    for one in fits:
        found = ratios(one)
        everything += found
        print(f"| {one.name} | {one.seconds:.1f} | {_quantiles(found)} |")
    print(f"| all | | {_quantiles(everything)} |")


def _quantiles(found: list[float]) -> str:
    low, middle, high = np.quantile(found, [0.1, 0.5, 0.9])
    within = np.mean([0.5 <= ratio <= 2 for ratio in found])
    return f"{low:.2f} | {middle:.2f} | {high:.2f} | {within:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default=DEFAULT, help="of speed/versus_cases.py, between commas")
    parser.add_argument("--seeds", default="0,1", help="numbers between commas")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    fits = []
    for name in args.cases.split(","):
        for seed in map(int, args.seeds.split(",")):
            fits.append(fit(name.strip(), seed))
            print(f"{name}, seed {seed}: {fits[-1].seconds:.1f} s", flush=True)
    print_shares(fits)
    print_calibration(fits)


if __name__ == "__main__":
    main()
