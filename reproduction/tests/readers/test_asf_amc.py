import numpy as np
import pytest

from reproduction.readers import read_amc, read_asf

ASF = """# a small skeleton \xe9
:version 1.10
:name someone
:units
  mass 1.0
  angle deg
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
:bonedata
  begin
     id 1
     name lhipjoint
     direction 0.6 -0.7 0.3
     length 2.4
     axis 0 0 0  XYZ
  end
  begin
     id 2
     name lFemur
     dof rx ry rz
     limits (-160.0 20.0)
            (-70.0 70.0)
            (-60.0 70.0)
  end
  begin
     name ltibia
     dof rx
     limits (-10.0 170.0)
  end
:hierarchy
  begin
    root lhipjoint
    lhipjoint lFemur
    lFemur ltibia
  end
"""
AMC = """#!OML:ASF someone.ASF \xe9
:FULLY-SPECIFIED
:DEGREES
1
root 0 1 2 3 4 5
lFemur -1.5 2e-3 .5
ltibia 10
2
root 0.1 1.1 2.1 3.1 4.1 5.1
lFemur -1 0 1

ltibia 11
3
root 0 0 0 0 0 0
lFemur 0 0 0
ltibia 12
"""
X = np.array(
    [
        [0, 1, 2, 3, 4, 5, -1.5, 2e-3, 0.5, 10],
        [0.1, 1.1, 2.1, 3.1, 4.1, 5.1, -1, 0, 1, 11],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 12],
    ]
)


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
        return tmp_path / name

    return write


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_frames_become_rows(write, line_end):
    motion = read_amc(write("a.amc", AMC.replace("\n", line_end)))
    np.testing.assert_array_equal(motion.X, X)
    assert motion.X.dtype == np.float64
    roots = [f"root_{i}" for i in range(6)]
    assert motion.names == [*roots, "lFemur_0", "lFemur_1", "lFemur_2", "ltibia_0"]


def test_a_skeleton_names_the_channels(write):
    path = write("a.asf", ASF)
    skeleton = read_asf(path)
    assert skeleton == {
        "root": ("tx", "ty", "tz", "rx", "ry", "rz"),
        "lhipjoint": (),
        "lFemur": ("rx", "ry", "rz"),
        "ltibia": ("rx",),
    }
    for given in (path, str(path), skeleton):
        motion = read_amc(write("a.amc", AMC), skeleton=given)
        np.testing.assert_array_equal(motion.X, X)
        assert motion.names[:3] == ["root_tx", "root_ty", "root_tz"]
        assert motion.names[-2:] == ["lFemur_rz", "ltibia_rx"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ltibia 11\n", "", "line 12: frame 3 begins but frame 2 has 2 of 3 bones; 'ltibia'"),
        ("ltibia 12\n", "", "line 15: the file ends but frame 3 has 2 of 3 bones; 'ltibia'"),
        ("lFemur 0 0 0\nltibia 12\n", "lFem", "line 15: the file was cut off inside this line"),
        ("ltibia 12\n", "ltibia 1", "line 16: the file was cut off inside this line"),
        ("root 0 0 0 0 0 0\nlFemur 0 0 0\nltibia 12\n", "", "line 13: .* frame 3 has no bones"),
        ("lFemur -1 0 1", "lFemur -1 0", "line 10: bone 'lFemur' has 2 numbers, 3 in the first"),
        ("lFemur -1 0 1", "lFemur -1 0 1 1", "line 10: bone 'lFemur' has 4 numbers"),
        ("lFemur -1 0 1", "lFemur", "line 10: bone 'lFemur' has no numbers"),
        ("lFemur -1 0 1", "lFemur -1 0 1,5", "line 10: '1,5' is not a finite number"),
        ("lFemur -1 0 1", "lFemur -1 0 1_5", "line 10: '1_5' is not a finite number"),
        ("lFemur -1 0 1", "lFemur -1 0 nan", "line 10: 'nan' is not a finite number"),
        ("lFemur -1 0 1", "lFemur -1 0 1e999", "line 10: '1e999' is not a finite number"),
        ("lFemur -1 0 1", "lFemur -1 0 1\xb2", "line 10: .* is not a finite number"),
        ("lFemur -1 0 1", "rfemur -1 0 1", "line 10: bone 'lFemur' must come here.*'rfemur'"),
        ("ltibia 11", "ltibia 11\nltibia 11", "line 13: the next frame must come here"),
        ("ltibia 10", "ltibia 10\nltibia 10", "line 8: bone 'ltibia' comes twice in frame 1"),
        ("ltibia 10\n", "", "line 11: the next frame must come here, .* not bone 'ltibia'"),
        ("\n2\n", "\n3\n", "line 8: frame 3 follows frame 1"),
        ("\n3\n", "\n1\n", "line 13: frame 1 follows frame 2"),
        ("\n2\n", "\n2x\n", "line 8: bone '2x' has no numbers"),
        ("\n1\n", "\n", "line 4: a frame number must come before 'root 0 1"),
    ],
)
def test_malformed_motions_are_refused_with_the_line(write, old, new, message):
    path = write("a.amc", AMC.replace(old, new, 1))
    assert path.read_bytes() != AMC.encode("latin-1")
    with pytest.raises(ValueError, match=rf"a\.amc, {message}"):
        read_amc(path)


