"""Every public name has an example; that it runs is checked by doctest."""

import importlib

import pytest

PACKAGES = ["hirank", "hirank.baselines", "hirank.cluster", "hirank.datasets", "hirank.theory"]


@pytest.mark.parametrize("package", [*PACKAGES, "hirank.metrics"])
def test_every_public_name_has_an_example(package):
    module = importlib.import_module(package)
    names = set(module.__all__)
    assert names
    assert not [name for name in names if ">>>" not in getattr(module, name).__doc__]
