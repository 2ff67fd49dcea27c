import os
import stat

import pytest

from hirank._atomic import replace_file


def write(path, meanwhile=lambda: None, **options):
    with replace_file(path, **options) as file:
        file.write(b"new")
        meanwhile()


def interrupt():
    raise KeyboardInterrupt


def test_the_old_file_stays_until_the_block_ends(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    with replace_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"

    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_leaves_everything_as_it_was(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    with pytest.raises(KeyboardInterrupt):
        write(path, meanwhile=interrupt)

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "a", tmp_path / "link"
    path.touch()
    path.chmod(0o640)
    link.symlink_to(path)

    write(link)

    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_name_of_the_maximal_length_can_be_written(tmp_path):
    path = tmp_path / ("a" * 255)

    write(path)

    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_file_created_in_the_meantime_is_kept_without_overwrite(
    tmp_path, monkeypatch, hard_links
):
    def refuse(*_):
        raise PermissionError("this file system has no hard links")

    if not hard_links:
        monkeypatch.setattr(os, "link", refuse)
    write(tmp_path / "a", overwrite=False)
    other = tmp_path / "b"
    with pytest.raises(FileExistsError):
        write(other, overwrite=False, meanwhile=lambda: other.write_bytes(b"of another process"))

    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "b").read_bytes() == b"of another process"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_temporary_files_of_killed_processes_are_removed_and_those_in_use_kept(tmp_path):
    path, left = tmp_path / "a", tmp_path / ".a.0123456789abcdef.tmp"
    others = [tmp_path / ".a.tmp", tmp_path / ".b.0123456789abcdef.tmp"]
    for file in (left, *others):
        file.touch()

    with replace_file(path) as first:
        write(path)  # by another process, in between
        first.write(b"first")

    assert path.read_bytes() == b"first"
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", None)  # changing it would affect other threads
    path, plain = tmp_path / "a", tmp_path / "b"
    plain.touch()

    write(path)

    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_private_file_is_private_while_it_is_replaced(tmp_path):
    path = tmp_path / "a"
    path.touch(mode=0o600)

    with replace_file(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
