import numpy as np

from hirank import KFMC, Imputer


def test_notebooks_show_the_estimator_with_its_parameters():
    model = Imputer(max_time=7.5, random_state=0)
    page = model._repr_html_()
    assert "Imputer" in page
    assert "7.5" in page
    assert "sk-estimator" in page
    bundle = model._repr_mimebundle_()
    assert bundle["text/html"].startswith("<style>")
    assert bundle["text/plain"] == "Imputer(max_time=7.5, random_state=0)"


def test_notebooks_show_whether_it_is_fitted():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = KFMC(3, max_iter=2)
    assert "Not fitted" in model._repr_html_()
    assert "Not fitted" not in model.fit(X)._repr_html_()
