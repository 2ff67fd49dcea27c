"""OnlineKFMC as a scikit-learn estimator: checking and bookkeeping around a stream."""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _wrap_data_with_container
from sklearn.utils.validation import _check_feature_names_in, validate_data

from hirank._typing import Array, PathLike
from hirank.estimators.callbacks import CallbackSupportMixin, SklearnBridge, with_callbacks
from hirank.estimators.online_base import Stream, StreamView
from hirank.estimators.online_validation import check_online, plan_of
from hirank.estimators.saving import save
from hirank.estimators.validation import components_of, is_missing
from hirank.kernels import Kernel
from hirank.models.row_models import warn_blank
from hirank.online.algorithm2 import SampleStream
from hirank.online.config import Plan
from hirank.online.window import WindowStream
from hirank.optim.trace import Step
from hirank.warn import warn_user

COLUMNS = ("n_features_in_", "feature_names_in_")
"""What scikit-learn keeps of the columns of a table."""


@dataclass(eq=False, repr=False)
class OnlineKFMC(CallbackSupportMixin, OneToOneFeatureMixin, TransformerMixin, StreamView):
    """Completion of rows as they arrive, by a model that keeps learning and never grows.

    ``partial_fit`` learns from rows, ``transform`` completes rows with the model as it stands,
    ``partial_fit_transform`` does both at once. What is learned depends on the rows and their
    order, not on how they were cut into calls.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Points in the dictionary. ``"auto"`` takes ``3.8 * n**0.6`` for n rows in the window (177
        for 600), and more as it fills.
    mode : {"window", "paper"}, default="window"
        ``"window"`` remembers the last rows and learns from all of them. ``"paper"`` is Algorithm 2
        of the paper: every sample moves the dictionary once and is forgotten; cheaper by row (with
        Numba installed, ``pip install "hirank[fast]"``) and far less accurate.
    window : int, default=600
        Rows that are remembered (``"window"`` mode).
    batch_size : int, optional
        Rows that are learned from together; rows of smaller calls wait until there are so many. By
        default 50, and 1 in ``"paper"`` mode.
    n_start : int, default=200
        Rows that are held until a model is started from them, at most `window` and at least
        `n_components`. ``fit`` starts with what it gets.
    n_passes : int, default=1
        Times that ``fit`` goes over its table. ``partial_fit`` ignores it.
    kernel : {"rbf", "poly"} or Kernel, default="rbf"
        A kernel object is used as it is, in units of the scaled features.
    bandwidth : "path" or float, default="path"
        Length scale of the RBF kernel as a multiple of the mean distance between samples.
        ``"path"`` grows from 1 to 8 along the stages; in ``"paper"`` mode it stands for 1.5.
    degree : int, default=2
        Degree of the polynomial kernel.
    offset : float, default=1.0
        Offset of the polynomial kernel.
    alpha : float, default=0.0
        Weight of the size of the dictionary (no effect with the RBF kernel, whose size is fixed).
        In ``"paper"`` mode, 0 stands for 1e-4 with the polynomial kernel.
    beta : float, optional
        Ridge of the codes: in ``"window"`` mode at the end of the path, in units of k(d, d), by
        default 1e-10. In ``"paper"`` mode as it stands; by default 7e-3 for the RBF kernel, falling
        from 0.1 to 1e-3 over several passes, and 1e-2 for the polynomial kernel.
    scale : bool, default=True
        Bring each feature to mean 0 and standard deviation 1 first, and back afterwards. In
        ``"window"`` mode both follow the data.
    max_iter : int, optional
        Most steps in each stage when the path is walked, by default 60; in ``"paper"`` mode most
        iterations per sample, by default 50.
    tol : float, optional
        A stage ends when the objective fell by less than this fraction over ten steps, by default
        1e-2; in ``"paper"`` mode, a sample is done when nothing changes by as much, by default
        1e-5.
    self_score : {"react", "watch", "off"}, default="react"
        Hide a few observed entries of each row on arrival, predict them, and keep the errors:
        ``recent_error_``. With ``"react"`` a ``"window"`` model learns anew when they jump.
    missing_values : float, default=nan
        What stands for a missing value. NaN always does as well.
    add_indicator : bool, default=False
        Append a column of 0 and 1 for each feature: 1 where it was missing.
    random_state : int, RandomState or None, default=None
        Chooses starting dictionaries and hidden entries.
    verbose : int, default=0
        1 writes a line to standard error whenever the path is walked, 2 one per batch.

    Attributes
    ----------
    recent_error_ : float
        Root mean square error of the last 200 hidden entries, in standard deviations of their
        features. 1 is as poor as filling with means; NaN before there are any.
    error_history_ : structured array
        Columns ``samples``, ``error``, ``entries``: the same by batch since the start. At most 1000
        lines; neighbors are merged when it is full.
    dictionary_ : array, n_components_ x n_features_in_
        The dictionary, in the units of the data.
    n_components_ : int
    kernel_ : Kernel
    n_samples_seen_ : int
    n_iter_ : int
        Batches learned from.
    last_action_ : str
        What the last batch led to.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only if the first rows had string column names.

    Notes
    -----
    The columns of the output never change: a feature without any value so far is filled with 0, and
    one that went silent with its last mean. Rows without any observed entry are filled with the
    means, not learned from, and warned about.

    Each row is completed by itself: that neighbors in time are alike is not used. Where values
    change slowly, the last one of each feature may be the better fill; ``recent_error_`` near 1
    says that little was learned. For a whole table in order there is ``KFMC(order="time")``.

    An interrupted call leaves the model as it was before it.

    Examples
    --------
    >>> import numpy as np
    >>> from hirank import OnlineKFMC
    >>> t = np.random.default_rng(0).uniform(-1, 1, 400)
    >>> X = np.column_stack([t, t**2, t**3, np.cos(3 * t)])
    >>> holes = X.copy()
    >>> holes[::3, 1] = np.nan
    >>> model = OnlineKFMC(random_state=0).partial_fit(holes[:200])
    >>> filled = model.partial_fit_transform(holes[200:])
    >>> bool(np.abs(filled - X[200:]).max() < 0.05), model.recent_error_ < 0.1
    (True, True)
    """

    n_components: int | str = "auto"
    _: KW_ONLY
    mode: str = "window"
    window: int = 600
    batch_size: int | None = None
    n_start: int = 200
    n_passes: int = 1
    kernel: str | Kernel = "rbf"
    bandwidth: str | float = "path"
    degree: int = 2
    offset: float = 1.0
    alpha: float = 0.0
    beta: float | None = None
    scale: bool = True
    max_iter: int | None = None
    tol: float | None = None
    self_score: str = "react"
    missing_values: float = np.nan
    add_indicator: bool = False
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: object = None) -> OnlineKFMC:
        """Forget everything and learn from a table, in one or more passes over its rows.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        self
        """
        self._fit(X)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: object = None, **params: Any) -> Any:
        """Forget everything, learn from a table, and return it completed.

        In ``"window"`` mode as by ``fit(X).transform(X)``; in ``"paper"`` mode as completed in the
        last pass.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y, **params : ignored

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        table, rows, filled = self._fit(X)
        if filled is None:
            filled = self._complete(rows)
        return self._output(table, rows, filled)

    def partial_fit(self, X: Any, y: object = None) -> OnlineKFMC:
        """Learn from the next rows of a stream.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        self
        """
        _, rows, columns = self._next(X)
        self._advance(rows, columns, answer=False)
        return self

    def partial_fit_transform(self, X: Any, y: object = None) -> Any:
        """Complete the next rows of a stream, each before it is learned from.

        Rows that come before there is a model are completed by it if it is started in the same
        call, else filled with the means so far, with a warning.

        Parameters
        ----------
        X : array-like, n_samples x n_features
        y : ignored

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        table, rows, columns = self._next(X)
        out = self._output(table, rows, self._advance(rows, columns, answer=True))
        return _wrap_data_with_container("transform", out, X, self)

    def transform(self, X: Any) -> Any:
        """Complete rows with the model as it stands, each on its own. Nothing is learned.

        Parameters
        ----------
        X : array-like, n_samples x n_features

        Returns
        -------
        X : array, n_samples x n_features_out
        """
        self._check_started()
        table, rows, _ = self._checked(X, reset=False)
        return self._output(table, rows, self._complete(rows))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of the output.

        Parameters
        ----------
        input_features : array-like of str, optional

        Returns
        -------
        names : array of str
        """
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} has not seen any rows yet.")
        names: NDArray[np.object_] = _check_feature_names_in(self, input_features)
        if not self.add_indicator:
            return names
        flags = np.array([f"missingindicator_{name}" for name in names], dtype=object)
        return np.concatenate([names, flags])

    def save(self, path: PathLike) -> None:
        """Write the model to a file, from which :func:`hirank.load` makes it again.

        The model that is loaded goes on with the same results to the bit. The file is there as a
        whole or not at all, holds arrays, numbers and words, and is read without running any
        code. It holds the rows that are remembered: who gets it sees them.

        Parameters
        ----------
        path : str or path
            Any name; ``.hirank`` is usual. A file of that name is replaced.

        Notes
        -----
        There must have been rows, but not so many that a model was started. A RandomState object
        given as ``random_state`` is saved as the seed that was drawn from it. A kernel that is not
        one of hirank's own can't be saved.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import hirank
        >>> t = np.random.default_rng(0).uniform(-1, 1, 60)
        >>> X = np.column_stack([t, t**2, t**3])
        >>> X[::3, 1] = np.nan
        >>> model = hirank.OnlineKFMC(n_start=40, max_iter=10, random_state=0).partial_fit(X[:45])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "model.hirank")
        ...     model.save(path)
        ...     again = hirank.load(path)
        >>> filled = model.partial_fit_transform(X[45:])
        >>> bool((again.partial_fit_transform(X[45:]) == filled).all())
        True
        """
        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _add_features(self, count: int) -> None:
        """Make room for more features, without a value so far; in ``"window"`` mode only."""
        stream = self._begun
        assert isinstance(stream, WindowStream)
        self._stream = stream.widened(count)
        self.n_features_in_ += count

    def _empty(self, width: int) -> Stream:
        seed = int(check_random_state(self.random_state).randint(2**31))
        kind = WindowStream if self.mode == "window" else SampleStream
        return kind.empty(width, seed)

    def _next(self, X: Any) -> tuple[Array, Array, dict[str, Any]]:
        check_online(self)
        stream: Stream | None = getattr(self, "_stream", None)
        if stream is not None and isinstance(stream, WindowStream) != (self.mode == "window"):
            raise ValueError(
                f"A stream that began in another mode can't go on in mode={self.mode!r}: call fit, "
                "or start a new OnlineKFMC."
            )
        return self._checked(X, reset=stream is None)

    def _checked(self, X: Any, *, reset: bool) -> tuple[Array, Array, dict[str, Any]]:
        """The table as floats of its own, and in double precision with NaN where missing.

        Also what its columns are. A stream that is reset gets to know that with its rows, not
        before: a call that fails on the way must leave no trace.
        """
        witness = copy(self) if reset else self
        table = validate_data(
            witness,
            X,
            reset=reset,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        rows = table.astype(np.float64)
        rows[is_missing(table, self.missing_values)] = np.nan
        return table, rows, {k: v for k, v in vars(witness).items() if k in COLUMNS}

    def _settle(self, stream: Stream, columns: dict[str, Any]) -> None:
        """Take over a stream that has moved on, in one step that nothing can interrupt."""
        rest = {k: v for k, v in vars(self).items() if k not in COLUMNS}
        self.__dict__ = {**rest, **columns, "_stream": stream}

    def _advance(self, rows: Array, columns: dict[str, Any], *, answer: bool) -> Array:
        """Let the stream go on by rows, n x m; returns them completed if asked for."""
        stream: Stream | None = getattr(self, "_stream", None)
        stream = self._empty(rows.shape[1]) if stream is None else stream
        plan = plan_of(self)
        filled = rows.copy()
        held, untold = np.zeros((2, len(rows)), bool)
        known = ~np.isnan(rows).all(axis=1)
        if not known.all():
            warn_user(
                f"{(~known).sum()} row(s) have no observed entry. They were not learned from"
                + (" and are filled with the feature means." if answer else ".")
            )
        todo, seen = np.flatnonzero(known), stream.samples
        while len(todo):
            now, todo = np.split(todo, [max(1, stream.needs(plan))])
            held[now] = stream.model is None
            if answer and stream.model is not None:
                untold[now] = ~stream.model.told(rows[now])
            # Empty rows in between count as well, whichever call they came in.
            stream = replace(stream, samples=seen + int(now[-1]) + 1 - len(now))
            before = stream.batches
            stream, done = stream.take(rows[now], plan, answer=answer)
            if done is not None:
                filled[now] = done
            if stream.batches > before:
                self._tell(stream)
        stream = replace(stream, samples=seen + len(rows))
        if answer:
            if untold.any():
                warn_blank(untold)
            if held.any() and stream.model is not None:
                filled[held] = stream.model.complete(rows[held])
            elif held.any():
                warn_user(
                    f"{held.sum()} row(s) came before there was a model: their missing entries are "
                    "filled with the means so far."
                )
            filled = self._with_means(filled, stream)
        self._settle(stream, columns)
        return filled

    def _fit(self, X: Any) -> tuple[Array, Array, Array | None]:
        check_online(self)
        table, rows, columns = self._checked(X, reset=True)
        known = ~np.isnan(rows).all(axis=1)
        if not known.any():
            raise ValueError(
                "X has no observed entry: there is nothing to learn from. "
                f"Check that missing_values={self.missing_values!r} is what you mean."
            )
        if not known.all():
            warn_user(f"{(~known).sum()} row(s) have no observed entry to learn from.")
        used = rows[known]
        components_of(self, len(used))  # an error if there are more components than rows
        plan, stream = plan_of(self), self._empty(rows.shape[1])
        if isinstance(stream, SampleStream):
            stream, done = self._over_table(stream, used, plan, X)
            filled = np.full(rows.shape, np.nan)
            filled[known] = done
            self._settle(replace(stream, samples=plan.passes * len(rows)), columns)
            return table, rows, self._with_means(filled, self._stream)
        bridge = SklearnBridge(self, X, plan.passes * (len(used) // plan.batch_size + 1))
        for _ in range(plan.passes):
            stream, stopped = self._fed(stream, used, plan, bridge)
            if stopped:
                break
        self._settle(replace(stream, samples=plan.passes * len(rows)), columns)
        bridge.close()
        return table, rows, None

    def _over_table(
        self, stream: SampleStream, rows: Array, plan: Plan, source: Any
    ) -> tuple[SampleStream, Array]:
        """The stream after all passes over rows, n x m, and the rows completed."""
        bridge = SklearnBridge(self, source, plan.passes)

        def stop(number: int) -> bool:
            if self.verbose:
                sys.stderr.write(f"[{type(self).__name__}] pass {number} of {plan.passes}\n")
            return bridge(Step(number, 0, np.nan, 0.0))

        result = stream.over_table(rows, plan, stop)
        bridge.close()
        return result

    def _fed(
        self, stream: WindowStream, rows: Array, plan: Plan, bridge: SklearnBridge
    ) -> tuple[WindowStream, bool]:
        """The stream after all rows, n x m, also those that do not fill a batch.

        And whether a callback has ended it before.
        """
        stopped = False
        while len(rows) and not stopped:
            now, rows = np.split(rows, [stream.needs(plan)])
            stream, _ = stream.take(now, plan)
            if not len(stream.pending):
                self._tell(stream)
            stopped = bridge(Step(stream.batches, 0, stream.scores.recent, 0.0))
        if len(stream.pending):
            stream = stream.learn(plan)
            self._tell(stream)
        return stream, stopped

    def _tell(self, stream: Stream) -> None:
        routine = stream.action in ("refined", "learned", "nothing varies")
        if self.verbose > 1 or (self.verbose and not routine):
            sys.stderr.write(
                f"[{type(self).__name__}] {stream.samples} rows, {stream.action}; "
                f"recent error {stream.scores.recent:.3g}\n"
            )

    def _complete(self, rows: Array) -> Array:
        """Fill rows, n x m; a warning if some have nothing to go by."""
        model = self._stream.model
        assert model is not None
        told = model.told(rows)
        if not told.all():
            warn_blank(~told)
        return model.complete(rows)

    def _with_means(self, filled: Array, stream: Stream) -> Array:
        """Means where nothing better is known; 0 for features without any value."""
        if not np.isnan(filled).any():
            return filled
        return np.where(np.isnan(filled), stream.means(), filled)

    def _output(self, table: Array, rows: Array, filled: Array) -> Array:
        """Put completed rows in the shape and precision that the user expects."""
        missing = np.isnan(rows)
        out = np.where(missing, filled.astype(table.dtype), table)
        if not self.add_indicator:
            return out
        return np.hstack([out, missing.astype(table.dtype)])
