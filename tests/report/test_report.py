import os
import re
import time
from html.parser import HTMLParser

import numpy as np
import pytest

from hirank import KFMC
from hirank.report import write_report
from hirank.report.axes import Scale
from hirank.report.facts import gather
from hirank.report.filled import filled_table

SECTIONS = (
    "glance",
    "missing",
    "settings",
    "accuracy",
    "intervals",
    "convergence",
    "doubts",
    "cells-section",
)
NASTY = "<script>alert('x')</script>&\"'"


class Page(HTMLParser):
    """Tags with attributes, texts of table rows, and whether tags are closed in order."""

    VOID = frozenset({"meta", "br", "input", "link", "img"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.rows = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(attrs) == len(dict(attrs)), f"an attribute of {tag} is given twice"
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]


@pytest.fixture(scope="module")
def plain():
    """A model that had nothing to choose."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[::3, 1] = np.nan
    model = KFMC(4, kernel="rbf", bandwidth="path", mix=False, max_iter=5, random_state=0)
    return model, X, model.fit_transform(X)


def text_of(path, *args, **options):
    write_report(path, *args, **options)
    return path.read_text(encoding="utf-8")


def test_the_page_is_whole_and_has_all_sections(fitted, tmp_path):
    model, X, filled, interval = fitted
    text = text_of(tmp_path / "r.html", model, X, filled, interval=interval, title="My table")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert set(SECTIONS) <= set(page.ids)
    assert ("html", {"lang": "en"}) in page.tags
    assert "<title>My table</title>" in text
    assert model.summary()["verdict"] in text
    assert "random_state=0" in text
    linked = {attrs["href"][1:] for tag, attrs in page.tags if tag == "a"}
    assert linked == set(SECTIONS)
    labels = {a.get("aria-labelledby") for tag, a in page.tags if tag == "section"}
    assert labels <= set(page.ids)


def test_nothing_comes_from_elsewhere(fitted, tmp_path):
    text = text_of(tmp_path / "r.html", *fitted[:3])
    for _, attrs in Page(text).tags:
        assert not {"src", "srcset", "data", "action", "background"} & set(attrs)
        assert attrs.get("href", "#").startswith("#")
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttp|//cdn", text)
    policy = re.search(r'Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none';")
    assert "script-src 'sha256-" in policy


def test_what_users_write_is_text_and_never_markup(fitted, tmp_path):
    model, X, filled, interval = fitted
    names = [NASTY, "</style>", "a\u2028b", "$title ${x} \udc80"]
    rows = [NASTY] * len(X)
    text = text_of(
        tmp_path / "r.html",
        model,
        X,
        filled,
        names=names,
        rows=rows,
        title=NASTY,
        notes=[NASTY],
        interval=interval,
    )
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert sum(tag == "style" for tag, _ in page.tags) == 1
    assert "alert('x')" not in text
    assert any(NASTY in cell for row in page.rows for cell in row)
    assert any("$title ${x} ?" in cell for row in page.rows for cell in row)


def test_missing_cells_of_each_column_are_counted(fitted, tmp_path):
    model, X, filled, _ = fitted
    names = ["alpha", "beta", "gamma", "delta"]
    page = Page(text_of(tmp_path / "r.html", model, X, filled, names=names))
    for name, missing in zip(names, np.isnan(X).sum(axis=0), strict=True):
        assert [name, str(missing)] in [row[:2] for row in page.rows]


def test_facts_are_those_of_the_model_and_the_table(fitted):
    model, X, filled, interval = fitted
    table = filled_table(model, X, filled, None, interval, None)
    facts = gather(model, table, 0.9)
    summary = model.summary()
    assert (facts.rows, facts.columns) == X.shape
    assert facts.n_missing == facts.n_filled == np.isnan(X).sum() == len(facts.cells)
    assert [one.error for one in facts.features] == [row["error"] for row in summary["features"]]
    assert facts.doubts.blank == ["7"]
    assert ("9", 1) in facts.doubts.thin
    cell = facts.cells[0]
    i, j = int(cell.row), int(cell.column)
    assert np.isnan(X[i, j])
    assert (cell.fill, cell.lower, cell.upper) == (
        filled[i, j],
        interval[0][i, j],
        interval[1][i, j],
    )
    widths = (interval[1] - interval[0]) / np.nanstd(X, axis=0)
    assert facts.doubts.widest[0].size == pytest.approx(widths.max())
    expected = np.where(np.isnan(X), widths, np.nan)
    np.testing.assert_allclose([one.width for one in facts.features], np.nanmean(expected, axis=0))
    assert sum(points.shape[1] for points in facts.points.values()) == summary["n_hidden"]
    assert sum(one.weight for one in facts.candidates) == pytest.approx(1)
    errors = [one.error for one in facts.candidates]
    assert errors == sorted(errors)


def test_fills_far_outside_the_observed_range_are_listed(fitted):
    model, X, filled, _ = fitted
    wild = filled.copy()
    i = int(np.flatnonzero(np.isnan(X[:, 2]))[0])
    wild[i, 2] = np.nanmax(X[:, 2]) + 5 * np.nanstd(X[:, 2])
    found = gather(model, filled_table(model, X, wild, None, None, None), 0.9).doubts
    assert found.n_outside == 1
    assert (found.outside[0].row, found.outside[0].column) == (str(i), "2")
    assert found.outside[0].size == pytest.approx(5)


def test_a_model_that_chose_nothing_can_be_told_of(plain, tmp_path):
    text = text_of(tmp_path / "r.html", *plain)
    assert set(SECTIONS) <= set(Page(text).ids)
    assert "No entries were hidden" in text
    assert "Nothing was to be chosen" in text
    assert "No intervals were given" in text


def test_a_complete_table_can_be_told_of(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = KFMC(3, kernel="rbf", bandwidth=1.0, mix=False, max_iter=2, random_state=0).fit(X)
    text = text_of(tmp_path / "r.html", model, X, X, interval=(X, X))
    assert "nothing was missing" in text
    assert "No cell was filled" in text


def test_a_single_column_can_be_told_of(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 1))
    X[::4] = np.nan
    model = KFMC(max_iter=20, random_state=0)
    with pytest.warns(UserWarning, match="no observed entry"):
        filled = model.fit_transform(X)
    assert set(SECTIONS) <= set(Page(text_of(tmp_path / "r.html", model, X, filled)).ids)


def test_columns_without_values_are_left_empty_and_named(plain, tmp_path):
    X = np.insert(plain[1], 1, np.nan, axis=1)
    model = KFMC(4, kernel="rbf", bandwidth=1.0, mix=False, max_iter=2, random_state=0)
    kept = model.fit_transform(X)
    assert kept.shape[1] == 3
    full = np.insert(kept, 1, np.nan, axis=1)
    names = ["a", "void", "b", "c"]
    one = text_of(tmp_path / "1.html", model, X, kept, names=names)
    assert one == text_of(tmp_path / "2.html", model, X, full, names=names)
    page = Page(one)
    assert any(row[0] == "void" and row[1].startswith("nothing observed") for row in page.rows)
    assert "30 missing cells" in one


def test_data_frames_bring_their_names_and_other_signs_of_missing_work(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[::3, 1] = -200
    frame = pandas.DataFrame(X, columns=["left", "middle", "right"])
    model = KFMC(
        4, kernel="rbf", bandwidth=1.0, mix=False, max_iter=2, missing_values=-200, random_state=0
    )
    page = Page(text_of(tmp_path / "r.html", model, frame, model.fit_transform(frame)))
    assert ["middle", "10"] in [row[:2] for row in page.rows]


def test_tall_and_wide_tables_give_small_pages_soon(plain, tmp_path):
    rng = np.random.default_rng(0)
    for n, m in ((100_000, 5), (60, 500)):
        X = rng.normal(size=(n, m))
        filled = X.copy()
        X[rng.random(X.shape) < 0.3] = np.nan
        model = KFMC(2, kernel="rbf", bandwidth=1.0, mix=False, max_iter=1, random_state=0)
        model.fit(X[:10])
        began = time.perf_counter()
        write_report(tmp_path / "r.html", model, X, filled, interval=(filled - 1, filled + 1))
        assert time.perf_counter() - began < 5
        assert (tmp_path / "r.html").stat().st_size < 1.5e6


def test_the_same_page_for_the_same_facts(fitted, tmp_path):
    one = text_of(tmp_path / "1.html", *fitted[:3])
    assert one == text_of(tmp_path / "2.html", *fitted[:3])


def test_it_is_written_whole_or_not_at_all(plain, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(path, *plain)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["r.html"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_others_may_read_it_if_they_may_read_other_new_files(plain, tmp_path):
    write_report(tmp_path / "r.html", *plain)
    (tmp_path / "other").touch()
    assert (tmp_path / "r.html").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_wrong_input_is_told(plain, tmp_path):
    model, X, filled = plain
    path = tmp_path / "r.html"
    cases = [
        ({"filled": filled[:, :1]}, "filled must have the shape of X"),
        ({"X": X[:, :2]}, "X has 2 columns but the model was fitted to 3"),
        ({"names": ["a"]}, "1 names for 3 columns"),
        ({"rows": ["a"]}, "1 labels for 30 rows"),
        ({"interval": (X[:3], X[:3])}, "interval must have the shape of X"),
        ({"coverage": 1.0}, "coverage must be between 0 and 1"),
    ]
    for changed, message in cases:
        with pytest.raises(ValueError, match=message):
            write_report(path, **({"model": model, "X": X, "filled": filled} | changed))
    assert not path.exists()


def test_marks_are_round_and_within():
    for scale in (
        Scale(-1.3, 2.7),
        Scale(3.0, 3.001),
        Scale(1e-12, 1e9, log=True),
        Scale(0.2, 0.9, log=True),
        Scale(-0.3, 3e4, bend=0.01),
    ):
        marks = scale.marks()
        assert 2 <= len(marks) <= 8
        assert min(scale(marks)) >= 0
        assert max(scale(marks)) <= 1
    assert Scale(-1.3, 2.7).marks() == [-1, 0, 1, 2]
    np.testing.assert_allclose(Scale(1, 100, log=True)([1, 10, 100]), [0, 0.5, 1])
    assert Scale.around([5.0, 5.0]).low < 5 < Scale.around([5.0, 5.0]).high
