"""scikit-learn's callbacks, where it has them."""

import numpy as np
import pytest
from helpers.estimators import WINDOW, fast_imputer, fast_kfmc

from hirank import OnlineImputer, OnlineKFMC
from hirank.exceptions import StopReason

callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9 or later")


class Recorder:
    """Counts steps, and asks to stop at one of them."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at
        self.steps = 0
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.task_name}")
        self.steps += context.task_name == "step"
        return self.steps == self.stop_at

    def teardown(self, estimator, context):
        self.events.append("teardown")


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_every_step_is_a_task(curved, method):
    recorder = Recorder()
    model = fast_kfmc(20, max_iter=3, random_state=0).set_callbacks(recorder)
    getattr(model, method)(curved.X)
    assert recorder.steps == model.n_iter_ >= 21
    assert recorder.events[:3] == ["setup", "begin fit", "begin step"]
    assert recorder.events[-2:] == ["end fit", "teardown"]


def test_a_callback_can_stop_the_fit(curved):
    model = fast_kfmc(20, random_state=0).set_callbacks(Recorder(stop_at=5)).fit(curved.X)
    assert model.n_iter_ == 5
    assert model.status_ is StopReason.CALLBACK


def test_a_callback_can_stop_a_search(curved):
    model = fast_imputer().set_callbacks(Recorder(stop_at=5)).fit(curved.X)
    assert model.n_iter_ == 5
    assert model.status_ is StopReason.CALLBACK
    assert np.isfinite(model.transform(curved.X)).all()


def test_every_batch_of_a_stream_is_a_task_and_may_be_the_last(stream):
    settings = {**WINDOW, "max_iter": 5, "n_passes": 2}
    recorder = Recorder()
    model = OnlineImputer(**settings).set_callbacks(recorder).fit(stream.X[:100])
    assert recorder.steps == model.n_iter_ == 9  # 40 + 3 x 20, then 5 x 20
    model = OnlineImputer(**settings).set_callbacks(Recorder(stop_at=2))
    assert model.fit(stream.X[:100]).n_iter_ == 2


def test_every_pass_of_algorithm_2_is_a_task_and_may_be_the_last(stream):
    recorder = Recorder(stop_at=2)
    model = OnlineKFMC(5, n_passes=5, max_iter=5, random_state=0)
    model.set_callbacks(recorder).fit(stream.X[:30])
    assert recorder.steps == 2
    assert model.n_iter_ == 2 * 30


def test_the_progress_bar_of_scikit_learn_works(curved, capsys):
    pytest.importorskip("rich")
    model = fast_kfmc(20, max_iter=3, random_state=0).set_callbacks(callback.ProgressBar())
    model.fit(curved.X)
    assert "KFMC" in capsys.readouterr().out
