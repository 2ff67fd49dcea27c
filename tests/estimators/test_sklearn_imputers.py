"""scikit-learn's own tests of imputers, with ours in place of its own."""

import inspect

import pytest

from hirank import KFMC, Imputer, OnlineImputer

theirs = pytest.importorskip("sklearn.impute.tests.test_common", reason="not in this wheel")

pytestmark = [
    pytest.mark.filterwarnings("ignore::hirank.exceptions.EmptyRowsWarning"),
    pytest.mark.filterwarnings("ignore::hirank.exceptions.FewEntriesWarning"),
]

IMPUTERS = {
    "Imputer": Imputer(max_iter=5, random_state=0),
    "KFMC": KFMC(max_iter=5, random_state=0),
    "OnlineImputer": OnlineImputer(max_iter=5, random_state=0),
}
NOT_FOR_STREAMS = {
    "test_imputers_add_indicator": "a stream has no indicator_: every feature has a column",
    "test_imputers_feature_names_out_pandas": "a stream keeps features without values",
    "test_keep_empty_features": "a stream keeps features without values",
    "test_imputation_adds_missing_indicator_if_add_indicator_is_true": "as many indicators as "
    "features",
}


def cases():
    """Every test of scikit-learn's, with every combination of its parameters but the imputer."""
    for name, test in inspect.getmembers(theirs, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
        combinations = [{}]
        for mark in marks:
            names, values = mark.args
            if names != "imputer":
                combinations = [{**one, names: value} for one in combinations for value in values]
        for kind in IMPUTERS:
            for arguments in combinations:
                label = "-".join([name, kind, *map(str, arguments.values())])
                yield pytest.param(test, kind, arguments, id=label)


@pytest.mark.parametrize(("test", "kind", "arguments"), list(cases()))
def test_imputers_pass_the_tests_of_scikit_learn(test, kind, arguments):
    if test.__name__.endswith("_sparse"):
        pytest.skip("sparse matrices are not supported: there, 0 is not a missing value")
    if kind == "OnlineImputer" and test.__name__ in NOT_FOR_STREAMS:
        pytest.skip(NOT_FOR_STREAMS[test.__name__])

    test(imputer=IMPUTERS[kind], **arguments)
