"""Reading within limits of lines, characters and memory; directories, images and PDFs in place of text."""

import sys
import zlib
from typing import Any

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import ReadText
from adapter.workspace.files import media, read_file
from adapter.workspace.files.read_file import read_text

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def read(desk):
    """Read a file that must be text."""
    return lambda *arguments, **options: read_text(desk, ReadText(*arguments, **options))


def test_max_lines_limits_the_result(read, directory):
    """With a note."""
    (directory / "f").write_text("a\nb\nc\nd\n")
    whole = read("f", max_lines=4)
    assert (whole.text, whole.truncated) == ("a\nb\nc\nd\n", False)
    part = read("f", 2, max_lines=2)
    assert (part.text, part.start_line, part.end_line, part.total_lines, part.truncated) == ("b\nc\n", 2, 3, 4, True)
    assert not read("f", 2, 3, max_lines=2).truncated
    assert read("f", 1, 3, max_lines=2).truncated
    with pytest.raises(ToolError, match="at least 1 line, got 0"):
        read("f", max_lines=0)


def test_long_lines_are_cut_and_named(read, directory):
    """Line ends stay. The note is next to the text, not in it."""
    (directory / "f").write_bytes(b"abcdef\r\nabc\r\nabcdefgh")
    cut = read("f", max_line_characters=3)
    assert cut.text == "abc\r\nabc\r\nabc"
    assert cut.notes == ("lines 1, 3 were cut to 3 characters",)
    assert read("f", 2, 2, max_line_characters=3).notes == ()


def test_directory_is_listed_on_request(desk, directory):
    """Directories first, alphabetically without regard to case."""
    for name in ("b.txt", "A.txt", ".hidden"):
        (directory / name).touch()
    (directory / "z").mkdir()
    listing: Any = read_text(desk, ReadText(".", or_list=True))
    assert [entry.path for entry in listing.entries] == ["z", ".hidden", "A.txt", "b.txt"]
    with pytest.raises(ToolError, match="is a directory"):
        read_text(desk, ReadText("."))


@pytest.mark.parametrize(
    ("head", "kind", "mime"),
    [
        (PNG, "image", "image/png"),
        (b"\xff\xd8\xff\xe0", "image", "image/jpeg"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio", "audio/wav"),
        (b"\0\0\0\x20ftypisom", "video", "video/mp4"),
        (b"%PDF-1.7\n", "pdf", "application/pdf"),
    ],
)
def test_media_are_returned_if_model_accepts_them(desk, directory, head, kind, mime):
    """Their bytes are unchanged. Other models get a sentence."""
    (directory / "f").write_bytes(head)
    media: Any = read_text(desk, ReadText("f", media=frozenset({kind})))
    assert (media.kind, media.mime, media.data) == (kind, mime, head)
    if kind != "pdf":
        with pytest.raises(ToolError, match=f"{mime}.*this model cannot (?:see|process)"):
            read_text(desk, ReadText("f"))


def test_too_large_media_are_refused(desk, directory):
    """A message of 20 MB is useless."""
    with (directory / "f").open("wb") as file:
        file.write(PNG)
        file.truncate(20_000_000)
    with pytest.raises(ToolError, match="too large"):
        read_text(desk, ReadText("f", media=frozenset({"image"})))


def test_text_that_looks_like_media_is_text(read, directory):
    """A signature of plain letters is not enough."""
    (directory / "f").write_text("BM and 1234ftyp are words\n")
    assert read("f").total_lines == 1


def make_pdf(text):
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
    ]
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start


def test_pdf_text_is_read(read, directory):
    """By pages, in lines like any text."""
    (directory / "f.pdf").write_bytes(make_pdf("hello from a page"))
    assert read("f.pdf").text == "--- page 1 of 1 ---\nhello from a page\n"
    assert read("f.pdf", 2, 2).text == "hello from a page\n"


def test_pdf_without_a_table_of_objects_is_read(read, directory):
    """Hand-written PDFs lack it. Like viewers, the reader searches for objects."""
    pytest.importorskip("pypdf")
    whole = make_pdf("hello from a page")
    (directory / "f.pdf").write_bytes(whole[: whole.index(b"xref")] + b"trailer << /Root 1 0 R >>\n%%EOF")
    assert read("f.pdf").text == "--- page 1 of 1 ---\nhello from a page\n"


def test_pdf_without_text_or_reader_is_explained(desk, directory, monkeypatch):
    """It is scanned or damaged, or pypdf is missing."""
    (directory / "f.pdf").write_bytes(make_pdf(""))
    with pytest.raises(ToolError, match="without text"):
        read_text(desk, ReadText("f.pdf"))
    (directory / "f.pdf").write_bytes(b"%PDF-1.4\nnonsense")
    with pytest.raises(ToolError, match="cannot be read"):
        read_text(desk, ReadText("f.pdf"))
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ToolError, match=r"toolcall-adapter\[pdf\]"):
        read_text(desk, ReadText("f.pdf"))


