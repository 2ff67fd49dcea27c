import numpy as np
import pytest

from hirank.core.triangular import times_lower


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (3, 7, 5), (0, 5)])
def test_product_with_a_lower_triangle(dtype, transposed, shape):
    rng = np.random.default_rng(0)
    B = rng.standard_normal(shape).astype(dtype)
    T = rng.standard_normal((shape[-1],) * 2).astype(dtype)  # the upper part must not be read
    expected = B @ (np.tril(T).T if transposed else np.tril(T))
    times_lower(B, T, transposed=transposed)
    np.testing.assert_allclose(B, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-5)


def test_another_layout_is_an_error():
    with pytest.raises(ValueError, match="C-contiguous"):
        times_lower(np.ones((3, 2)).T, np.eye(3), transposed=False)
    with pytest.raises(ValueError, match="one dtype"):
        times_lower(np.ones((3, 2)), np.eye(2, dtype=np.float32), transposed=False)
