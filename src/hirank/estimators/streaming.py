"""What estimators of streams share: their methods, and that one thread learns at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Self

from sklearn.utils._set_output import _wrap_data_with_container

from hirank._typing import Array

_learning_threads: dict[int, int] = {}
"""The thread that learns, by the id of the estimator."""


class StreamMixin(ABC):
    """The methods of an estimator that learns from a stream; a subclass defines ``_learn``."""

    @abstractmethod
    def _learn(self, X: Any, *, impute: bool) -> Array | None:
        """Learn from the next rows, and return them as they were imputed before, if asked for."""

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Learn from the next rows of a stream, or continue where ``fit`` ended.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        self
        """
        with self._learning():
            self._learn(X, impute=False)
        return self

    def partial_fit_transform(self, X: Any, y: object = None) -> Any:
        """Impute the next rows of a stream before anything is learned from them, then learn.

        Rows that arrive before the first fit are imputed by the model if it is fitted in the same
        call, unless they follow each other in time: :class:`hirank.OnlineImputer` imputes these by
        the rows before them. Otherwise it and :class:`hirank.OnlineKFMC` impute them with the means
        so far, with a warning, and baselines raise an error and learn nothing.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        with self._learning():
            filled = self._learn(X, impute=True)
        return _wrap_data_with_container("transform", filled, X, self)

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Raise RuntimeError if another thread learns with this estimator: its rows would be lost.

        What is stored is outside the estimator, which can be copied and pickled as it is.
        """
        me = get_ident()
        nested = _learning_threads.get(id(self)) == me
        try:
            if _learning_threads.setdefault(id(self), me) != me:
                raise RuntimeError(
                    f"This {type(self).__name__} is learning in another thread. Wait for that, "
                    "share a lock among the threads, or give each its own estimator."
                )
            yield
        finally:
            if not nested and _learning_threads.get(id(self)) == me:
                del _learning_threads[id(self)]
