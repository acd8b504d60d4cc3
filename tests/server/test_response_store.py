"""The response store: limits of size and age, in memory and in a file."""

from __future__ import annotations

import sqlite3
import threading
from typing import Any

import pytest

from adapter.core.errors import UsageError
from adapter.core.text.redaction import Redactor
from adapter.server import response_store
from adapter.server.response_store import ResponseStore, StoreError


def answer(number: int, previous: str | None = None, text: str = "Hi.") -> dict[str, Any]:
    said = {"type": "message", "id": f"msg_{number}", "content": text}
    return {"id": f"resp_{number}", "previous_response_id": previous, "output": [said]}


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


def test_full_store_evicts_oldest(clock):
    """Conversations that continued from evicted responses cannot be continued."""
    store = ResponseStore(max_bytes=20_000, now=lambda: clock[0])
    for number in range(40):
        clock[0] += 1
        store.save(answer(number, f"resp_{number - 1}" if number else None, "x" * 1_000), [])
    assert store.load_response("resp_0") is None
    assert store.load_response("resp_39") is not None
    assert store.load_history("resp_39") is None
    assert store.load_item("msg_0") is None
    kept = [number for number in range(40) if store.load_response(f"resp_{number}")]
    assert 5 < len(kept) < 20
    store.close()


def test_used_entries_are_not_evicted(clock):
    store = ResponseStore(max_age_s=10, now=lambda: clock[0])
    store.save(answer(1), [])
    store.save(answer(2), [])
    for _ in range(4):
        clock[0] += 4
        assert store.load_history("resp_1")
        store.save(answer(3), [])
    assert store.load_response("resp_2") is None
    assert store.load_response("resp_1")
    store.close()


def test_oversized_response_is_not_stored():
    store = ResponseStore(max_bytes=1_000)
    store.save(answer(1, text="x" * 2_000), [])
    assert store.load_response("resp_1") is None
    store.close()


def test_cyclic_history_ends():
    """Generated ids are random, but a file may contain a cycle."""
    store = ResponseStore()
    store.save(answer(1, "resp_2"), [{"role": "user", "content": "a"}])
    store.save(answer(2, "resp_1"), [])
    assert len(store.load_history("resp_2") or ()) == 3
    store.close()


def test_store_is_thread_safe(tmp_path):
    """A saved response is visible to the next reader."""
    store = ResponseStore(tmp_path / "a.db")

    def keep(start: int) -> None:
        for number in range(start, start + 20):
            store.save_soon(answer(number), [{"role": "user", "content": str(number)}])
            assert store.load_response(f"resp_{number}") is not None

    threads = [threading.Thread(target=keep, args=(100 * each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(
        store.load_response(f"resp_{100 * each + number}") is not None for each in range(4) for number in range(20)
    )
    store.close()


def test_file_has_no_credentials(tmp_path):
    """Credentials of the environment or with a known pattern; a store in memory is unchanged."""
    secrets = Redactor({"DEPLOY_TOKEN": "tralala-17"}, ["ours-4711"])
    for file, is_there in ((tmp_path / "a.db", False), (None, True)):
        store = ResponseStore(file, secrets)
        store.save(answer(1), [{"role": "user", "content": "tralala-17 and ours-4711"}])
        assert ("tralala-17" in str(store.load_input_items("resp_1"))) is is_there
        assert ("ours-4711" in str(store.load_input_items("resp_1"))) is is_there
        store.close()


def test_foreign_file_is_rejected(tmp_path):
    """Not a database, a database of another version, an unwritable path."""
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("Not a database, but longer than the head of one. " * 40)
    tables = sqlite3.connect(other)
    tables.executescript("PRAGMA user_version = 7; CREATE TABLE a (b);")
    tables.close()
    for file in (text, other, tmp_path / "no" / "such.db"):
        with pytest.raises(UsageError, match="Choose another --store"):
            ResponseStore(file)
    assert text.read_text().startswith("Not a database")


def test_id_with_surrogate_is_stored():
    store = ResponseStore()
    store.save_soon(answer(1), [{"role": "user", "content": "\ud800", "id": "\ud800"}])
    assert store.load_input_items("resp_1") == [
        {"type": "message", "role": "user", "content": "\ud800", "id": "\ud800"}
    ]
    assert store.load_item("\ud800") == store.load_item("?")
    assert store.load_history("resp_\ud800") is None
    store.close()


def test_full_disk_is_logged(tmp_path, caplog):
    store = ResponseStore(tmp_path / "a.db")
    store._tables.execute("DROP TABLE items")
    store.save_soon(answer(1), [])
    assert store.load_conversation("conv_1") is None
    assert "was not stored" in caplog.text
    store.close()


def test_database_of_another_program_is_left_alone(tmp_path):
    """It gets no tables, even with our version number."""
    for number, script in enumerate(
        (
            "CREATE TABLE mine (x)",
            "CREATE TABLE holders (x); PRAGMA user_version = 1",
            "PRAGMA application_id = 77",
            "CREATE TABLE holders (x); CREATE TABLE items (x); PRAGMA application_id = 77; PRAGMA user_version = 1",
        )
    ):
        file = tmp_path / f"{number}.db"
        with sqlite3.connect(file) as other:
            other.executescript(script)
            before = list(other.execute("SELECT name FROM sqlite_master"))
        with pytest.raises(UsageError, match="belongs to another program"):
            ResponseStore(file)
        assert list(sqlite3.connect(file).execute("SELECT name FROM sqlite_master")) == before


def test_store_of_an_earlier_release_is_used(tmp_path):
    """It has our tables, and no application id."""
    ResponseStore(tmp_path / "s.db").close()
    with sqlite3.connect(tmp_path / "s.db") as tables:
        tables.execute("PRAGMA application_id = 0")
    ResponseStore(tmp_path / "s.db").close()


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o660, 0o600])
def test_store_file_is_private(tmp_path, mode):
    file = tmp_path / "s.db"
    file.touch()
    file.chmod(mode)
    ResponseStore(file).close()
    assert file.stat().st_mode & 0o777 == 0o600


def test_locked_store_is_an_error_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(response_store, "LOCK_WAIT_S", 0.01)
    store = ResponseStore(tmp_path / "s.db")
    store.save(answer(1), [])
    with sqlite3.connect(tmp_path / "s.db") as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in (
            lambda: store.create_conversation({}, []),
            lambda: store.load_history("resp_1"),
            lambda: store.delete("resp_1", "resp_"),
        ):
            with pytest.raises(StoreError, match="locked"):
                use()
        store.save_soon(answer(2), [])
        other.rollback()
    assert store.load_response("resp_1") is not None
    store.close()


def test_store_may_be_closed_by_its_own_thread():
    """The garbage collector closes the store of a client, in any thread."""
    store = ResponseStore()
    store._writer.submit(store.close).result(10)
    store.close()
