import pytest
from helpers.model_mutations import fit_models


@pytest.fixture(scope="session")
def models():
    """Return small models of all kinds, 4 features each."""
    return fit_models()
