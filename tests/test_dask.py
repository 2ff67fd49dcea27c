"""Dask collections are imputed as whole tables are, whatever happens to workers."""

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hirank
from hirank.exceptions import ClusterVersionWarning, InputError, ParameterError

dask = pytest.importorskip("dask", reason='needs Dask: pip install "hirank[dask]"')

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

import hirank.dask  # noqa: E402

NAMES = ["a", "b", "c", "d"]


def curve(n=200, seed=0):
    """Rows on a curve with missing entries."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    X = np.column_stack([t, t**2, t**3, np.cos(2 * t)]) + rng.normal(size=(n, 4)) / 50
    X[rng.random(X.shape) < 0.2] = np.nan
    return X[~np.isnan(X).all(axis=1)]


@pytest.fixture(scope="module")
def model():
    return hirank.Imputer(max_iter=20, n_init=1, random_state=0).fit(curve())


@pytest.fixture(scope="module")
def named():
    frame = pd.DataFrame(curve(), columns=NAMES)
    return hirank.Imputer(max_iter=20, n_init=1, random_state=0).fit(frame)


@pytest.fixture(autouse=True)
def in_this_process():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on this machine."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("chunks", [(50, 4), (33, 2), (500, 1)])
def test_an_array_has_the_same_bits_as_a_whole_table(model, chunks):
    X = curve(seed=1)
    filled = hirank.dask.transform(model, da.from_array(X, chunks=chunks))
    assert filled.shape == X.shape
    assert filled.dtype == np.float64
    np.testing.assert_array_equal(filled.compute(), model.transform(X), strict=True)


def test_partitions_are_kept_and_nothing_is_computed_early(model):
    def fail(block):
        raise AssertionError("a partition was computed")

    lazy = da.from_array(curve(), chunks=(50, 4)).map_blocks(fail, meta=np.empty((0, 0)))
    assert hirank.dask.transform(model, lazy).chunks == lazy.chunks


def test_partitions_of_unknown_size_are_imputed(model):
    X = curve(seed=1)
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    filled = hirank.dask.transform(model, frame.to_dask_array())
    np.testing.assert_array_equal(filled.compute(), model.transform(X))


def test_single_precision_stays(model):
    X = curve(seed=1).astype(np.float32)
    filled = hirank.dask.transform(model, da.from_array(X, chunks=(60, 4)))
    assert filled.dtype == np.float32
    np.testing.assert_array_equal(filled.compute(), model.transform(X), strict=True)


def test_indicators_come_last():
    X = curve(seed=1)
    model = hirank.Imputer(max_iter=20, n_init=1, add_indicator=True, random_state=0).fit(X)
    filled = hirank.dask.transform(model, da.from_array(X, chunks=(60, 4)))
    assert filled.shape == (len(X), 8)
    np.testing.assert_array_equal(filled.compute(), model.transform(X), strict=True)


def test_a_frame_keeps_its_other_columns_its_index_and_its_partitions(named):
    X = curve(seed=1)
    whole = pd.DataFrame(X, columns=NAMES, index=np.arange(len(X)) * 3)
    whole.insert(1, "name", [f"row {i}" for i in range(len(X))])
    lazy = dd.from_pandas(whole, npartitions=4)
    filled = hirank.dask.transform(named, lazy)
    assert filled.divisions == lazy.divisions
    imputed = dict(zip(NAMES, named.transform(whole[NAMES]).T, strict=True))
    expected = lazy.compute().assign(**imputed)  # Dask converts strings
    pd.testing.assert_frame_equal(filled.compute(), expected, check_exact=True)


def test_integers_and_nullable_columns_become_floats_as_they_do_locally(named):
    frame = pd.DataFrame(curve(seed=1), columns=NAMES)
    frame["a"] = frame["a"].round().astype("Int64")
    filled = hirank.dask.transform(named, dd.from_pandas(frame, npartitions=3))
    assert filled.dtypes["a"] == np.float64
    np.testing.assert_array_equal(filled.compute().to_numpy(), named.transform(frame))


def test_empty_partitions_and_partitions_without_a_value_of_a_column(named):
    frame = pd.DataFrame(curve(seed=1), columns=NAMES)
    frame.loc[: len(frame) // 2, "b"] = np.nan
    lazy = dd.from_pandas(frame, npartitions=4)
    filled = hirank.dask.transform(named, lazy[lazy["a"] > 0.5]).compute()
    expected = frame[frame["a"] > 0.5]
    np.testing.assert_array_equal(filled.to_numpy(), named.transform(expected))
    nothing = hirank.dask.transform(named, lazy[lazy["a"] > 99]).compute()
    assert nothing.shape == (0, 4)


def test_a_column_without_values_in_the_fit_stays_as_it_is():
    frame = pd.DataFrame(curve(seed=1), columns=NAMES).assign(empty=np.nan)
    model = hirank.Imputer(max_iter=20, n_init=1, random_state=0).fit(frame)
    filled = hirank.dask.transform(model, dd.from_pandas(frame, npartitions=3)).compute()
    assert filled["empty"].isna().all()
    np.testing.assert_array_equal(filled[NAMES].to_numpy(), model.transform(frame))


@pytest.mark.parametrize("streaming", [hirank.OnlineImputer, hirank.KFMC])
def test_other_models_are_applied_too(streaming):
    X = curve(seed=1)
    model = streaming(n_components=20, max_iter=20, random_state=0).fit(X)
    filled = hirank.dask.transform(model, da.from_array(X, chunks=(60, 4)))
    np.testing.assert_array_equal(filled.compute(), model.transform(X))


def test_text_is_an_error_that_names_the_column(named):
    frame = pd.DataFrame(curve(seed=1), columns=NAMES)
    text = dd.from_pandas(frame.astype({"a": str}), npartitions=3)
    with pytest.raises(InputError, match=r"Columns a are declared as string\. Convert"):
        hirank.dask.transform(named, text)


def test_text_in_a_partition_that_is_declared_as_numbers_is_an_error_that_shows_it(named):
    frame = pd.DataFrame(curve(seed=1), columns=NAMES)

    def spoil(part):
        return part.astype({"a": object}).assign(a="high")

    lazy = dd.from_pandas(frame, npartitions=3).map_partitions(spoil, meta=frame.iloc[:0])
    with pytest.raises(InputError, match="high"):
        hirank.dask.transform(named, lazy).compute()


def test_values_of_another_precision_than_declared_are_an_error(named):
    def widen(part):
        return part.astype(float)

    frame = pd.DataFrame(curve(seed=1), columns=NAMES).astype(np.float32)
    lazy = dd.from_pandas(frame, npartitions=3).map_partitions(widen, meta=frame.iloc[:0])
    with pytest.raises(InputError, match=r"declared as float32\. Call astype"):
        hirank.dask.transform(named, lazy).compute()


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (da.zeros((10, 3), chunks=5), InputError, "4 columns; X has the shape"),
        (dd.from_pandas(pd.DataFrame({"a": [1.0]}), 1), InputError, "no columns b, c, d"),
        (np.zeros((3, 4)), TypeError, "For other tables, call model.transform"),
    ],
)
def test_what_cannot_be_imputed_is_an_error_before_anything_is_computed(
    named, table, error, message
):
    with pytest.raises(error, match=message):
        hirank.dask.transform(named, table)


def test_a_model_that_uses_times_is_refused():
    model = hirank.Imputer(time=True, max_iter=20, n_init=1, random_state=0).fit(curve())
    with pytest.raises(ParameterError, match="Fit the model without it"):
        hirank.dask.transform(model, da.zeros((10, 4), chunks=5))


@pytest.mark.parametrize("call", [hirank.Imputer().fit, hirank.complete])
def test_estimators_of_whole_tables_name_what_to_call_for_a_dask_collection(call):
    for table in (da.zeros((10, 4)), dd.from_pandas(pd.DataFrame({"a": [1.0]}), 1)):
        with pytest.raises(InputError, match=r"hirank\.dask\.transform"):
            call(table)


@pytest.mark.parametrize("call", [hirank.Imputer().fit, hirank.complete])
def test_lazy_frames_are_an_error_that_names_collect(call):
    with pytest.raises(InputError, match="collect"):
        call(pl.DataFrame({"a": [1.0, 2.0]}).lazy())


def test_two_workers_give_the_same_bits(named, cluster):
    X = curve(2000, seed=1)
    with dask.config.set(scheduler=cluster):
        filled = hirank.dask.transform(named, dd.from_pandas(pd.DataFrame(X, columns=NAMES), 8))
        result = cluster.compute(filled).result(timeout=60)
    np.testing.assert_array_equal(
        result.to_numpy(), named.transform(pd.DataFrame(X, columns=NAMES))
    )


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(named, tmp_path):
    distributed = pytest.importorskip("distributed")
    meeting_point = tmp_path / "scheduler.json"

    def start(role, *options):
        command = [sys.executable, "-m", "dask", role, "--scheduler-file", meeting_point]
        return subprocess.Popen(
            [*command, "--no-dashboard", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    processes = [start("scheduler", "--host", "127.0.0.1", "--port", "0")]
    try:
        processes += [start("worker", "--nthreads", "1", "--no-nanny") for _ in range(2)]
        X = curve(4000, seed=1)

        def wait(part):  # so that the worker is killed before all partitions are done
            time.sleep(0.2)
            return part

        frame = pd.DataFrame(X, columns=NAMES)
        with distributed.Client(scheduler_file=str(meeting_point), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            lazy = dd.from_pandas(frame, npartitions=40)
            lazy = lazy.map_partitions(wait, meta=frame.iloc[:0])
            future = client.compute(hirank.dask.transform(named, lazy))
            time.sleep(1.5)
            assert not future.done()
            processes[-1].kill()
            filled = future.result(timeout=120)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    np.testing.assert_array_equal(filled.to_numpy(), named.transform(frame))


def test_hirank_on_the_workers_is_checked(named, cluster, monkeypatch):
    lazy = dd.from_pandas(pd.DataFrame(curve(), columns=NAMES), 2)
    answers = cluster.get_versions(packages=["hirank"])
    monkeypatch.setattr(type(cluster), "get_versions", lambda *_, **__: answers)
    answers["scheduler"]["packages"]["hirank"] = "0.0.9"
    with pytest.warns(ClusterVersionWarning, match=r"at the scheduler \(0\.0\.9\)"):
        hirank.dask.transform(named, lazy)
    answers["scheduler"]["packages"]["hirank"] = None
    with pytest.raises(RuntimeError, match=r"not installed at the scheduler\. Install hirank"):
        hirank.dask.transform(named, lazy)


def test_without_dask_hirank_works_and_the_error_names_what_to_install():
    program = (
        "import sys; sys.modules['dask'] = None; import hirank; print('fine'); import hirank.dask"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "fine\n"
    assert done.stderr.splitlines()[-1] == (
        'ImportError: hirank.dask needs Dask: pip install "hirank[dask]".'
    )
