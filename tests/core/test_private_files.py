"""Files with conversations are private, also if they existed before."""

import os
import stat

import pytest

from adapter.core.private_files import open_private
from adapter.evaluation.run_log import RunLog
from tests.command_line import adapter


def mode_of(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.parametrize(("before", "after"), [(None, 0o600), (0o644, 0o600), (0o666, 0o600), (0o755, 0o700)])
def test_other_users_lose_their_rights(tmp_path, before, after):
    file = tmp_path / "file"
    if before is not None:
        file.write_text("kept")
        file.chmod(before)
    os.close(open_private(file, os.O_RDWR))
    assert mode_of(file) == after
    assert file.read_text() == ("" if before is None else "kept")


def test_devices_keep_their_modes():
    before = os.stat(os.devnull).st_mode
    os.close(open_private(os.devnull, os.O_WRONLY))
    assert os.stat(os.devnull).st_mode == before


def test_existing_pages_and_logs_become_private(tmp_path):
    page, log = tmp_path / "page.html", tmp_path / "log.jsonl"
    for file in (page, log):
        file.touch()
        file.chmod(0o644)
    RunLog(log, {"model": "m"}).close()
    assert mode_of(log) == 0o600
    done = adapter("run", "x", "--base-url", "http://127.0.0.1:9", "--record", page, cwd=tmp_path)
    assert done.returncode == 3
    assert mode_of(page) == 0o600
