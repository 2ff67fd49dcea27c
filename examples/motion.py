"""Recover a motion whose markers are occluded for most of a second at a time."""

import sys

import numpy as np
from matplotlib.figure import Figure
from others import IMPUTERS
from sklearn.preprocessing import StandardScaler

from hirank import Imputer
from hirank.datasets import missing_gaps

BODY = [2, 1, 0, 3, 4, 5], [0, 6, 7, 8], [1, 9, 10, 11], [1, 12, 13, 14]  # joints along it


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


joints = make_motion(200 if "--quick" in sys.argv else 400)
truth = np.hstack([joints.real, joints.imag])
truth += np.random.default_rng(0).normal(scale=0.5, size=truth.shape)  # of the cameras
observed = np.tile(missing_gaps(joints.shape, 0.5, gaps=len(joints) // 40, random_state=0), 2)
X, t = np.where(observed, truth, np.nan), np.arange(len(truth))
columns = zip(truth.T, observed.T, strict=True)
filled = {"linear interpolation": np.transpose([np.interp(t, t[o], x[o]) for x, o in columns])}
scaler = StandardScaler().fit(X)  # others are worse without
for name in "k nearest neighbors", "iterative ridge":
    filled[name] = scaler.inverse_transform(IMPUTERS[name].fit_transform(scaler.transform(X)))
filled["hirank"] = Imputer(time=True, random_state=0).fit_transform(X)

print("Root mean square error at occluded joints, which are half of all, in cm:")
figure = Figure(figsize=(10, 8), layout="constrained")
figure.suptitle("Gray: true motion. Red: joints that are occluded, as imputed.")
for row, (name, table) in zip(figure.subplots(4, 6), filled.items(), strict=True):
    error = np.sqrt(np.mean((table - truth)[~observed] ** 2))
    print(f"  {name:22s}{error:6.2f}")
    for ax, frame in zip(row, range(60, 90, 5), strict=True):
        true, imputed = (T[frame, :15] + 1j * T[frame, 15:] for T in (truth, table))
        for chain in map(list, BODY):
            ax.plot(true[chain].real, true[chain].imag, color="silver", lw=6)
            ax.plot(imputed[chain].real, imputed[chain].imag, color="black", lw=1.5)
        lost = imputed[~observed[frame, :15]]
        ax.plot(lost.real, lost.imag, "o", color="C3", ms=5)
        ax.set(xlim=(-80, 80), ylim=(-110, 85), aspect=1, xticks=[], yticks=[])
        ax.set_title(f"{frame / 25:.1f} s", fontsize="small")
    row[0].set_ylabel(f"{name}\n{error:.1f} cm")
figure.savefig("motion.png", dpi=100)
