import numpy as np
import pytest
from scipy.io import savemat

from reproduction.readers import load_hopkins, load_mocap
from reproduction.readers.mocap import CMU_BONES

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(62, 9))
POINTS = RNG.normal(size=(3, 7, 29))
POINTS[2] = 1
LABELS = np.array([[1], [1], [2], [2], [2], [3], [3]], dtype=np.uint8)


def amc_text(table):
    lines = [":DEGREES"]
    for frame, row in enumerate(table.T, 1):
        lines.append(str(frame))
        values = iter(row.tolist())
        for bone, count in CMU_BONES.items():
            lines.append(" ".join([bone, *(repr(next(values)) for _ in range(count))]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("step", [1, 2, 4])
def test_mocap_takes_every_step_th_frame_from_either_kind_of_file(tmp_path, step):
    savemat(tmp_path / "a.mat", {"X": TABLE})
    (tmp_path / "a.AMC").write_text(amc_text(TABLE))
    for name in ("a.mat", "a.AMC"):
        X, names = load_mocap(tmp_path / name, step=step)
        np.testing.assert_array_equal(X, TABLE.T[::step])
        assert len(names) == 62
        assert names[:7] == [*(f"root_{i}" for i in range(6)), "lowerback_0"]


def test_files_are_found_in_the_data_folder(tmp_path, monkeypatch):
    savemat(tmp_path / "cmu_mocap_56_06.mat", {"X": TABLE})
    savemat(tmp_path / "1A_truth.mat", {"x": POINTS, "s": LABELS})
    (tmp_path / "2B").mkdir()
    savemat(tmp_path / "2B" / "2B_truth.mat", {"x": POINTS, "s": LABELS})
    monkeypatch.setenv("HIRANK_DATA", str(tmp_path))
    np.testing.assert_array_equal(load_mocap().X, TABLE.T[::2])
    for name in ("1A", "2B", "1A_truth.mat", tmp_path / "2B", str(tmp_path / "1A")):
        assert load_hopkins(name).X.shape == (7, 12)
    with pytest.raises(
        FileNotFoundError, match=rf"3C_truth.mat was not found.*data folder {tmp_path}"
    ):
        load_hopkins("3C")


def test_without_files_the_error_states_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HIRANK_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"mocap\.cs\.cmu\.edu.*HIRANK_DATA.*--data"):
        load_mocap()
    with pytest.raises(FileNotFoundError, match=r"Hopkins155.*HIRANK_DATA"):
        load_hopkins("1R2RC")


def test_hopkins_takes_two_coordinates_of_evenly_spaced_frames(tmp_path):
    savemat(tmp_path / "a.mat", {"x": POINTS, "s": LABELS})
    X, labels = load_hopkins(tmp_path / "a.mat")
    for k, frame in enumerate([0, 6, 11, 17, 22, 28]):
        np.testing.assert_array_equal(X[:, 2 * k : 2 * k + 2], POINTS[:2, :, frame].T)
    assert labels.tolist() == LABELS.ravel().tolist()
    assert labels.dtype == np.intp
    whole = load_hopkins(tmp_path / "a.mat", frames=29).X
    np.testing.assert_array_equal(whole[:, ::2], POINTS[0])
    np.testing.assert_array_equal(load_hopkins(tmp_path / "a.mat", frames=1).X, POINTS[:2, :, 0].T)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"Y": TABLE}, "no key 'X' .keys: 'Y'.. This is not the expected file"),
        ({"X": TABLE.T}, r"X must be 62 x frames; its shape is \(9, 62\)"),
        ({"X": TABLE[:, :0]}, "X must be 62 x frames"),
        ({"X": np.where(TABLE > 2, np.nan, TABLE)}, "finite real numbers"),
        ({"X": TABLE + 1j}, "finite real numbers"),
        ({"X": "text"}, "finite real numbers"),
    ],
)
def test_wrong_mocap_tables_are_refused(tmp_path, content, message):
    savemat(tmp_path / "a.mat", content)
    with pytest.raises(ValueError, match=message):
        load_mocap(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"s": LABELS}, "no key 'x'"),
        ({"x": POINTS}, "no key 's'"),
        ({}, "keys: none"),
        ({"x": POINTS[:2], "s": LABELS}, "x must be 3 x points x frames"),
        ({"x": POINTS[:, :, 0], "s": LABELS}, "x must be 3 x points x frames"),
        ({"x": POINTS * 2, "s": LABELS}, "third coordinate in x must be 1"),
        ({"x": POINTS, "s": LABELS[1:]}, "s must contain an integer for each of the 7 points"),
        ({"x": POINTS, "s": LABELS + 0.5}, "s must contain an integer"),
        ({"x": POINTS * np.nan, "s": LABELS}, "finite real numbers"),
    ],
)
def test_wrong_trajectories_are_refused(tmp_path, content, message):
    savemat(tmp_path / "a.mat", content)
    with pytest.raises(ValueError, match=message):
        load_hopkins(tmp_path / "a.mat")


@pytest.mark.parametrize("compress", [False, True])
def test_truncated_and_foreign_mat_files_are_refused(tmp_path, compress):
    path = tmp_path / "a.mat"
    savemat(path, {"X": TABLE}, do_compression=compress)
    whole = path.read_bytes()
    for end in (0, 50, 130, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"a\.mat"):
            load_mocap(path)
    path.write_text("1 2 3\n" * 100)
    with pytest.raises(ValueError, match="cannot be read as a MATLAB file"):
        load_mocap(path)


def test_wrong_arguments_are_refused(tmp_path):
    savemat(tmp_path / "a.mat", {"X": TABLE, "x": POINTS, "s": LABELS})
    (tmp_path / "a.amc").write_text("1\nroot 0 0\n")
    (tmp_path / "a.txt").write_text("1\n")
    for path, settings, message in [
        ("a.mat", {"step": 0}, "step"),
        ("a.mat", {"skeleton": "a.asf"}, "skeleton requires an .amc file"),
        ("a.amc", {}, "has 2 features, not the 62"),
        ("a.txt", {}, "neither an .amc nor a .mat"),
    ]:
        with pytest.raises(ValueError, match=message):
            load_mocap(tmp_path / path, **settings)
    with pytest.raises(ValueError, match="frames must be an integer from 1 to 29"):
        load_hopkins(tmp_path / "a.mat", frames=30)


@pytest.mark.usefixtures("data_folder")
def test_the_paper_s_real_tables():
    X, names = load_mocap()
    assert X.shape == (3392, 62)
    still = [names[j] for j in np.flatnonzero(np.ptp(X, axis=0) == 0)]
    assert np.linalg.matrix_rank(X - X.mean(axis=0)) >= 50
    assert still == ["rfingers_0", "lfingers_0"]
    assert load_mocap("cmu_mocap_02_01.amc").X.shape == (172, 62)
    for name, points in (("1R2RC", 459), ("1R2TCR", 556)):
        X, labels = load_hopkins(name)
        assert X.shape == (points, 12)
        assert sorted({*labels.tolist()}) == [1, 2, 3]
