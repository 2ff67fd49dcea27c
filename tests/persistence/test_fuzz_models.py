"""Mutated model files: rejected clearly, or good to use. Many more: benchmarks/fuzz/models.py."""

import pytest
from helpers.model_mutations import load_and_use, mutate


@pytest.mark.parametrize("count", [150, pytest.param(600, marks=pytest.mark.slow)])
def test_mutated_files_are_rejected_or_work(count, models, tmp_path):
    for name, model in models.items():
        model.save(tmp_path / name)
        assert load_and_use(tmp_path / name) == "loaded"

    outcome = mutate(models, tmp_path, count, seed=count)

    counts = outcome.counts
    assert sum(counts.values()) > 0.9 * count
    assert counts["loaded"] > 0.03 * count
    assert counts["rejected"] > 0.5 * count
    assert outcome.checksums < 0.05 * count  # all others have reached the decoder
