"""One cell, a solver on a table, in a process of its own: whatever happens to it is a result."""

from __future__ import annotations

import importlib
import importlib.metadata
import multiprocessing
import os
import resource
import runpy
import signal
import sys
import tempfile
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import data_sets
import numpy as np
import objective
import solvers
from threadpoolctl import threadpool_limits

PRELOAD = ["cell", "hirank", "sklearn.ensemble", "sklearn.experimental.enable_iterative_imputer"]
MEMORY = 8 << 30
"""Bytes of address space that a cell may have."""
PATIENCE = 10
"""The limit is on processor time: on a busy machine a cell may wait so many times as long."""


class Cell(NamedTuple):
    set: str
    pattern: str
    rate: float
    seed: int
    solver: str


class Catalog(NamedTuple):
    """Everything that can be run: what is listed here, and what a file of the user's adds."""

    sets: dict[str, Any]
    solvers: dict[str, solvers.Solver]


def catalog(extra: Path | None) -> Catalog:
    added = runpy.run_path(str(extra)) if extra else {}
    return Catalog(
        data_sets.SETS | added.get("SETS", {}), solvers.SOLVERS | added.get("SOLVERS", {})
    )


def run(cell: Cell, extra: Path | None, limit: float) -> dict[str, Any]:
    """The measures of a cell, or the reason why there are none."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)  # imports once, not for each of thousands of cells
    receive, send = context.Pipe(duplex=False)
    with tempfile.NamedTemporaryFile("r", errors="replace") as output:
        process = context.Process(target=_work, args=(send, cell, extra, limit, output.name))
        process.start()
        send.close()
        try:
            found = receive.recv() if receive.poll(PATIENCE * limit) else None
        except EOFError:  # it died before it could answer
            found = {}
        if found is None:
            process.kill()
        process.join()
        if found:
            return found
        return {"failure": _death(found is None, process.exitcode, limit, output.read())}


def _death(late: bool, code: int | None, limit: float, output: str) -> str:
    if late or code == -signal.SIGXCPU:
        return f"more than {limit:g} s"
    how = signal.Signals(-code).name if code and code < 0 else f"exit code {code}"
    return one_line(f"process ended by {how}: {output[-300:]}")


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _work(send: Connection, cell: Cell, extra: Path | None, limit: float, output: str) -> None:
    """What the process does."""
    with open(
        output, "w"
    ) as file:  # peers print; their last output may contain the reason of a failure
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        found = _solve(cell, catalog(extra), limit)
    except MemoryError:
        found = {"failure": f"more than {MEMORY >> 30} GB"}
    except Exception as error:  # a peer's failure is a result
        sys.stdout.flush()
        printed = Path(output).read_text(errors="replace").strip().partition("\n")[0]
        why = f"{type(error).__name__}: {error}" + (f" ({printed})" if printed else "")
        found = {"failure": one_line(why)}
    send.send(found)


def _solve(cell: Cell, known: Catalog, limit: float) -> dict[str, Any]:
    solver = known.solvers[cell.solver]
    threads = solver.threads or os.cpu_count() or 1
    seconds = int(limit * threads)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # run.py starts everything with one thread.
    os.environ.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    warnings.simplefilter("ignore")
    truth = data_sets.load(known.sets[cell.set], cell.seed)
    observed = data_sets.observe(truth, cell.pattern, cell.rate, cell.seed)
    incomplete = np.where(observed, truth, np.nan)
    importlib.import_module(solver.module)
    with threadpool_limits(threads):
        filled, costs = objective.measure(lambda: solver.impute(incomplete.copy(), cell.seed))
    return {
        "rows": truth.shape[0],
        "columns": truth.shape[1],
        "version": importlib.metadata.version(solver.package),
        **objective.errors(filled, truth, observed),
        **costs,
        "failure": "",
    }
