"""File locks, between open files of one process as between programs."""

import os

from adapter.core.file_lock import try_lock


def test_second_lock_fails_until_the_first_file_is_closed(tmp_path):
    """Neither changes the position of its file."""
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    first, second = (os.open(path, os.O_RDWR) for _ in range(2))
    os.lseek(second, 2, os.SEEK_SET)
    assert try_lock(first)
    assert not try_lock(second)
    os.close(first)
    assert try_lock(second)
    assert os.read(second, 9) == b"c"
    os.close(second)
