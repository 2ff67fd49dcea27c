"""The report in a real browser: Debian's chromium, without a driver.

The page writes into attributes of <html> what a test needs: errors of its script, whether it has
loaded, its width and by how much it is too wide. A fragment of its address sets what to search, so
that --dump-dom shows the result.
"""

import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

from hirank.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt install chromium"),
]
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
LONG = "a_name_without_any_place_to_break_it_" * 4
EVIL = "<img src=x onerror=\"document.documentElement.dataset.hacked='yes'\">"


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory):
    model, X, filled, interval = fitted
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(
        path,
        model,
        X,
        filled,
        names=["speed", LONG, EVIL, "<script>document.title='hacked'</script>"],
        interval=interval,
        title="A table with gaps",
    )
    return path


def browse(page, tmp_path, *options, fragment=""):
    command = [
        CHROMIUM,
        *OPTIONS,
        f"--user-data-dir={tmp_path / 'profile'}",
        *options,
        f"{page.as_uri()}#{fragment}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def about(dom):
    """The attributes of <html>."""
    return dict(re.findall(r'data-(\w+)="([^"]*)"', re.search(r"<html[^>]*>", dom)[0]))


def shape(picture):
    """Width and height of a PNG."""
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    return struct.unpack(">II", data[16:24])


def background(picture):
    """The first pixel of a PNG, by matplotlib if it is there."""
    image = pytest.importorskip("matplotlib.image")
    return image.imread(picture)[0, 0, :3]


def test_it_fits_on_a_phone(page, tmp_path):
    # A window of chromium is never narrower than 500: the page is looked at in a frame.
    around = tmp_path / "phone.html"
    around.write_text(
        f'<iframe id="phone" style="border: 0" width="360" height="700" src="{page.as_uri()}">'
        "</iframe><script>window.onload = () => Object.assign(document.documentElement.dataset, "
        "document.getElementById('phone').contentDocument.documentElement.dataset);</script>"
    )
    found = about(browse(around, tmp_path, "--dump-dom", "--allow-file-access-from-files").stdout)
    assert found == {"ready": "yes", "width": "360", "overflow": "0"}


def test_it_loads_without_errors_and_runs_nothing_else(page, tmp_path):
    dom = browse(page, tmp_path, "--dump-dom").stdout
    found = about(dom)
    assert found["ready"] == "yes"
    assert "errors" not in found
    assert found["overflow"] == "0"
    for name in ("At a glance", "Missing values", "Accuracy", "Imputed values"):
        assert f">{name}</h2>" in dom
    # Names that look like markup did not run.
    assert "hacked" not in found
    assert "<title>A table with gaps</title>" in dom
    # What needs the script is there, and one picture of held-out entries is shown.
    assert '<select id="feature">' in dom
    assert not re.search(r'class="controls needs-script" hidden', dom)
    figures = re.findall(r"<figure data-feature=\"(\w+)\"( hidden)?", dom)
    assert [name for name, hidden in figures if not hidden] == ["all"]
    assert len(figures) == 5


def test_the_preview_is_searched_and_sorted(page, fitted, tmp_path):
    _, X, filled, _ = fitted
    fragment = "search=SPEED+1&sort=Imputed&feature=speed&theme=dark"
    dom = browse(page, tmp_path, "--dump-dom", fragment=fragment).stdout
    found = about(dom)
    assert "errors" not in found
    assert found["theme"] == "dark"
    missing = np.isnan(X[:, 0]) & ["1" in str(i) for i in range(len(X))]
    assert 0 < missing.sum() < np.isnan(X[:, 0]).sum()
    assert f'data-count="{missing.sum()}"' in dom
    body = re.search(r'<table id="cells".*?<tbody>(.*?)</tbody>', dom, re.S)[1]
    rows = [row for row in re.findall(r"<tr(.*?)</tr>", body, re.S) if "hidden" not in row[:30]]
    assert len(rows) == missing.sum()
    assert all("<td>speed</td>" in row for row in rows)
    values = [float(re.search(r'data-value="([^"]*)"', row)[1]) for row in rows]
    np.testing.assert_allclose(values, np.sort(filled[missing, 0]), rtol=1e-4)
    shown = re.findall(r'<figure data-feature="(\w+)"(?! hidden)', dom)
    assert shown == ["0"]


def test_it_is_light_or_dark_as_asked(page, tmp_path):
    shades = {}
    for theme in ("light", "dark"):
        picture = tmp_path / f"{theme}.png"
        options = (f"--screenshot={picture}", "--window-size=1200,900")
        browse(page, tmp_path, *options, fragment=f"theme={theme}")
        assert shape(picture) == (1200, 900)
        shades[theme] = float(background(picture).mean())
    assert shades["light"] == 1
    assert shades["dark"] < 0.2


def test_it_prints(page, tmp_path):
    paper = tmp_path / "report.pdf"
    browse(page, tmp_path, f"--print-to-pdf={paper}", "--no-pdf-header-footer")
    data = paper.read_bytes()
    assert data.startswith(b"%PDF")
    pages = [int(count) for count in re.findall(rb"/Type\s*/Pages.*?/Count (\d+)", data, re.S)]
    assert not pages or 2 <= max(pages) <= 20
