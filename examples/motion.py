"""Recover a motion whose markers are occluded for most of a second at a time.

A figure that walks and runs is generated. With a file of http://mocap.cs.cmu.edu, as in
`python examples/motion.py 02_01.amc`, its joint angles are taken instead, and no picture is drawn.
"""

import sys
from pathlib import Path
from warnings import simplefilter

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from hirank import Imputer
from hirank.datasets import missing_gaps

# Others get standardized columns, and Ridge(): they are worse without (docs/applications.md).
simplefilter("ignore", ConvergenceWarning)  # of 30 rounds
FILES = [argument for argument in sys.argv[1:] if argument != "--quick"]
CHAINS = [
    [2, 1, 0, 3, 4, 5],
    [0, 6, 7, 8],
    [1, 9, 10, 11],
    [1, 12, 13, 14],
]  # joints along the body


def make_motion(n):
    """Return 15 joints from the side as complex numbers in cm, relative to the hip; n x 15."""
    t = np.arange(n) / 25  # seconds
    speed = 0.5 + 0.5 * np.sin(0.35 * t + 0.8 * np.sin(0.23 * t))  # 0: walks, 1: runs
    phase, lean = 2 * np.pi * np.cumsum(0.8 + 0.5 * speed) / 25, 0.05 + 0.2 * speed
    neck = 55j * np.exp(-1j * lean)
    legs, arms = [], []
    for side in (phase, phase + np.pi):  # left and right; angles of limbs from straight down
        thigh = (0.35 + 0.35 * speed) * np.sin(side) + 0.2 * speed
        shank = thigh - (0.25 + 0.3 * speed) * (1 + np.cos(side + 0.4))
        arm = -(0.3 + 0.5 * speed) * np.sin(side)
        hand = arm + 0.3 + 1.1 * speed + 0.2 * np.cos(side)
        leg = [45, 43, 18] * np.exp(1j * np.stack([thigh, shank, shank + 1.4], axis=1))
        legs.append(np.cumsum(-1j * leg, axis=1))
        limb = [30, 27, 9] * np.exp(1j * np.stack([arm, hand, hand], axis=1))
        arms.append(neck[:, None] + np.cumsum(-1j * limb, axis=1))
    return np.column_stack([0 * neck, neck, neck + 20j * np.exp(-0.5j * lean), *legs, *arms])


def read_amc(path):
    """Return the joint angles of a file in degrees, without the root; frames x angles."""
    frames = []
    for name, *values in map(str.split, Path(path).read_text().splitlines()):
        if name.isdigit():
            frames.append([])
        elif frames and name != "root":
            frames[-1] += map(float, values)
    return np.array(frames)


if FILES:
    truth, unit = read_amc(FILES[0]), "degrees"
    observed = missing_gaps(truth.shape, 0.5, gaps=8, random_state=0)
else:
    joints, unit = make_motion(200 if "--quick" in sys.argv else 400), "cm"
    truth = np.hstack([joints.real, joints.imag])
    truth += np.random.default_rng(0).normal(scale=0.5, size=truth.shape)  # of the cameras
    observed = np.tile(missing_gaps(joints.shape, 0.5, gaps=len(joints) // 40, random_state=0), 2)
X, t = np.where(observed, truth, np.nan), np.arange(len(truth))
scaler, ridge = (
    StandardScaler().fit(X),
    IterativeImputer(Ridge(), max_iter=30, tol=1e-2, random_state=0),
)
scaled = scaler.transform(X)
columns = zip(truth.T, observed.T, strict=True)
filled = {
    "linear interpolation": np.stack([np.interp(t, t[o], x[o]) for x, o in columns], axis=1),
    "k nearest neighbors": scaler.inverse_transform(KNNImputer().fit_transform(scaled)),
    "iterative ridge": scaler.inverse_transform(ridge.fit_transform(scaled)),
    "hirank": Imputer(time=True, random_state=0).fit_transform(X),
}
print(f"{truth.shape[0]} frames, {truth.shape[1]} columns, half of them missing, in gaps.")
print(f"Root mean square error at the missing entries, in {unit}:")
errors = {}
for name, table in filled.items():
    errors[name] = np.sqrt(np.mean((table - truth)[~observed] ** 2))
    print(f"  {name:22s}{errors[name]:6.2f}")
if FILES:
    sys.exit()

# Each row of panels is a method, each column a point in time.
frames = range(60, 90, 5)
figure = Figure(figsize=(10, 8), layout="constrained")
axes = figure.subplots(4, 6)
for row, (name, table) in zip(axes, filled.items(), strict=True):
    for ax, frame in zip(row, frames, strict=True):
        true, imputed = (T[frame, :15] + 1j * T[frame, 15:] for T in (truth, table))
        lost = imputed[~observed[frame, :15]]
        for chain in CHAINS:
            ax.plot(true[chain].real, true[chain].imag, color="silver", lw=6)
            ax.plot(imputed[chain].real, imputed[chain].imag, color="black", lw=1.5)
        ax.plot(lost.real, lost.imag, "o", color="C3", ms=5)
        ax.set(xlim=(-80, 80), ylim=(-110, 85), aspect=1, xticks=[], yticks=[])
    weight = "bold" if name == "hirank" else "normal"
    row[0].set_ylabel(f"{name}\n{errors[name]:.1f} cm", weight=weight)
for ax, frame in zip(axes[0], frames, strict=True):
    ax.set_title(f"{frame / 25:.1f} s")
figure.suptitle("Gray: true motion. Red: joints that are occluded, as imputed.")
figure.savefig("motion.png", dpi=100)
