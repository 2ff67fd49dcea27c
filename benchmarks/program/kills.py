"""`hirank stream --follow`, killed again and again while a log is written and rotated.

In each round the program is started, killed by SIGKILL at a random moment, and the log is rotated
once, before or after: by renaming it, by copying and truncating it, or by renaming and compressing
it. Rows have numbers. In the output every number must be there exactly once, but for rows that the
program has announced: it stopped with an error that names the line after which they are missing.

The processes are forked from one that has imported hirank, since imports take most of the time.
"""

import argparse
import gzip
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

import hirank

HEADER = "id,a,b,c\n"
KINDS = ("rename", "copytruncate", "gzip")
FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["hirank.cli.app", "hirank.cli.stream.loop", "hirank.cli.stream"])


def run_program(arguments: list[str], errors: Path) -> None:
    """Run `hirank ARGUMENTS` in this process, with standard error in a file."""
    from hirank.cli import main

    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    sys.argv = ["hirank", *arguments]
    main()


class Log:
    """A log that a thread writes, and that can be rotated."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.path, self.rng = folder / "log.csv", random.Random(seed)
        self.files: list[list[int]] = []  # the numbers of the rows of each file
        self.rows, self.lock, self.ended = 0, threading.Lock(), threading.Event()
        self._create()
        self.thread = threading.Thread(target=self._write, daemon=True)

    def _create(self) -> None:
        with self.path.open("a") as file:
            file.write(HEADER)
        self.files.append([])

    def _write(self) -> None:
        # Slower than the program, also on a busy machine.
        while not self.ended.wait(self.rng.uniform(0, 0.1)):
            with self.lock, self.path.open("a") as file:
                for _ in range(self.rng.randint(1, 3)):
                    t = self.rng.uniform(-1, 1)
                    cells = [f"{t:.4f}", f"{t * t:.4f}", f"{t**3:.4f}"]
                    cells[self.rng.randrange(3)] = ""
                    file.write(f"r{self.rows},{','.join(cells)}\n")
                    self.files[-1].append(self.rows)
                    self.rows += 1

    def rotate(self, kind: str) -> None:
        """Begin a new file; copies of all but the last two files are removed."""
        number = len(self.files)
        old = self.path.with_name(f"{self.path.name}.{number}")
        with self.lock:
            if kind == "copytruncate":
                shutil.copy(self.path, old)
                os.truncate(self.path, 0)
                self._create()
            else:
                self.path.rename(old)
                self._create()
        if kind == "gzip":
            packed = old.with_name(old.name + ".gz")
            with old.open("rb") as file, gzip.open(packed, "wb") as target:
                shutil.copyfileobj(file, target)
            shutil.copystat(old, packed)
            old.unlink()
        for path in self.path.parent.glob(f"{self.path.name}.{number - 2}*"):
            path.unlink()


class Loop:
    """Rounds of one program, and what came of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng, self.log = random.Random(seed), Log(folder, seed + 1)
        self.output, self.model = folder / "out.csv", folder / "model.hirank"
        self.errors = folder / "errors"
        self.announced: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.restart = False
        self._save_model()

    def _save_model(self) -> None:
        t = np.random.default_rng(0).uniform(-1, 1, 60)
        X = np.column_stack([t, t**2, t**3])
        X[::7, 1] = np.nan
        settings = {"window": 60, "n_warmup": 40, "batch_size": 20, "max_iter": 5}
        model = hirank.OnlineImputer(random_state=0, **settings).partial_fit(X)
        model.feature_names_in_ = np.array(["a", "b", "c"], dtype=object)
        model.save(self.model)

    def written(self) -> list[int]:
        """Return the numbers of the complete rows of the output."""
        text = self.output.read_text() if self.output.exists() else ""
        return [int(number) for number in re.findall(r"^r(\d+),.*\n", text, re.MULTILINE)]

    def start(self) -> BaseProcess:
        """Start the program, after an error with --restart."""
        arguments = ["stream", "-q", "--follow", "--save-every", "37", "-m", str(self.model)]
        arguments += ["-o", str(self.output), str(self.log.path), *["--restart"] * self.restart]
        self.restart = False
        process = FORKS.Process(target=run_program, args=(arguments, self.errors), daemon=True)
        process.start()
        return process

    def wait_for(self, process: BaseProcess, number: int, seconds: float = 600) -> None:
        """Wait until a row was written or announced, or the program has ended."""
        end = time.monotonic() + seconds
        while process.is_alive() and number not in self.announced:
            if number in self.written():
                return
            if time.monotonic() > end:
                raise SystemExit(f"row {number} was not written within {seconds:.0f} s")
            time.sleep(0.1)

    def round(self, kind: str) -> None:
        """Start and kill the program, and rotate the log once."""
        # A file that is rotated before a new run, or one with --restart, reads a row is not known.
        is_known = self.output.exists() and not self.restart
        process = self.start()
        if not is_known or self.rng.random() < 0.7:
            while not self.log.files[-1]:
                time.sleep(0.01)
            self.wait_for(process, self.log.files[-1][-1])
        time.sleep(self.rng.uniform(0, 0.3))
        before = self.rng.random() < 0.6
        if before:
            self.log.rotate(kind)
            time.sleep(self.rng.uniform(0, 1.2))
        self.finish(process, signal.SIGKILL)
        if not before and not self.restart:
            self.log.rotate(kind)

    def finish(self, process: BaseProcess, number: int) -> None:
        """End the program; if it has stopped, check what it announced."""
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, number)
        process.join()
        if process.exitcode in (0, -signal.SIGTERM):  # before it can handle the signal
            return
        self.counts["killed" if process.exitcode == -signal.SIGKILL else "stopped"] += 1
        if process.exitcode != -signal.SIGKILL:
            self._announce(self.errors.read_text())
            self.restart = True

    def _announce(self, error: str) -> None:
        found = re.search(r"after line (\d+) of the file that was read may be missing", error)
        if found is None:
            raise SystemExit(f"an error without rows that may be missing:\n{error}")
        line, last = int(found[1]), max(self.written(), default=-1)
        rows = next((rows for rows in reversed(self.log.files) if last in rows), [])
        # In these files line 1 is the header, and each other line is a row.
        if line > 1 and rows[line - 2] != last:
            raise SystemExit(f"row {last} is the last one written, not line {line}:\n{error}")
        current = set(self.log.files[-1])
        self.announced |= set(range(last + 1, self.log.rows)) - current

    def run(self, kills: int) -> Counter[str]:
        """Return counts of what happened; raise SystemExit if rows are lost."""
        self.log.thread.start()
        try:
            for i in range(kills):
                self.round(KINDS[i % len(KINDS)])
                self._check(range(max(self.written(), default=0)))
        finally:
            self.log.ended.set()
            self.log.thread.join()
        for _ in range(3):  # the first may stop with an error
            process = self.start()
            self.wait_for(process, self.log.rows - 1)
            self.finish(process, signal.SIGTERM)
        self._check(range(self.log.rows))
        self.counts["rows"], self.counts["announced"] = self.log.rows, len(self.announced)
        return self.counts

    def _check(self, expected: range) -> None:
        numbers = Counter(self.written())
        twice = [number for number, count in numbers.items() if count > 1]
        lost = [n for n in expected if n not in numbers and n not in self.announced]
        if twice or lost:
            raise SystemExit(
                f"rows that are lost: {lost[:9]}; rows that are there twice: {twice[:9]}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        for key, count in Loop(Path(name), options.seed).run(options.kills).items():
            print(f"{key:10} {count:7}")
    print(f"{'seconds':10} {time.monotonic() - began:7.0f}")
