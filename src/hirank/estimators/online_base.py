"""What can be asked of a streaming estimator: its attributes and its state; nothing is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hirank._typing import Array
from hirank.estimators.online_validation import plan_of
from hirank.kernels import Kernel
from hirank.online.algorithm2 import SampleStream
from hirank.online.window import WindowStream
from hirank.persistence.records import from_state, to_state

FORMAT = 1
"""Version of the layout of get_state."""

Stream = WindowStream | SampleStream


class StreamView(BaseEstimator):
    """For an estimator whose all is one record, ``_stream``.

    Attributes are read from the record, so that they can't disagree with it, also when a call was
    interrupted.
    """

    _stream: Stream  # absent before the first row

    def get_state(self) -> dict[str, Any]:
        """Everything that the stream is, as nested dicts and lists of arrays, numbers and words.

        ``from_state`` goes on from it with the same results to the bit.

        Returns
        -------
        state : dict
        """
        params = self.get_params(deep=False)
        stream: Stream | None = getattr(self, "_stream", None)
        if isinstance(params["random_state"], np.random.RandomState):
            params["random_state"] = None if stream is None else stream.seed
        names = getattr(self, "feature_names_in_", None)
        return {
            "format": FORMAT,
            "params": {name: to_state(value) for name, value in params.items()},
            "feature_names": None if names is None else [str(name) for name in names],
            "stream": None if stream is None else to_state(stream),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """A model that goes on where ``get_state`` was called.

        Parameters
        ----------
        state : dict

        Returns
        -------
        model : OnlineKFMC
        """
        if state.get("format") != FORMAT:
            raise ValueError(
                f"The state has format {state.get('format')!r}; this version of hirank knows "
                f"format {FORMAT}."
            )
        missing = {"params", "feature_names", "stream"} - set(state)
        if missing:
            raise ValueError(f"The state is damaged: it has no {sorted(missing)}.")
        unknown = set(state["params"]) - set(cls._get_param_names())
        if unknown:
            raise ValueError(
                f"The state has parameters {sorted(unknown)} that this version of hirank does not "
                "know."
            )
        model = cls(**{name: from_state(value) for name, value in state["params"].items()})
        if state["stream"] is not None:
            stream = from_state(state["stream"])
            model.n_features_in_ = stream.width
            if state["feature_names"] is not None:
                model.feature_names_in_ = np.array(state["feature_names"], dtype=object)
            model._stream = stream
        return model

    @property
    def recent_error_(self) -> float:
        return self._begun.scores.recent

    @property
    def error_history_(self) -> NDArray[np.void]:
        return self._begun.scores.history.copy()

    @property
    def n_samples_seen_(self) -> int:
        return self._begun.samples

    @property
    def n_iter_(self) -> int:
        return self._begun.batches

    @property
    def last_action_(self) -> str:
        return self._begun.action

    @property
    def dictionary_(self) -> Array:
        model = self._begun.model
        if model is None:
            raise AttributeError("There is no dictionary yet.")
        return model.dictionary()

    @property
    def n_components_(self) -> int:
        return len(self.dictionary_)

    @property
    def kernel_(self) -> Kernel:
        model = self._begun.model
        return plan_of(self).kernel if model is None or model.kernel is None else model.kernel

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_stream", None) is not None and self._stream.model is not None

    @property
    def _begun(self) -> Stream:
        """The stream; an AttributeError before the first row, as for all fitted attributes."""
        if getattr(self, "_stream", None) is None:
            raise AttributeError(f"This {type(self).__name__} has not seen any rows yet.")
        return self._stream

    def _check_started(self) -> None:
        stream: Stream | None = getattr(self, "_stream", None)
        if stream is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: call partial_fit with "
                "the first rows of a stream, or fit with a table."
            )
        if stream.model is None:
            missing = max(1, stream.needs(plan_of(self)))
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: it holds "
                f"{len(stream.pending)} rows and takes {missing} more to start a model. Call "
                "partial_fit with more rows, set a smaller n_start, or call fit."
            )
