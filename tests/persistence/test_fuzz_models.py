"""Mutated model files: refused clearly, or good to use. Many more: benchmarks/fuzz/models.py."""

from helpers.model_mutations import fitted_models, outcome, run


def test_mutated_files_are_refused_or_work(tmp_path):
    models = fitted_models()
    for name, model in models.items():
        model.save(tmp_path / name)
        assert outcome(tmp_path / name) == "loaded"
    counts = run(models, tmp_path, 600)
    assert sum(counts.values()) > 550
    assert min(counts.values()) > 30
