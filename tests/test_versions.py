import json

import hirank
from hirank import _compiled


def test_versions_and_the_compiled_core_are_printed(capsys):
    hirank.show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    lines = {name.strip(): text for name, text in lines.items()}
    assert lines["hirank"] == hirank.__version__
    assert lines["compiled core"] == _compiled.describe()
    assert {"python", "numpy", "scipy", "scikit-learn", "BLAS"} <= set(lines)


def test_the_core_that_is_off_is_printed_with_the_reason(capsys, monkeypatch):
    monkeypatch.setenv("HIRANK_COMPILED", "off")
    hirank.show_versions()
    assert "compiled core: off (HIRANK_COMPILED is set)" in capsys.readouterr().out


def test_plain_data():
    from hirank._versions import collect_versions

    facts = json.loads(json.dumps(collect_versions().to_dict()))
    assert facts["packages"]["hirank"] == hirank.__version__
