import numpy as np

from hirank.optim.early_stopping import BestStage, gains_nothing


def test_the_latest_stage_that_is_as_good_is_remembered():
    truth = np.ones((10, 10))
    best = BestStage(truth, np.ones((10, 10), bool))
    ends = [
        best.is_past(i, truth + e, truth[:3]) for i, e in enumerate((0.5, 0.2, 0.203, 0.3, 0.4))
    ]
    assert ends == [False, False, False, False, True]
    assert best.number == 2
    assert (truth + 0.203 == best.X).all()


def test_a_bump_does_not_end_the_path():
    truth = np.ones((10, 10))
    best = BestStage(truth, np.ones((10, 10), bool))
    ends = [best.is_past(i, truth + e, truth[:3]) for i, e in enumerate((0.2, 0.3, 0.1, 0.3, 0.05))]
    assert not any(ends)
    assert best.number == 4


def test_a_stage_gains_nothing_unless_it_is_the_best_so_far():
    assert not gains_nothing([0.5])
    assert not gains_nothing([0.5, 0.4])
    assert gains_nothing([0.5, 0.4, 0.45])
    assert gains_nothing([0.5, 0.5])


def test_a_stage_that_gains_less_than_required_counts_as_no_gain():
    assert gains_nothing([0.5, 0.497], min_gain=0.01)
    assert not gains_nothing([0.5, 0.49], min_gain=0.01)