def test_every_truncation_is_detected_except_between_frames(write):
    """From the second frame on only the end of a frame can be taken for the end of the file."""
    read = {}
    for end in range(AMC.index("\n2\n") + 2, len(AMC) + 1):
        path = write("a.amc", AMC[:end])
        try:
            read[end] = read_amc(path).X
        except ValueError as error:
            assert "a.amc, line" in str(error)  # noqa: PT017
    assert list(read) == [AMC.index("3\nroot"), len(AMC)]
    for found, frames in zip(read.values(), (2, 3), strict=True):
        np.testing.assert_array_equal(found, X[:frames])


def test_with_a_skeleton_a_truncated_first_frame_is_detected(write):
    skeleton = read_asf(write("a.asf", ASF))
    path = write("a.amc", AMC[: AMC.index("ltibia 10")])
    assert read_amc(path).X.shape == (1, 9)
    with pytest.raises(ValueError, match="bone 'ltibia' has no numbers in the frames"):
        read_amc(path, skeleton=skeleton)


@pytest.mark.parametrize("text", ["", "# nothing\n", ":DEGREES\n", "\n\n"])
def test_a_file_without_frames_is_refused(write, text):
    with pytest.raises(ValueError, match="the file has no frame"):
        read_amc(write("a.amc", text))


def test_binary_files_are_refused(write):
    with pytest.raises(ValueError, match="line 1"):
        read_amc(write("a.amc", "MATLAB 5.0\x00\xff\xfe\n\x01"))
    with pytest.raises(ValueError, match=r"is this an ASF file\?"):
        read_asf(write("a.asf", "MATLAB 5.0\x00\xff\xfe\n"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dof rx\n", "dof rx ry\n", "'ltibia' has 1 numbers in the frames and 2 channels"),
        ("name ltibia", "name rtibia", "'ltibia' has 1 numbers in the frames and no channels"),
        ("     axis 0 0 0  XYZ", "     dof rx", "'lhipjoint' has no numbers in the frames and 1"),
    ],
)
def test_motions_of_other_skeletons_are_refused(write, old, new, message):
    skeleton = write("a.asf", ASF.replace(old, new, 1))
    with pytest.raises(ValueError, match=f"does not fit the skeleton: bone {message}"):
        read_amc(write("a.amc", AMC), skeleton=skeleton)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dof rx ry rz", "dof rx ry qz", "line 22: channels must be some of"),
        ("dof rx ry rz", "dof rx ry ry", "line 22: channels must be some of .* each once"),
        ("order TX TY TZ RX RY RZ", "order", "line 8: channels must be some of"),
        ("     name lFemur\n", "", "line 25: the bone that ends here has not begun or has no name"),
        ("name lFemur", "name ltibia", "line 31: bone 'ltibia' already exists"),
        ("  end\n  begin\n     id 2", "  begin\n     id 2", "line 18: a bone begins before"),
        ("  end\n:hierarchy", ":hierarchy", "line 31: section :hierarchy begins before"),
        ("   order TX TY TZ RX RY RZ\n", "", "no order in :root"),
        (":bonedata", ":bones", "no bone in :bonedata"),
    ],
)
def test_malformed_skeletons_are_refused_with_the_line(write, old, new, message):
    with pytest.raises(ValueError, match=message):
        read_asf(write("a.asf", ASF.replace(old, new, 1)))


def test_a_skeleton_cut_off_in_a_bone_is_refused(write):
    cut = ASF.index("     limits (-10.0")
    with pytest.raises(ValueError, match=r"a\.asf, line 29: the file ends before the bone does"):
        read_asf(write("a.asf", ASF[:cut]))


def test_a_real_file(data_folder):
    motion = read_amc(data_folder / "cmu_mocap_02_01.amc")
    assert motion.X.shape == (343, 62)
    assert motion.X[0, :3].tolist() == [10.4194, 16.7048, -30.1003]
    assert motion.X[-1, -1] == -24.1466
    assert motion.names[24] == "rclavicle_0"
