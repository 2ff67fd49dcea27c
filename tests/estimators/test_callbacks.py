"""scikit-learn's callbacks, where it has them."""

import pytest
from helpers.plain import plain

from hirank import OnlineKFMC

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
    model = plain(20, max_iter=3, random_state=0).set_callbacks(recorder)
    getattr(model, method)(curved.holes)
    assert recorder.steps == model.n_iter_ >= 21
    assert recorder.events[:3] == ["setup", "begin fit", "begin step"]
    assert recorder.events[-2:] == ["end fit", "teardown"]


def test_a_callback_can_stop_the_fit(curved):
    model = plain(20, random_state=0).set_callbacks(Recorder(stop_at=5)).fit(curved.holes)
    assert model.n_iter_ == 5
    assert model.stop_reason_ == "Stopped by the callback at step 5."


def test_every_batch_of_a_stream_is_a_task_and_the_last_may_come_early(stream):
    quick = {"window": 60, "n_start": 40, "batch_size": 20, "max_iter": 5, "n_passes": 2}
    recorder = Recorder()
    model = OnlineKFMC(**quick, random_state=0).set_callbacks(recorder).fit(stream.holes[:100])
    assert recorder.steps == model.n_iter_ == 9  # 40 + 3 x 20, then 5 x 20
    model = OnlineKFMC(**quick, random_state=0).set_callbacks(Recorder(stop_at=2))
    assert model.fit(stream.holes[:100]).n_iter_ == 2


def test_every_pass_of_the_paper_is_a_task_and_the_last_may_come_early(stream):
    recorder = Recorder(stop_at=2)
    model = OnlineKFMC(5, mode="paper", n_passes=5, max_iter=5, random_state=0)
    model.set_callbacks(recorder).fit(stream.holes[:30])
    assert recorder.steps == 2
    assert model.n_iter_ == 2 * 30


def test_the_progress_bar_of_scikit_learn_works(curved, capsys):
    pytest.importorskip("rich")
    model = plain(20, max_iter=3, random_state=0).set_callbacks(callback.ProgressBar())
    model.fit(curved.holes)
    assert "KFMC" in capsys.readouterr().out
