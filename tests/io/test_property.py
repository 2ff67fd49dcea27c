"""Any table that Python's csv module writes, in any of its dialects."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hirank.io import create, open_table

pytestmark = pytest.mark.slow

CELLS = st.one_of(
    st.sampled_from(["", "NA", "nan", "1", "-2.50", "3e5", " 4 ", "0,5", "1_0", "inf", "007"]),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        max_size=6,
    ),
    st.text("a1\",;\t|\r\n' ", max_size=6),
)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=8))
    options = {
        "delimiter": draw(st.sampled_from(",;\t|")),
        "lineterminator": draw(st.sampled_from(["\n", "\r\n"])),
        "quoting": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
    }
    if options["quoting"] == csv.QUOTE_MINIMAL:  # Python 3.11 does not quote a lone "\r"
        rows = [[cell.replace("\r", "\n") for cell in row] for row in rows]
    return [f"name {j}" for j in range(width)], rows, options, draw(st.booleans())


def written(names, rows, options):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, **options)
    writer.writerow(names)
    writer.writerows(rows)
    return stream.getvalue()


def parsed(text, options):
    return [row for row in csv.reader(io.StringIO(text, newline=""), **options) if row]


@given(tables())
def test_observed_cells_come_back(tmp_path_factory, table):
    names, rows, options, bom = table
    folder = tmp_path_factory.getbasetemp()
    text = written(names, rows, options)
    path, target = folder / "property.csv", folder / "property_out.csv"
    path.write_bytes(text.encode("utf-8-sig" if bom else "utf-8"))
    with open_table(path, delimiter=options["delimiter"]) as file:
        assert file.names == tuple(names)
        found = file.read()
        assert len(found) == len(rows)
        for j, name in enumerate(names):
            assert list(found.column(name)) == [row[j] for row in rows]
        with create(target, like=file, force=True) as writer:
            writer.write(found, np.full(found.numbers.shape, 6.5))
        parts = list(file.chunks(3))
    out = target.read_bytes().decode()
    assert out.startswith("\ufeff") == bom
    back = parsed(out.removeprefix("\ufeff"), options)
    expected = [names, *(list(row) for row in rows)]
    decimal = "," if file.dialect.decimal == "," else "."
    for j, name in enumerate(found.numeric):
        for i in np.flatnonzero(np.isnan(found.numbers[:, j])):
            expected[i + 1][names.index(name)] = f"6{decimal}5"
    assert back == expected
    # A table without missing cells is the same to the byte.
    if not np.isnan(found.numbers).any():
        assert out.removeprefix("\ufeff") == text
    assert sum(map(len, parts)) == len(rows)
    together = np.concatenate([part.numbers for part in parts] or [found.numbers])
    np.testing.assert_array_equal(together, found.numbers)


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6, width=32)), min_size=3, max_size=3),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(",;\t|"),
)
def test_the_delimiter_is_found(tmp_path_factory, rows, delimiter):
    path = tmp_path_factory.getbasetemp() / "sniffed.csv"
    decimal = "," if delimiter == ";" else "."
    lines = [
        delimiter.join("" if v is None else repr(v).replace(".", decimal) for v in row)
        for row in rows
    ]
    path.write_text("\n".join([delimiter.join(["x", "y", "z"]), *lines, ""]))
    with open_table(path) as file:
        table = file.read()
    assert table.names == ("x", "y", "z")
    expected = [[np.nan if v is None else v for v in row] for row in rows]
    np.testing.assert_array_equal(table.numbers, np.array(expected, dtype=float))
