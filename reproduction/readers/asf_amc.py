"""Motion capture text files, skeletons (ASF) and motions (AMC); errors name the line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from hirank._typing import Array

CHANNELS = {"tx", "ty", "tz", "rx", "ry", "rz", "l"}
Skeleton = dict[str, tuple[str, ...]]
"""Channels of each bone, in order: {"root": ("tx", ...), "lowerback": ("rx", "ry", "rz"), ...}."""


class Motion(NamedTuple):
    """A table of frames, and what its features are."""

    X: Array  # frames x features
    names: list[str]  # bone and channel, such as "root_0" or "root_tx"


def read_amc(path: str | Path, *, skeleton: str | Path | Skeleton | None = None) -> Motion:
    r"""Read all frames of an AMC file, with angles as they are stored.

    Every frame must have the bones of the first one, in their order, with as many numbers, and the
    frames must be numbered consecutively. Anything else is an error that names the line. Whole
    frames that are absent at the end cannot be detected, nor, without a skeleton, bones that are
    absent from all frames.

    Parameters
    ----------
    path : path
    skeleton : path of an ASF file or result of `read_asf`, optional
        Used to check that the frames have exactly the bones and numbers of their skeleton, and to
        name the features by its channels.

    Returns
    -------
    motion : record with X and names
        X is frames x features; a name is the bone and the channel ("root_tx" with a skeleton,
        "root_0" without).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from reproduction.readers import read_amc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "motion.amc"
    ...     lines = [":DEGREES", "1", "root 0 1", "hand 30", "2", "root 0 1.5", "hand 31"]
    ...     _ = path.write_text("\n".join(lines) + "\n")
    ...     motion = read_amc(path)
    >>> motion.names
    ['root_0', 'root_1', 'hand_0']
    >>> motion.X
    array([[ 0. ,  1. , 30. ],
           [ 0. ,  1.5, 31. ]])
    """
    path = Path(path)
    reader = _Frames(path)
    for number, line in _lines(path, comments=(":",)):
        reader.read_line(number, line.split())
    reader.finish()
    counts = {bone: len(values) for bone, values in reader.first.items()}
    X = np.array(reader.rows)
    if skeleton is None:
        return Motion(X, number_channels(counts))
    channels = skeleton if isinstance(skeleton, dict) else read_asf(skeleton)
    expected = {bone: len(names) for bone, names in channels.items() if names}
    for bone in sorted(set(counts) | set(expected)):
        if counts.get(bone) != expected.get(bone):
            raise ValueError(
                f"{path} does not fit the skeleton: bone {bone!r} has {counts.get(bone, 'no')} "
                f"numbers in the frames and {expected.get(bone, 'no')} channels in the skeleton."
            )
    return Motion(X, [f"{bone}_{name}" for bone in counts for name in channels[bone]])


def read_asf(path: str | Path) -> Skeleton:
    r"""Read the channels of each bone of a skeleton, an ASF file, in the order of the file.

    Parameters
    ----------
    path : path

    Returns
    -------
    skeleton : dict from bone to names of channels
        Of tx, ty, tz (positions), rx, ry, rz (angles) and l (length). A bone that cannot move
        has none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from reproduction.readers import read_asf
    >>> text = ":root\norder TX TY\n:bonedata\nbegin\nname hand\ndof rx\nend\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "someone.asf"
    ...     _ = path.write_text(text)
    ...     read_asf(path)
    {'root': ('tx', 'ty'), 'hand': ('rx',)}
    """
    path = Path(path)
    skeleton: Skeleton = {}
    bone: dict[str, tuple[str, ...]] | None = None  # name and channels, between begin and end
    section, number = "", 0
    for number, line in _lines(path):
        key, *words = line.split()
        key = key.lower()
        if key.startswith(":"):
            section = key
            if bone is not None:
                _fail(path, number, f"section {key} begins before the bone has ended")
        elif section == ":root" and key == "order":
            skeleton["root"] = _channels(path, number, words)
        elif section == ":bonedata" and key == "begin":
            if bone is not None:
                _fail(path, number, "a bone begins before the last one has ended")
            bone = {}
        elif section == ":bonedata" and key == "end":
            if bone is None or "name" not in bone:
                _fail(path, number, "the bone that ends here has not begun or has no name")
            name = " ".join(bone["name"])
            if name in skeleton:
                _fail(path, number, f"bone {name!r} already exists")
            skeleton[name], bone = bone.get("dof", ()), None
        elif bone is not None and key in ("name", "dof"):
            bone[key] = _channels(path, number, words) if key == "dof" else tuple(words)
    if bone is not None:
        _fail(path, number, "the file ends before the bone does: it was cut off")
    if "root" not in skeleton or len(skeleton) == 1:
        _fail(path, number, "no order in :root or no bone in :bonedata; is this an ASF file?")
    return skeleton


class _Frames:
    """The frames of an AMC file while it is read, line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.first: dict[str, list[float]] = {}
        self.rows: list[list[float]] = []
        self._bones: list[str] = []
        self._seen = 0  # bones of the current frame
        self._frame: int | None = None
        self._line = 0

    def read_line(self, number: int, words: list[str]) -> None:
        self._line = number
        if len(words) == 1 and words[0].isdecimal():
            self._begin(int(words[0]))
        elif self._frame is None:
            self._fail(f"a frame number must come before {' '.join(words)[:40]!r}")
        else:
            self._bone(words[0], [self._number(word) for word in words[1:]])

    def finish(self) -> None:
        if self._frame is None:
            _fail(self.path, self._line, "the file has no frame")
        self._close("the file ends")

    def _begin(self, frame: int) -> None:
        if self._frame is not None:
            self._close(f"frame {frame} begins")
            if frame != self._frame + 1:
                self._fail(f"frame {frame} follows frame {self._frame}")
        self._frame, self._seen = frame, 0
        self.rows.append([])

    def _bone(self, bone: str, values: list[float]) -> None:
        if not values:
            self._fail(f"bone {bone!r} has no numbers")
        if len(self.rows) == 1:
            if bone in self.first:
                self._fail(f"bone {bone!r} comes twice in frame {self._frame}")
            self.first[bone] = values
            self._bones.append(bone)
        else:
            if self._seen == len(self._bones) or bone != self._bones[self._seen]:
                after = self._bones[self._seen :][:1]
                wanted = f"bone {after[0]!r}" if after else "the next frame"
                self._fail(f"{wanted} must come here, as in the first frame, not bone {bone!r}")
            if len(values) != len(self.first[bone]):
                self._fail(
                    f"bone {bone!r} has {len(values)} numbers, {len(self.first[bone])} in the "
                    "first frame"
                )
        self._seen += 1
        self.rows[-1] += values

    def _close(self, what: str) -> None:
        if not self._seen:
            self._fail(f"{what} but frame {self._frame} has no bones")
        if self._seen < len(self._bones):
            self._fail(
                f"{what} but frame {self._frame} has {self._seen} of {len(self._bones)} bones; "
                f"{self._bones[self._seen]!r} must come next"
            )

    def _number(self, word: str) -> float:
        try:
            value = float(word) if "_" not in word else np.nan
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            self._fail(f"{word!r} is not a finite number")
        return value

    def _fail(self, problem: str) -> NoReturn:
        _fail(self.path, self._line, problem)


def _lines(path: Path, comments: tuple[str, ...] = ()) -> Iterator[tuple[int, str]]:
    """Yield numbered lines that are neither empty nor comments; raise if the last is cut off."""
    # Comments may contain any bytes; elsewhere a replaced byte is never part of a number or name.
    with path.open(encoding="ascii", errors="replace") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].strip()
            if words and not line.endswith("\n"):
                _fail(path, number, "the file was cut off inside this line (if not, end the line)")
            if words and not words.startswith(comments):
                yield number, words


def _channels(path: Path, number: int, words: list[str]) -> tuple[str, ...]:
    names = tuple(word.lower() for word in words)
    if not names or not CHANNELS.issuperset(names) or len(set(names)) < len(names):
        _fail(path, number, f"channels must be some of {', '.join(sorted(CHANNELS))}, each once")
    return names


def number_channels(counts: dict[str, int]) -> list[str]:
    """Return names of channels by number: root_0, root_1, ..."""
    return [f"{bone}_{i}" for bone, count in counts.items() for i in range(count)]


def _fail(path: Path, number: int, problem: str) -> NoReturn:
    raise ValueError(f"{path}, line {number}: {problem}.")
