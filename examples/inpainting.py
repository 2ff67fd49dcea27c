"""Restore an image with scratches and missing pixels, by imputing its overlapping patches.

Each patch of 6 x 6 pixels is a row of the table. A pixel belongs to up to nine patches, and is
restored by the mean of what is imputed in them.
"""

import sys
from warnings import simplefilter

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import Ridge

from hirank import Imputer
from hirank.datasets import uniform_missing

# Ridge() instead of the default BayesianRidge(), which is worse (docs/applications.md).
simplefilter("ignore", ConvergenceWarning)  # of 30 rounds
SIZE = 72 if "--quick" in sys.argv else 112  # pixels
METHODS = {
    "k nearest neighbors": KNNImputer(),
    "iterative ridge": IterativeImputer(Ridge(), max_iter=30, tol=1e-2, random_state=0),
    "hirank": Imputer(bounds=(0, 1), n_init=1, random_state=0),
}


def split(image):
    """Return patches of 6 x 6 pixels, two pixels apart, one per row."""
    return np.lib.stride_tricks.sliding_window_view(image, (6, 6))[::2, ::2].reshape(-1, 36)


def join(patches):
    """Return the image that has these patches, or their mean where they overlap."""
    pixels = split(np.arange(SIZE**2).reshape(SIZE, SIZE)).ravel()
    return (np.bincount(pixels, patches.ravel()) / np.bincount(pixels)).reshape(SIZE, SIZE)


gray = load_sample_image("china.jpg")[:426, :640].mean(axis=2) / 255
image = gray.reshape(213, 2, 320, 2).mean(axis=(1, 3))[52 : 52 + SIZE, 42 : 42 + SIZE]
observed = uniform_missing(image.shape, 0.5, random_state=0)
y, x = np.mgrid[:SIZE, :SIZE]
for offset, angle in (0.2, 0.3), (0.6, 0.9), (0.85, -0.5), (0.45, 2.4), (0.5, 0.05):
    across = (x - offset * SIZE) * np.cos(angle) + (y - SIZE / 2) * np.sin(angle)
    observed &= abs(across) > 1.5  # a scratch of three pixels
damaged = np.where(observed, image, np.nan)

points = np.argwhere(observed), image[observed]
linear, nearest = (griddata(*points, (y, x), method=method) for method in ("linear", "nearest"))
restored = {"linear interpolation": np.where(np.isnan(linear), nearest, linear)}
for name, method in METHODS.items():
    restored[name] = np.where(observed, image, join(method.fit_transform(split(damaged))))

missing = f"{(~observed).mean():.0%} of pixels missing"
print(f"{missing}; peak signal-to-noise ratio at these, in dB:")
pictures = {"original": image, missing: damaged}
for name, result in restored.items():
    psnr = -10 * np.log10(np.mean((result - image)[~observed] ** 2))
    print(f"  {name:22s}{psnr:6.2f}")
    pictures[f"{name}: {psnr:.1f} dB"] = result

figure = Figure(figsize=(9, 6.3), layout="constrained")
cmap = colormaps["gray"].with_extremes(bad="#f2c14e")
for ax, (title, picture) in zip(figure.subplots(2, 3).flat, pictures.items(), strict=True):
    ax.imshow(picture, cmap=cmap, vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, weight="bold" if "hirank" in title else "normal")
figure.savefig("inpainting.png", dpi=100)
