"""Restore an image with scratches and missing pixels, by imputing its overlapping patches.

Each patch of 6 x 6 pixels is a row of the table. A pixel belongs to up to nine patches, and is
restored by the mean of what is imputed in them.
"""

import sys

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from others import IMPUTERS
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image

from hirank import Imputer
from hirank.datasets import uniform_missing

SIZE = 72 if "--quick" in sys.argv else 112  # pixels


def split(image):
    """Return patches of 6 x 6 pixels, two pixels apart, one per row."""
    return np.lib.stride_tricks.sliding_window_view(image, (6, 6))[::2, ::2].reshape(-1, 36)


gray = load_sample_image("china.jpg")[:426, :640].mean(axis=2) / 255
image = gray.reshape(213, 2, 320, 2).mean(axis=(1, 3))[52 : 52 + SIZE, 42 : 42 + SIZE]
observed = uniform_missing(image.shape, 0.5, random_state=0)
y, x = np.mgrid[:SIZE, :SIZE]
for offset, angle in (0.2, 0.3), (0.6, 0.9), (0.85, -0.5), (0.45, 2.4), (0.5, 0.05):
    across = (x - offset * SIZE) * np.cos(angle) + (y - SIZE / 2) * np.sin(angle)
    observed &= abs(across) > 1.5  # a scratch of three pixels
damaged, missing = np.where(observed, image, np.nan), f"{(~observed).mean():.0%} of pixels missing"

known = np.argwhere(observed), image[observed]
linear, nearest = (griddata(*known, (y, x), method=method) for method in ("linear", "nearest"))
restored = {"linear interpolation": np.where(np.isnan(linear), nearest, linear)}
pixels = split(np.arange(SIZE**2).reshape(SIZE, SIZE)).ravel()
methods = {**IMPUTERS, "hirank": Imputer(bounds=(0, 1), n_init=1, random_state=0)}
for name in "k nearest neighbors", "iterative ridge", "hirank":
    patches = methods[name].fit_transform(split(damaged))
    mean = np.bincount(pixels, patches.ravel()) / np.bincount(pixels)
    restored[name] = np.where(observed, image, mean.reshape(SIZE, SIZE))

print(f"{missing}; peak signal-to-noise ratio at these, in dB:")
pictures = {"original": image, missing: damaged}
for name, result in restored.items():
    ratio = -10 * np.log10(np.mean((result - image)[~observed] ** 2))
    pictures[f"{name}: {ratio:.1f} dB"] = result
    print(f"  {name:22s}{ratio:6.2f}")
figure = Figure(figsize=(9, 6.3), layout="constrained")
cmap = colormaps["gray"].with_extremes(bad="#f2c14e")
for ax, (title, picture) in zip(figure.subplots(2, 3).flat, pictures.items(), strict=True):
    ax.imshow(picture, cmap=cmap, vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[], title=title)
figure.savefig("inpainting.png", dpi=100)
