"""Mutate model files: each must be rejected clearly, or load to a model that works.

python benchmarks/fuzz/models.py 10000 [--seed 0]
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from helpers.model_mutations import Outcome, fit_models, mutate

EVERY = 250
"""Files after which the state is printed."""


def show(number: int, outcome: Outcome) -> None:
    """Print what came of the files so far."""
    if number % EVERY == 0:
        print(f"{number}: {outcome}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hirank-fuzz-"))  # kept if a file fails
    models = fit_models()
    began = perf_counter()
    outcome = mutate(models, folder, arguments.count, arguments.seed, report=show)
    total = sum(outcome.counts.values())
    print(f"{total} mutated files in {perf_counter() - began:.0f} s: {outcome.counts}")
    print(f"{outcome.checksums} had a wrong checksum; all others reached the decoder")
    print(f"largest time to load and use a file: {outcome.max_seconds:.2f} s")
    megabytes = f"{outcome.max_megabytes:.1f} MB"
    print(f"most memory to load and use a file, beyond three times its size: {megabytes}")
