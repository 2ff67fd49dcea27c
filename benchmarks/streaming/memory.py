"""Resident memory of OnlineImputer on an endless stream: a million samples, half missing.

30 features on one curved surface, made on the fly in chunks of 1000, so that nothing but the model
can grow. The model is small, so that a million samples take minutes. Writes OUT.csv and OUT.png.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hirank.datasets import polynomial_stream

CHUNK, FEATURES = 1000, 30


def resident() -> float:
    """Megabytes of this process in memory now (not the peak): Linux only."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def run(model: object, samples: int, seed: int = 0) -> Iterator[dict[str, float]]:
    rng = np.random.default_rng(seed)
    stream = polynomial_stream(FEATURES, random_state=rng)
    began = time.perf_counter()
    yield {"samples_seen": 0, "megabytes": resident(), "seconds": 0.0}
    for seen in range(0, samples, CHUNK):
        rows = stream.take(min(CHUNK, samples - seen))
        rows[rng.random(rows.shape) < 0.5] = np.nan
        model.partial_fit(rows)
        yield {
            "samples_seen": seen + len(rows),
            "megabytes": resident(),
            "seconds": time.perf_counter() - began,
        }


def draw(rows: list[dict[str, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    seen = [row["samples_seen"] for row in rows]
    axes.plot(seen, [row["megabytes"] for row in rows], color="#0072B2", lw=1.8)
    axes.set_ylim(0, 1.2 * max(row["megabytes"] for row in rows))
    axes.set_xlim(0, seen[-1])
    axes.xaxis.set_major_formatter(mpl.ticker.EngFormatter(sep=""))
    axes.set(xlabel="samples seen", ylabel="resident memory, MB")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", lw=0.6)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main(model: object | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("memory"), help="without .csv or .png")
    parser.add_argument("--components", type=int, default=40)
    parser.add_argument("--window", type=int, default=300)
    parser.add_argument("--batch", type=int, default=250)
    args = parser.parse_args()
    if model is None:
        from hirank import OnlineImputer

        model = OnlineImputer(
            args.components, window=args.window, batch_size=args.batch, random_state=0
        )
    rows = []
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["samples_seen", "megabytes", "seconds"])
        writer.writeheader()
        for row in run(model, args.samples):
            writer.writerow(row)
            file.flush()  # a long run can be watched
            rows.append(row)
    draw(rows, args.out.with_suffix(".png"))
    tenth, last = rows[len(rows) // 10], rows[-1]
    print(
        f"{last['samples_seen']} samples in {last['seconds']:.0f} s: {last['megabytes']:.0f} MB "
        f"at the end, {tenth['megabytes']:.0f} MB after {tenth['samples_seen']}."
    )


if __name__ == "__main__":
    main()
