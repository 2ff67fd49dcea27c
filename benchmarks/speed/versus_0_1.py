"""hirank beside its version 0.1 and beside other imputers: processor time and error.

    python benchmarks/speed/versus_0_1.py --cases "iris 20 %,wine 20 %" --seeds 0,1,2
    python benchmarks/speed/versus_0_1.py --cases side_by_side --peers "" --seeds 0,1,2,3,4

Every measurement is a process of its own, on one thread; old and new take turns. The results of
version 0.1 (commit cebc32c) are stored, since they take minutes, and read from the file --cache:
--again measures them in this run, which a fair ratio of times on a shared machine requires.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from versus_cases import CASES, GROUPS, Case, load, observe

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
WORKER = Path(__file__).with_name("versus_worker.py")
COMMIT, OLD, NEW = "cebc32c", "0.1", "hirank"
PEERS = ("iterative ridge", "k-NN", "iterative extra-trees", "soft-impute", "cmfrec", "gcimpute")
PEER_PYTHON = ROOT / ".venv-peers" / "bin" / "python"  # see side_by_side/README.md
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
Result = dict[str, Any]
"""cost (by line), rmse and median error (in standard deviations), peak_mb; or failure."""


def old_source(folder: Path) -> Path:
    """Return the folder with version 0.1, which is taken from the repository once."""
    if not folder.exists():
        command = ["git", "-C", str(ROOT), "archive", COMMIT, "src", "benchmarks"]
        archive = subprocess.run(command, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
    return folder


def measure(method: str, case: Case, seed: int, source: Path, limit: float) -> Result:
    """Return what a method costs on a case, and how far its imputed values are off."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if case.table is None:
            return run(method, case, seed, source, limit, folder)
        truth = load(case.table, seed)
        observed = observe(truth, "uniform", case.missing, seed)
        incomplete = np.where(observed, truth, np.nan)
        np.savez(folder / "table.npz", X=incomplete, n_train=case.n_train)
        result = run(method, case, seed, source, limit, folder)
        if "failure" in result:
            return result
        truth, observed = truth[case.n_train :], observed[case.n_train :]
        filled = np.load(folder / "filled.npy")
        # A stream leaves values of its first rows missing: they do not count.
        error = ((filled - truth) / truth.std(axis=0))[~observed & np.isfinite(filled)]
        result["rmse"] = float(np.sqrt(np.mean(error**2)))
        result["median error"] = float(np.median(np.abs(error)))
        return result


def run(method: str, case: Case, seed: int, source: Path, limit: float, folder: Path) -> Result:
    """Start the worker, and return its costs."""
    peer = method not in (OLD, NEW) and PEER_PYTHON.exists()
    done = subprocess.run(
        [
            PEER_PYTHON if peer else sys.executable,
            WORKER,
            NEW if method == OLD else method,
            case.measure,
            folder,
            str(seed),
            source,
            str(limit),
        ],
        env=os.environ | ONE_THREAD | {"PYTHONPATH": str(source / "src")},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"failure": lines[-1][:200] if lines else f"exit code {done.returncode}"}
    result: Result = json.loads(done.stdout.splitlines()[-1])
    return result