def test_pdf_bomb_stays_within_limits(read, directory, monkeypatch):
    """The earlier pages are returned with a note. Memory and time are a separate process's."""
    bomb = zlib.compress(b"BT /F1 1 Tf (a) Tj ET\n" * 500_000, 9)
    stream = b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(bomb), bomb)
    whole = make_pdf("hello from a page")
    place = len(whole)
    objects = b"5 0 obj\n%s\nendobj\n" % stream
    second = place + len(objects)
    objects += b"6 0 obj\n<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << >> >> >>\nendobj\n"
    pages = place + len(objects)
    objects += b"2 0 obj\n<< /Type /Pages /Kids [3 0 R 6 0 R] /Count 2 >>\nendobj\n"
    entries = b"xref\n2 1\n%010d 00000 n \n5 2\n%010d 00000 n \n%010d 00000 n \n" % (pages, place, second)
    start = place + len(objects)
    before = whole.rsplit(b"startxref\n")[1].split(b"\n")[0]
    trailer = b"trailer << /Size 7 /Root 1 0 R /Prev %s >>\nstartxref\n%d\n%%%%EOF\n" % (before, start)
    (directory / "f.pdf").write_bytes(whole + objects + entries + trailer)
    monkeypatch.setattr(media, "PDF_MEMORY", 100 * 1024 * 1024)
    found = read("f.pdf")
    assert found.text == "--- page 1 of 2 ---\nhello from a page\n"
    assert found.notes in [
        ("only 1 of 2 pages were read: it needs too much memory",),
        ("only 1 of 2 pages were read: it takes more than 20 s",),  # on a busy machine that comes first
    ]


# ------------------------------------------------------------------- large files


@pytest.fixture
def large(read, directory, monkeypatch):
    """The reader with tiny limits, for which every file is large, and the reader of small files."""

    def large(data, *arguments, **options):
        (directory / "f").write_bytes(data)
        expected = read("f", *arguments, **options)
        with monkeypatch.context() as small:
            small.setattr(read_file, "MAX_TEXT_BYTES", len(data) - 1)
            found = read("f", *arguments, **options)
        return found, expected

    return large


@pytest.mark.parametrize(
    "data", [b"".join(b"line %d\n" % n for n in range(50)), b"a\r\nbb\rccc\n\n" * 9, "é€\n".encode() * 40]
)
@pytest.mark.parametrize("lines", [(1, 1), (1, 9), (5, 9), (20, 33), (36, 36)])
def test_ranges_of_large_and_small_files_agree(large, data, lines):
    """For any line ends."""
    found, expected = large(data, *lines)
    assert (found.text, found.start_line, found.end_line) == (expected.text, expected.start_line, expected.end_line)
    assert not found.truncated
    found, expected = large(data, lines[0], max_lines=2)
    assert (found.text, found.end_line, found.truncated) == (expected.text, expected.end_line, expected.truncated)
    found, expected = large(data, *lines, context_lines=2)
    assert found.text == expected.text


def test_invalid_requests_for_large_files_are_explained(desk, directory, monkeypatch):
    """With the number of lines. Whole files and binary files are also refused."""
    (directory / "f").write_bytes(b"x\n" * 100)
    monkeypatch.setattr(read_file, "MAX_TEXT_BYTES", 50)
    with pytest.raises(ToolError, match="beyond the end: f has 100 lines"):
        read_text(desk, ReadText("f", 101))
    with pytest.raises(ToolError, match="read a range of its lines"):
        read_text(desk, ReadText("f"))
    with pytest.raises(ToolError, match="before start_line"):
        read_text(desk, ReadText("f", 9, 8))
    (directory / "f").write_bytes(b"x\0\n" * 100)
    with pytest.raises(ToolError, match="not UTF-8 text"):
        read_text(desk, ReadText("f", 1, 2))


def test_skipping_lines_has_a_time_limit(desk, directory, monkeypatch):
    """The message names the line that was reached."""
    with (directory / "f").open("wb") as file:
        file.write(b"x\n" * 5_000)
        file.truncate(20 * 1024**3)
    monkeypatch.setattr(read_file, "SKIP_SECONDS", 0.1)
    with pytest.raises(ToolError, match="line 101000 is too far into the file: the first 5000 lines took"):
        read_text(desk, ReadText("f", 101_000, 101_001))


def test_first_lines_of_large_file_are_read(read, directory):
    """The file is sparse and has 20 GB. The total number of lines stays unknown."""
    with (directory / "f").open("wb") as file:
        file.write(b"x" * 9_999 + b"\n" + b"second\n" * 3)
        file.truncate(20 * 1024**3)
    found = read("f", 2, 3)
    assert (found.text, found.total_lines) == ("second\nsecond\n", None)
