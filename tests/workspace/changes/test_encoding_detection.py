"""New characters in files whose encoding is not known, and files in UTF-16 that do not say so."""

import pytest

from adapter import Workspace
from adapter.core.errors import ToolError, UsageError
from adapter.workspace.changes.encoding_detection import plausible, unmarked_utf16
from adapter.workspace.changes.text_codec import decode, encode, is_binary

RUSSIAN = "# Настройки сервера\nport = 1\nhost = 2\n# Конец файла, больше ничего нет\n"
CAFE = "# caf\u00e9 na\u00efve\nport = 1\n"
CHINESE = "# \u7aef\u53e3\nport = 1\n"


@pytest.fixture
def workspace(tmp_path):
    with Workspace(tmp_path / "ws", approve="yolo", state=tmp_path / "state") as workspace:
        yield workspace


@pytest.fixture(autouse=True)
def directory(tmp_path):
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def edit(workspace, new):
    return workspace.run("apply_edit", {"path": "f", "old_text": "port = 1", "new_text": new})


@pytest.mark.parametrize(
    ("text", "encoding", "new"),
    [
        (RUSSIAN, "koi8-r", "port = 9000  # \u042e\u0429\u042a"),
        (RUSSIAN, "cp1251", "port = 9000  # \u042e\u0429\u042a"),
        (CAFE, "latin-1", "port = 9000  # \u0159"),
        (CAFE, "latin-1", "port = 9000  # \u20ac"),
        (CHINESE, "gbk", "port = 9000  # \ud55c"),
        (CHINESE, "gbk", "port = 9000  # \u00e9"),
    ],
)
def test_a_new_character_is_not_written_by_a_guess(workspace, directory, text, encoding, new):
    """It would be other bytes in another encoding; not one byte of the file changes."""
    before = text.encode(encoding)
    (directory / "f").write_bytes(before)
    result = edit(workspace, new)
    assert not result.ok
    assert "Nothing was changed" in result.content or "was not changed" in result.content
    assert (directory / "f").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "encoding"), [(RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (CAFE, "latin-1"), (CHINESE, "gbk")]
)
def test_ascii_is_written_whatever_the_encoding(workspace, directory, text, encoding):
    """Every other byte stays."""
    (directory / "f").write_bytes(text.encode(encoding))
    assert edit(workspace, "port = 9000").ok
    assert (directory / "f").read_bytes() == text.replace("port = 1", "port = 9000").encode(encoding)


def test_a_character_that_was_shown_keeps_its_bytes(workspace, directory):
    """What the model copies from the file is what the file has, whatever it is called."""
    before = CAFE.encode("latin-1")
    (directory / "f").write_bytes(before)
    shown = decode(before, "f").text.split("\n")[0]
    result = workspace.run("apply_edit", {"path": "f", "old_text": shown, "new_text": f"{shown} and {shown[2:]}"})
    assert result.ok, result.content
    line = before.split(b"\n")[0]
    assert (directory / "f").read_bytes() == before.replace(line, line + b" and " + line[2:])


def test_a_refusal_names_the_encodings_and_the_next_step(workspace, directory):
    """The user can name the right one."""
    (directory / "f").write_bytes(RUSSIAN.encode("koi8-r"))
    content = edit(workspace, "port = 1  # \u042e").content
    assert "U+042E (\u042e) is not in f yet, and what bytes it is there is not known" in content
    assert 'ask the user to name the encoding (encoding="...", --encoding)' in content


@pytest.mark.parametrize(("text", "encoding"), [(RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (CHINESE, "gb18030")])
def test_a_named_encoding_decides(tmp_path, directory, text, encoding):
    """The file is shown in it, and new characters are written in it."""
    (directory / "f").write_bytes(text.encode(encoding))
    (directory / "u").write_bytes("\u00e9 port = 1\n".encode())
    with Workspace(directory, approve="yolo", state=tmp_path / "state", encoding=encoding) as workspace:
        assert text.split("\n")[0] in workspace.run("read_file", {"path": "f"}).content
        result = edit(workspace, "port = 9000  # \u042e")
        assert result.ok, result.content
        assert workspace.run("apply_edit", {"path": "u", "old_text": "port", "new_text": "\u042e"}).ok
    after = text.replace("port = 1", "port = 9000  # \u042e")
    assert (directory / "f").read_bytes() == after.encode(encoding)
    assert (directory / "u").read_text(encoding="utf-8") == "\u00e9 \u042e = 1\n"  # UTF-8 is UTF-8


def test_an_encoding_that_does_not_fit_is_not_forced(tmp_path, directory):
    """A file that is something else is guessed as before."""
    before = b"caf\xe9\x81\nport = 1\n"
    (directory / "f").write_bytes(before)
    with Workspace(directory, approve="yolo", state=tmp_path / "state", encoding="euc_jp") as workspace:
        assert edit(workspace, "port = 2").ok
        assert not edit(workspace, "port = \u3042").ok
    assert (directory / "f").read_bytes() == before.replace(b"1", b"2")


@pytest.mark.parametrize("name", ["klingon", "utf-16", "rot13", "cp037", "hex"])
def test_an_unknown_encoding_is_the_users_error(tmp_path, name):
    """Also one in which ASCII is not ASCII."""
    with pytest.raises(UsageError, match="unknown encoding"):
        Workspace(tmp_path, encoding=name)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark_is_recognised(workspace, directory, encoding):
    """Where its NULs stand says so; it is read, searched and edited in itself."""
    text = "[server]\r\nport = 1\r\nname = \u0416\u00e9\r\n"
    (directory / "f").write_bytes(text.encode(encoding))
    assert "port = 1" in workspace.run("read_file", {"path": "f"}).content
    assert "port = 1" in workspace.run("grep_search", {"pattern": "port", "path": "."}).content
    result = edit(workspace, "port = 2\nhost = \u042e")
    assert result.ok, result.content
    after = text.replace("port = 1", "port = 2\r\nhost = \u042e")
    assert (directory / "f").read_bytes() == after.encode(encoding)


@pytest.mark.parametrize(
    "data",
    [
        b"hello\0",
        b"hello\0world\n",
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0",
        b"PK\x03\x04\x14\0\0\0\x08\0",
        b"\0" * 64,
        bytes(range(256)),
        b"a\0b\0",
        b"\x01\0\x02\0\x03\0\x04\0\x05\0",
    ],
)
def test_what_has_nuls_elsewhere_is_binary(data):
    """As before."""
    assert unmarked_utf16(data) is None
    assert is_binary(data)
    with pytest.raises(ToolError, match="is a binary file"):
        decode(data, "f")


def test_what_a_file_may_be_in_is_what_gives_its_bytes_back():
    """Among them the one that it is in."""
    for encoding in ("koi8-r", "cp1251", "cp1252", "gb18030", "big5"):
        text = {"gb18030": CHINESE, "big5": "\u7aef\n", "cp1252": CAFE}.get(encoding, RUSSIAN)
        assert encoding in plausible(encode(text, encoding, "f"))
