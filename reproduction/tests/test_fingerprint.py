from reproduction.cells import Cell, Method
from reproduction.fingerprint import find_method_modules, find_task_modules, fingerprint


def cell(estimator, task="completion", **more):
    return Cell(task, "mocap", "random", 0.1, 0, Method("a", estimator), **more)


def test_rivals_do_not_depend_on_the_search_of_models():
    for module in ("lrf", "kernel_imputers", "dlsr"):
        found = find_method_modules(f"hirank.baselines.{module}")

        assert {f"hirank.baselines.{module}", "hirank.core.scaling", "hirank.optim.loop"} <= found
        assert not {name for name in found if name.startswith("hirank.selection")}
        assert "hirank.estimators.imputer" not in found


def test_imputer_depends_on_the_search_and_on_the_models_in_it():
    found = find_method_modules("hirank.estimators.imputer")

    assert {"hirank.selection.search", "hirank.models.mixture", "hirank.kernels.rbf"} <= found
    assert "hirank.online.window" not in found


def test_algorithm_1_depends_on_its_solver():
    assert "hirank.optim.newton" in find_method_modules("hirank.estimators.kfmc")
    assert "hirank.optim.newton" in find_method_modules("reproduction.published")


def test_a_task_depends_on_its_data_and_metrics_not_on_methods():
    found = find_task_modules("reproduction.tasks.clustering")

    assert {"reproduction.data", "reproduction.readers.hopkins", "hirank.metrics"} <= found
    assert not {name for name in found if name.startswith(("hirank.estimators", "hirank.models"))}
    assert "reproduction.methods" not in found


def test_the_fingerprint_differs_by_estimator_and_task_alone():
    one = fingerprint(cell("LRF"))

    assert one == fingerprint(cell("LRF", options={"n": 3}))
    assert len({one, fingerprint(cell("VMC")), fingerprint(cell("LRF", "clustering"))}) == 3


def test_an_estimator_of_another_library_has_a_fingerprint():
    assert len(fingerprint(cell("mean"))) == 12
