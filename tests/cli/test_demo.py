def test_picture_and_table(hirank, tmp_path):
    done = hirank("demo", "--images", 60, "--picture", "d.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hirank" in done.stdout
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