class Cache:
    """Results of version 0.1 in a JSON file, by case and seed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, Result] = json.loads(path.read_text()) if path.exists() else {}

    def find(self, name: str, seed: int, limit: float) -> Result | None:
        """Return a result; a run that was stopped counts if it was given as long."""
        result = self.results.get(f"{name}, seed {seed}")
        longer = result is not None and "failure" in result and result["limit"] < limit
        return None if longer else result

    def add(self, name: str, seed: int, limit: float, result: Result) -> None:
        self.results[f"{name}, seed {seed}"] = result | {"limit": limit}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.results, indent=1))


def compare(args: argparse.Namespace, cache: Cache) -> Iterator[tuple[str, int, str, Result]]:
    """Yield case, seed, method and result; every second seed begins with the new version."""
    for name in args.cases:
        case = CASES[name]
        for number, seed in enumerate(args.seeds):
            methods = [OLD] * case.finishes + [NEW] * (not args.old_only)
            if case.measure == "fit":
                methods += args.peers
            for method in [*methods[:2][:: -1 if number % 2 else 1], *methods[2:]]:
                result = None
                if method == OLD and not args.again:
                    result = cache.find(name, seed, args.limit)
                if result is None and not (method == OLD and args.no_old):
                    source = old_source(args.old_source) if method == OLD else ROOT
                    result = measure(method, case, seed, source, args.limit)
                    if method == OLD:
                        cache.add(name, seed, args.limit, result)
                if result is not None:
                    yield name, seed, method, result


def print_result(name: str, seed: int, method: str, result: Result) -> None:
    """Print one line per measurement as it comes."""
    unit = CASES[name].unit
    text = result.get("failure") or ", ".join(
        [
            *(f"{line} {value:.4g} {unit}".strip() for line, value in result["cost"].items()),
            *(f"{what} {result[what]:.4g}" for what in ("rmse", "median error") if what in result),
            f"{result['peak_mb']:.0f} MB",
        ]
    )
    print(f"{name}, seed {seed}, {method}: {text}", flush=True)


def summarize(found: list[tuple[str, int, str, Result]]) -> None:
    """Print a row per cost, of medians over seeds; error ratios are of the same seeds."""
    cases: dict[str, dict[str, dict[int, Result]]] = {}
    for name, seed, method, result in found:
        if "failure" not in result:
            cases.setdefault(name, {}).setdefault(method, {})[seed] = result
    print("\n| case | unit | 0.1 | hirank | new / old | target | RMSE | median error | peers |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = {}
    for name, methods in cases.items():
        old, new = methods.get(OLD, {}), methods.get(NEW, {})
        ratios[name] = error_ratio(new, old, "rmse")
        peers = [
            f"{method} {number(cost(own, ''))} s, RMSE {number(error_ratio(new, own, 'rmse'))}"
            for method, own in methods.items()
            if method not in (OLD, NEW)
        ]
        for line in next(iter((new or old or next(iter(methods.values()))).values()))["cost"]:
            before, after, target = cost(old, line), cost(new, line), CASES[name].targets.get(line)
            cells = [
                f"{name}, {line}" if line else name,
                CASES[name].unit,
                number(before),
                number(after),
                number(after / before),
                "" if target is None else f"{number(target)} {'yes' if after <= target else 'no'}",
                number(ratios[name]),
                number(error_ratio(new, old, "median error")),
                "; ".join(peers),
            ]
            print(f"| {' | '.join(cells)} |")
    known = np.array([ratio for ratio in ratios.values() if np.isfinite(ratio)])
    if len(known):
        mean = np.exp(np.log(known).mean())
        print(f"\nRMSE, new / old: geometric mean {mean:.3f}, largest {known.max():.3f}.")


def cost(results: dict[int, Result], line: str) -> float:
    return float(np.median([result["cost"][line] for result in results.values()] or [np.nan]))


def error_ratio(new: dict[int, Result], old: dict[int, Result], what: str) -> float:
    """Return the geometric mean, over seeds that both have, of the ratio of errors."""
    pairs = [(new[seed].get(what), old[seed].get(what)) for seed in new if seed in old]
    logs = [np.log(ours / theirs) for ours, theirs in pairs if ours and theirs]
    return float(np.exp(np.mean(logs))) if logs else np.nan


def number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "-"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--cases", default="issue", help=f"names between commas, or of {', '.join(GROUPS)}")
    add("--seeds", default="0", help="numbers between commas")
    add("--peers", default=",".join(PEERS), help="names between commas, '' for none")
    add("--limit", type=int, default=600, help="processor seconds of one measurement")
    add("--no-old", action="store_true", help="of version 0.1, only what is stored")
    add("--old-only", action="store_true", help="store results of version 0.1, and end")
    add("--again", action="store_true", help="measure version 0.1 in this run")
    add("--cache", type=Path, default=RESULTS / "old_0_1.json")
    add("--old-source", type=Path, default=RESULTS / "hirank-0.1")
    args = parser.parse_args()
    args.cases = [each for name in split(args.cases) for each in GROUPS.get(name, [name])]
    unknown = [name for name in args.cases if name not in CASES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; expected {', '.join([*GROUPS, *CASES])}")
    args.seeds = [int(seed) for seed in split(args.seeds)]
    args.peers = [] if args.old_only else split(args.peers)
    return args


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def main() -> None:
    args = arguments()
    found = []
    for measured in compare(args, Cache(args.cache)):
        print_result(*measured)
        found.append(measured)
    summarize(found)


if __name__ == "__main__":
    main()
