"""Dictionaries as candidates: which kernel, which path, how many points, and where to end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from hirank._typing import Array
from hirank.selection.candidates import FAILURES
from hirank.selection.dictionary_path import Recipe, Walker, Walks

PROBE = 3
"""Stages after which paths are compared; only the best goes on."""
GROWTH = 3
"""Times as many points, if more are tried."""
GAIN, MUCH = 0.97, 0.9
"""Times the error with fewer points: what more must bring to be worth their cost."""
BEHIND = 1.1
"""Times the error of others, on noisy tables: from where it is not worth to go on."""
EXACT, FAR_BEHIND = 0.1, 3.0
"""The same on tables where the error of others is below this: there, late stages can gain much."""
ROUGHLY = 10
"""Times `tol` on noisy tables, where the ends of stages are not worth their time."""
AHEAD = 0.95
"""Times the error of others: from where the ends of stages are worth it after all."""
PERFECT = 1e-3
"""Error, in standard deviations, that nobody needs to improve on."""
MODERATE = 240
"""Points up to which a further walk is worth its time: with more, none gained from it."""


class Kernelized:
    """Tries dictionaries, which start from a table, n x v, per fold.

    `walker` knows how exactly dictionaries are to be fitted after the search.
    """

    def __init__(self, walker: Walker, starts: Sequence[Array]) -> None:
        self.walker, self.starts = walker, starts

    def search(self, recipes: Sequence[Recipe], most: int, rival: float) -> list[Walks]:
        """All that was tried, best last: every recipe a little, the best to its end, then larger.

        A dictionary that grew on its way walks it once more, with all its points from the start.
        `most` is the number of points to grow to, if that pays. `rival` is the lowest error of
        other candidates: who is far behind after a little need not go on. Where that error is
        large, and no dictionary is ahead of it after a little, all walks are rough.
        """
        record, exact = self.walker.bench.record, self.walker.options
        if EXACT < rival < np.inf:
            self.walker = replace(self.walker, options=replace(exact, tol=ROUGHLY * exact.tol))
        stages = PROBE if len(recipes) > 1 or rival < np.inf else None
        probes: list[Walks] = []
        trouble: Exception | None = None
        for recipe in recipes:
            behind = probes and min(walks.error for walks in probes) > rival
            if probes and (record.late or (behind and recipe.name != recipes[0].name)):
                break  # where others are ahead, another kernel won't make up for it
            try:
                probes.append(self.walker.probe(recipe, self.starts, stages))
            except FAILURES as error:
                trouble = error
        if trouble is not None and not probes:
            raise trouble
        probes.sort(key=lambda walks: -walks.error)
        best = probes[-1]
        if best.error < AHEAD * rival:
            # Who is ahead may become much better yet.
            self.walker = replace(self.walker, options=exact)
        reach = FAR_BEHIND if rival < EXACT else BEHIND
        if not (best.ended or record.late) and best.error < reach * rival:
            with suppress(*FAILURES):  # what was found before that is as good as it was
                best = self.walker.further(best)
        done = self._grown([*probes[:-1], best], most, rival)
        best = done[-1]
        grown = best.first > 0 and best.recipe.n_components <= MODERATE
        if not grown or record.late or not PERFECT < best.error < rival:
            return done
        with suppress(*FAILURES):
            again = self.walker.again(best)
            done.insert(len(done) if again.error < GAIN * best.error else -1, again)
        return done

    def _grown(self, done: list[Walks], most: int, rival: float) -> list[Walks]:
        """The same with larger dictionaries, as far as they pay."""
        best = done[-1]
        r = best.recipe.n_components
        while r < most and not self.walker.bench.record.late:
            r = min(most, GROWTH * r)
            # Who is behind must gain much: some tables need many points to be seen at all.
            enough = (GAIN if best.error < rival else MUCH) * best.error
            try:
                larger = self.walker.larger(best, r, enough)
            except FAILURES:
                break
            if larger.error > enough:
                done.insert(-1, larger)
                break
            done.append(larger)
            best = larger
        return done
