import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from helpers.estimators import fast_imputer

from hirank.exceptions import EmptyRowsWarning, FewEntriesWarning
from hirank.report import write_report
from hirank.report.facts import collect_facts
from hirank.report.pictures import draw_columns, make_svg
from hirank.report.table import make_table

SECTIONS = (
    "glance",
    "missing",
    "models",
    "accuracy",
    "intervals",
    "convergence",
    "checks",
    "values",
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
    """Return a model of a table that is too small for models to be compared."""
    X = np.random.default_rng(0).normal(size=(15, 3))
    X[::3, 1] = np.nan
    model = fast_imputer()
    with pytest.warns(FewEntriesWarning):
        return model, X, model.fit_transform(X)


def text_of(path, *args, **options):
    write_report(path, *args, **options)
    return path.read_text(encoding="utf-8")


def test_the_page_is_valid_and_has_all_sections(fitted, tmp_path):
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
    for tag, attrs in Page(text).tags:
        assert not {"src", "srcset", "data", "action", "background", "xlink:href"} & set(attrs)
        inline = "data:image/png;base64," if tag == "image" else "#"
        assert attrs.get("href", inline).startswith(inline)
    assert not re.search(r"https?:|url\((?!#)|@import|fetch\(|XMLHttp|//cdn", text)
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
    assert "<script>alert" not in text
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
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

    facts = collect_facts(model, make_table(model, X, filled, None, interval, None), 0.9)

    summary = model.summary()
    assert facts.n_missing == facts.n_imputed == np.isnan(X).sum() == len(facts.cells)
    assert [one.error for one in facts.columns] == [row["error"] for row in summary["features"]]
    assert facts.empty_rows.shown == ["7"]
    assert ("9", 1) in facts.sparse_rows.shown
    cell = facts.cells[0]
    i, j = int(cell.row), int(cell.column)
    assert np.isnan(X[i, j])
    assert (cell.value, cell.lower, cell.upper) == (
        filled[i, j],
        interval[0][i, j],
        interval[1][i, j],
    )
    widths = (interval[1] - interval[0]) / np.nanstd(X, axis=0)
    assert facts.widest.shown[0].size == pytest.approx(widths.max())
    expected = np.where(np.isnan(X), widths, np.nan)
    np.testing.assert_allclose([one.width for one in facts.columns], np.nanmean(expected, axis=0))
    assert sum(one.n_held_out for one in facts.columns) == facts.n_held_out
    assert sum(one.weight for one in facts.trials) == pytest.approx(1)
    errors = [one.error for one in facts.trials]
    assert errors == sorted(errors)


def test_masked_entries_are_missing(fitted):
    model, X, filled, interval = fitted
    masked = np.ma.masked_invalid(X)

    table = make_table(model, masked, filled, None, interval, None)

    np.testing.assert_array_equal(table.observed, ~np.isnan(X))


def test_imputed_values_far_outside_the_observed_range_are_listed(fitted):
    model, X, filled, _ = fitted
    extreme = filled.copy()
    i = int(np.flatnonzero(np.isnan(X[:, 2]))[0])
    extreme[i, 2] = np.nanmax(X[:, 2]) + 5 * np.nanstd(X[:, 2])

    found = collect_facts(model, make_table(model, X, extreme, None, None, None), 0.9).outside

    assert found.total == 1
    assert (found.shown[0].row, found.shown[0].column) == (str(i), "2")
    assert found.shown[0].size == pytest.approx(5)


def test_a_model_without_selection_has_a_report(plain, tmp_path):
    text = text_of(tmp_path / "r.html", *plain)
    assert set(SECTIONS) <= set(Page(text).ids)
    assert "No entries were held out" in text
    assert "No models were compared" in text
    assert "without intervals" in text


def test_a_complete_table_has_a_report(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = fast_imputer().fit(X)
    text = text_of(tmp_path / "r.html", model, X, X, interval=(X, X))
    assert "nothing was missing" in text
    assert "No values were imputed" in text


def test_a_single_column_has_a_report(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 1))
    X[::4] = np.nan
    model = fast_imputer()
    with pytest.warns(EmptyRowsWarning):
        filled = model.fit_transform(X)
    assert set(SECTIONS) <= set(Page(text_of(tmp_path / "r.html", model, X, filled)).ids)


def test_columns_without_values_stay_missing_and_are_listed(plain, tmp_path):
    X = np.insert(plain[1], 1, np.nan, axis=1)
    model = fast_imputer()
    with pytest.warns(FewEntriesWarning):
        kept = model.fit_transform(X)
    assert kept.shape[1] == 3
    full = np.insert(kept, 1, np.nan, axis=1)
    names = ["a", "void", "b", "c"]
    one = text_of(tmp_path / "1.html", model, X, kept, names=names)
    assert one == text_of(tmp_path / "2.html", model, X, full, names=names)
    page = Page(one)
    assert any(row[0] == "void" and row[1].startswith("has no observed") for row in page.rows)
    assert "15 missing values" in one


def test_names_of_data_frames_and_other_missing_values_are_used(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[::3, 1] = -200
    frame = pandas.DataFrame(X, columns=["left", "middle", "right"])
    model = fast_imputer(missing_values=-200)
    page = Page(text_of(tmp_path / "r.html", model, frame, model.fit_transform(frame)))
    assert ["middle", "10"] in [row[:2] for row in page.rows]


@pytest.mark.slow
def test_tall_and_wide_tables_give_small_pages(plain, tmp_path):
    rng = np.random.default_rng(0)
    for n, m in ((100_000, 5), (60, 500)):
        X = rng.normal(size=(n, m))
        filled = X.copy()
        X[rng.random(X.shape) < 0.3] = np.nan
        model = fast_imputer(max_time=0.1).fit(X[:60])
        write_report(tmp_path / "r.html", model, X, filled, interval=(filled - 1, filled + 1))
        assert (tmp_path / "r.html").stat().st_size < 1.5e6


def test_the_same_input_gives_the_same_page(fitted, tmp_path):
    one = text_of(tmp_path / "1.html", *fitted[:3])
    assert one == text_of(tmp_path / "2.html", *fitted[:3])


def test_it_is_written_completely_or_not_at_all(plain, tmp_path, monkeypatch):
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


def test_wrong_input_raises_before_anything_is_written(plain, tmp_path):
    model, X, filled = plain
    path = tmp_path / "r.html"
    cases = [
        ({"filled": filled[:, :1]}, "filled must have the shape of X"),
        ({"X": X[:, :2]}, "X has 2 columns, but the model was fitted to 3"),
        ({"names": ["a"]}, "one entry per column, 3; got 1"),
        ({"rows": ["a"]}, "one label per row, 15; got 1"),
        ({"interval": (X[:3], X[:3])}, "interval must have the shape of X"),
        ({"coverage": 1.0}, "coverage must be between 0 and 1"),
    ]
    for changed, message in cases:
        with pytest.raises(ValueError, match=message):
            write_report(path, **({"model": model, "X": X, "filled": filled} | changed))
    assert not path.exists()


def test_pictures_have_labels_and_the_colors_of_the_page(fitted, tmp_path):
    text = text_of(tmp_path / "r.html", *fitted[:3])
    pictures = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="[^"]+">', text)
    assert len(pictures) == 8  # three, and of held-out entries: all columns, and four of them
    assert "var(--own)" in text
    assert not re.search(r"(fill|stroke): #", text)


def test_a_picture_does_not_depend_on_the_style_of_a_notebook():
    matplotlib = pytest.importorskip("matplotlib")

    def draw(*, ax):
        ax.plot([1, 2], [3, 4], color="#0072b2")
        ax.set_title("\u8868 $x$ <b>", parse_math=False)

    plain = make_svg("key", 'A "label"', draw)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        settings = dict(matplotlib.rcParams)
        styled = make_svg("key", 'A "label"', draw)
        assert dict(matplotlib.rcParams) == settings

    assert styled == plain
    assert 'aria-label="A &quot;label&quot;"' in plain
    assert "\u8868 $x$ &lt;b&gt;</text>" in plain


def test_of_many_columns_those_with_the_largest_errors_have_a_picture(fitted):
    model, X, filled, _ = fitted
    facts = collect_facts(model, make_table(model, X, filled, None, None, None), 0.9)

    found = draw_columns(model, facts, max_columns=2)

    errors = [column.error for column in facts.columns]
    assert list(found) == np.argsort(errors)[::-1][:2].tolist()
