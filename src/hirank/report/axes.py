"""A rectangle with axes, as SVG: where values are drawn, and marks with numbers along the sides."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from hirank._typing import Array
from hirank.report.words import number

MARKS = 5
"""About as many marks with numbers as an axis has."""


@dataclass(frozen=True)
class Scale:
    """From values to 0 .. 1."""

    low: float
    high: float
    log: bool = False
    bend: float = 0.0  # logarithmic beyond this size on both sides of 0, linear within; 0: not so

    @classmethod
    def around(cls, values: ArrayLike, *, log: bool = False, bend: float = 0.0) -> Scale:
        """One that holds all finite values, with a margin."""
        x = np.asarray(values, np.float64)
        x = x[np.isfinite(x) & (x > 0)] if log else x[np.isfinite(x)]
        if not x.size:
            return cls(0.1, 1.0, log) if log else cls(0.0, 1.0)
        low, high = float(x.min()), float(x.max())
        if log:
            a, b = np.log10(low), np.log10(high)
            margin = 0.05 * (b - a) or 0.3
            # Never beyond what a float can be.
            ends = np.clip([a - margin, b + margin], -300, 300)
            return cls(float(10 ** ends[0]), float(10 ** ends[1]), True)
        margin = 0.04 * (high - low) or 0.04 * abs(high) or 0.5
        return cls(low if bend else low - margin, high + margin, bend=bend)

    def __call__(self, values: ArrayLike) -> Array:
        x = np.asarray(values, np.float64)
        if self.log:
            low, high = np.log10([self.low, self.high])
            return (np.log10(np.maximum(x, 1e-300)) - low) / (high - low)
        low, high = self._bent(self.low), self._bent(self.high)
        return (self._bent(x) - low) / (high - low)

    def _bent(self, x: ArrayLike) -> Array:
        x = np.asarray(x, np.float64)
        return np.sign(x) * np.log10(1 + np.abs(x) / self.bend) if self.bend else x

    def marks(self) -> list[float]:
        """Round numbers within, a few."""
        if self.log:
            first, last = np.ceil(np.log10(self.low)), np.floor(np.log10(self.high))
            step = max(1, int(np.ceil((last - first + 1) / MARKS)))
            tens = [float(10.0**k) for k in range(int(first), int(last) + 1, step)]
            if len(tens) > 1:
                return tens
            return [x for x in _subdivided(first) if self.low <= x <= self.high]
        if self.bend:
            return self._bent_marks()
        size = (self.high - self.low) / MARKS
        ten = 10.0 ** np.floor(np.log10(size))
        apart = next(float(ten * k) for k in (1, 2, 5, 10) if ten * k >= size * 0.999)
        count = np.arange(np.ceil(self.low / apart), np.floor(self.high / apart) + 1)
        return [float(x) + 0.0 for x in count * apart]  # no -0

    def _bent_marks(self) -> list[float]:
        """0, and powers of ten on the sides where there is room."""
        first = round(np.log10(self.bend))
        last = int(np.floor(np.log10(max(abs(self.low), abs(self.high)))))
        step = max(1, int(np.ceil((last - first + 1) / MARKS)))
        tens = [float(10.0**k) for k in range(last, first, -step)]
        return [x for x in (*(-x for x in tens), 0.0, *tens) if self.low <= x <= self.high]


def _subdivided(first: float) -> list[float]:
    return [float(k * 10.0**e) for e in (first - 1, first) for k in (1, 2, 5)]


@dataclass(frozen=True)
class Axes:
    """A picture with two scales; its inner part lies between the margins."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    width: int = 420
    height: int = 320
    left: int = 62
    bottom: int = 48
    top: int = 12
    right: int = 12

    def across(self, values: ArrayLike) -> Array:
        """From values to places along x."""
        return self.left + self.x(values) * (self.width - self.left - self.right)

    def up(self, values: ArrayLike) -> Array:
        """From values to places along y."""
        return self.height - self.bottom - self.y(values) * (self.height - self.top - self.bottom)

    def svg(self, inside: str, label: str) -> str:
        """The picture with what is drawn inside of it, and a label for those who don't see it."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" aria-label="'
            f'{escape(label)}">{self._frame()}{inside}</svg>'
        )

    def _frame(self) -> str:
        right, floor = self.width - self.right, self.height - self.bottom
        parts = []
        for value, place in zip(self.x.marks(), self.across(self.x.marks()), strict=True):
            parts.append(f'<path class="grid" d="M{place:.1f} {self.top}V{floor}"/>')
            parts.append(
                f'<text x="{place:.1f}" y="{floor + 18}" class="mid">{number(value)}</text>'
            )
        for value, place in zip(self.y.marks(), self.up(self.y.marks()), strict=True):
            parts.append(f'<path class="grid" d="M{self.left} {place:.1f}H{right}"/>')
            parts.append(
                f'<text x="{self.left - 6}" y="{place + 4:.1f}" class="end">{number(value)}</text>'
            )
        parts.append(f'<path class="axis" d="M{self.left} {self.top}V{floor}H{right}"/>')
        middle, center = (self.left + right) / 2, (self.top + floor) / 2
        parts.append(
            f'<text x="{middle:.0f}" y="{self.height - 8}" class="mid">{escape(self.x_label)}'
            "</text>"
        )
        parts.append(
            f'<text class="mid" transform="translate(14 {center:.0f}) rotate(-90)">'
            f"{escape(self.y_label)}</text>"
        )
        return "".join(parts)
