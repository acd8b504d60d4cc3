"""New characters in files of unknown encoding, and UTF-16 files without a byte order mark."""

import pytest

from adapter import Workspace
from adapter.core.errors import ToolError, UsageError
from adapter.workspace.changes.encoding_detection import detect_unmarked_utf16, list_plausible_encodings
from adapter.workspace.changes.text_codec import decode, encode, is_binary
from tests.processor_time import processor_limit

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
def test_guessed_encoding_rejects_new_characters(workspace, directory, text, encoding, new):
    """They would have other bytes in another encoding. No byte of the file changes."""
    before = text.encode(encoding)
    (directory / "f").write_bytes(before)
    result = edit(workspace, new)
    assert not result.ok
    assert "Nothing was changed" in result.content or "was not changed" in result.content
    assert (directory / "f").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "encoding"), [(RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (CAFE, "latin-1"), (CHINESE, "gbk")]
)
def test_ascii_is_written_in_any_encoding(workspace, directory, text, encoding):
    """All other bytes stay."""
    (directory / "f").write_bytes(text.encode(encoding))
    assert edit(workspace, "port = 9000").ok
    assert (directory / "f").read_bytes() == text.replace("port = 1", "port = 9000").encode(encoding)


COMMENTS = {
    "Größe": "latin-1",
    "français: œuvre, Noël": "cp1252",
    "año, niñez": "latin-1",
    "coração, você": "latin-1",
    "città, perché, virtù": "latin-1",
    "smörgåsbord": "latin-1",
    "It’s “déjà vu” —": "cp1252",
    "© Zoë, 20 °C": "latin-1",
    "Łukasz, żółw": "cp1250",
    "žluťoučký kůň": "iso8859-2",
    "Ayarları oku, şifreyi çöz": "cp1254",
    "זהו קובץ בדיקה שכתוב בעברית": "cp1255",
    "מחזיר את הערך הראשון ברשימה": "cp1255",
    "Ошибка: файл не найден": "cp1251",
    "ошибка при чтении": "cp1251",
    "Въведете първия ъгъл": "cp1251",
    "Проверка данных": "koi8-r",
    "Введите число": "cp866",
    "Σφάλμα: το αρχείο": "cp1253",
    "读取文件内容": "gb18030",
    "獲取使用者資訊": "big5",
    "設定ファイルを読む": "cp932",
    "データの接続": "euc_jp",
    "설정 파일을 읽는다": "cp949",
    "Déjà-vu: l'été": "mac-roman",
    "Länge überprüfen": "cp850",
}


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_is_enough_to_guess_the_encoding(workspace, directory, comment):
    """Then the model reads the right words, and its edits of these words match."""
    text = "port = 1\n" * 9_000 + f"# {comment}\n"
    (directory / "f").write_bytes(text.encode(COMMENTS[comment]))
    assert decode(text.encode(COMMENTS[comment]), "f").text == text
    result = workspace.run("apply_edit", {"path": "f", "old_text": f"# {comment}", "new_text": "# none"})
    assert result.ok, result.content


@pytest.mark.parametrize("comment", COMMENTS)
def test_the_guess_reads_a_few_kilobytes(comment):
    """A file of one line is read from its first word outside ASCII on."""
    text = "port=1;" * 9_000 + f"/* {comment} */" + f"'{comment}'" * 5_000
    with processor_limit(5):
        assert decode(text.encode(COMMENTS[comment]), "f").text == text


def test_existing_character_keeps_its_bytes(workspace, directory):
    """Text that the model copies from the file has the file's bytes, in any encoding."""
    before = CAFE.encode("latin-1")
    (directory / "f").write_bytes(before)
    shown = decode(before, "f").text.split("\n")[0]
    result = workspace.run("apply_edit", {"path": "f", "old_text": shown, "new_text": f"{shown} and {shown[2:]}"})
    assert result.ok, result.content
    line = before.split(b"\n")[0]
    assert (directory / "f").read_bytes() == before.replace(line, line + b" and " + line[2:])


def test_refusal_names_encodings_and_next_step(workspace, directory):
    """The user can name the right one."""
    (directory / "f").write_bytes(RUSSIAN.encode("koi8-r"))
    content = edit(workspace, "port = 1  # \u042e").content
    assert "U+042E (\u042e) is new in f, and its bytes there are ambiguous" in content
    assert 'ask the user to name the encoding (encoding="...", --encoding)' in content


@pytest.mark.parametrize(("text", "encoding"), [(RUSSIAN, "koi8-r"), (RUSSIAN, "cp1251"), (CHINESE, "gb18030")])
def test_chosen_encoding_is_used(tmp_path, directory, text, encoding):
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


def test_chosen_encoding_is_ignored_if_it_does_not_decode(tmp_path, directory):
    """The encoding is then guessed."""
    before = b"caf\xe9\x81\nport = 1\n"
    (directory / "f").write_bytes(before)
    with Workspace(directory, approve="yolo", state=tmp_path / "state", encoding="euc_jp") as workspace:
        assert edit(workspace, "port = 2").ok
        assert not edit(workspace, "port = \u3042").ok
    assert (directory / "f").read_bytes() == before.replace(b"1", b"2")


@pytest.mark.parametrize("name", ["klingon", "utf-16", "rot13", "cp037", "hex"])
def test_unknown_encoding_is_a_usage_error(tmp_path, name):
    """Also one that is not compatible with ASCII."""
    with pytest.raises(UsageError, match="unknown encoding"):
        Workspace(tmp_path, encoding=name)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_mark_is_detected(workspace, directory, encoding):
    """By the positions of its NULs. It is read, searched and edited as UTF-16."""
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
def test_data_with_other_nuls_is_binary(data):
    assert detect_unmarked_utf16(data) is None
    assert is_binary(data)
    with pytest.raises(ToolError, match="is a binary file"):
        decode(data, "f")


def test_plausible_encodings_round_trip():
    """One of them is the real one."""
    for encoding in ("koi8-r", "cp1251", "cp1252", "gb18030", "big5"):
        text = {"gb18030": CHINESE, "big5": "\u7aef\n", "cp1252": CAFE}.get(encoding, RUSSIAN)
        assert encoding in list_plausible_encodings(encode(text, encoding, "f"))
