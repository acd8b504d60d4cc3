"""Files that are no text: recognised by their first bytes, given as they are or as the text in them."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
from importlib.util import find_spec

from adapter.core.errors import ToolError
from adapter.tools.operations import MediaKind
from adapter.workspace.files import pdf_pages

MAX_MEDIA_BYTES = 10_000_000
"""Of an image, sound or video that is given to the model."""
HEAD_BYTES = 1_000_000
"""In which the size of an image is looked for: a JPEG may carry a preview before it."""
MAX_PDF_BYTES = 50_000_000
"""Of a PDF file that is read."""
PDF_SECONDS = 20.0
"""Of processor time for the text of a PDF file; twice as long by the clock."""
PDF_MEMORY = 200 * 1024 * 1024
"""Of the process that reads a PDF file."""

_SIGNATURES: tuple[tuple[bytes, int, MediaKind, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", 0, "image", "image/png"),
    (b"\xff\xd8\xff", 0, "image", "image/jpeg"),
    (b"GIF8", 0, "image", "image/gif"),
    (b"WEBP", 8, "image", "image/webp"),
    (b"BM", 0, "image", "image/bmp"),
    (b"II*\0", 0, "image", "image/tiff"),
    (b"MM\0*", 0, "image", "image/tiff"),
    (b"\0\0\1\0", 0, "image", "image/x-icon"),
    (b"ftypavif", 4, "image", "image/avif"),
    (b"ftyphei", 4, "image", "image/heic"),
    (b"%PDF-", 0, "pdf", "application/pdf"),
    (b"WAVE", 8, "audio", "audio/wav"),
    (b"ID3", 0, "audio", "audio/mpeg"),
    (b"\xff\xfb", 0, "audio", "audio/mpeg"),
    (b"\xff\xf3", 0, "audio", "audio/mpeg"),
    (b"fLaC", 0, "audio", "audio/flac"),
    (b"OggS", 0, "audio", "audio/ogg"),
    (b"ftypM4A", 4, "audio", "audio/mp4"),
    (b"AVI ", 8, "video", "video/x-msvideo"),
    (b"ftyp", 4, "video", "video/mp4"),
    (b"\x1a\x45\xdf\xa3", 0, "video", "video/webm"),
    (b"\0\0\1\xba", 0, "video", "video/mpeg"),
)
"""Bytes, where they stand, and what they mean; the first that fits decides."""

_NAMES: dict[MediaKind, str] = {"image": "an image", "pdf": "a PDF", "audio": "sound", "video": "a video"}
_NEXT: dict[MediaKind, str] = {
    "image": "ask the user what it shows, or use a program on it",
    "pdf": "use a program such as pdftotext on it",
    "audio": "ask the user what it says, or use a program on it",
    "video": "ask the user what it shows, or use a program on it",
}

_DAMAGE = (ArithmeticError, struct.error, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""What damaged files make imagesize raise."""


def detect_media_type(head: bytes) -> tuple[MediaKind, str] | None:
    """Kind and MIME type by the first bytes of a file; None for text and for what is not known."""
    for signature, position, kind, mime in _SIGNATURES:
        if head.startswith(signature, position) and (kind == "pdf" or not head.isascii() or b"\0" in head):
            return kind, mime
    return None


def described(mime: str, size: int, head: bytes) -> str:
    """``image/png, 640x480 pixels, 1234 bytes``; the pixels where the beginning of the file tells them."""
    width, height = _pixels(head) if mime.startswith("image/") else (0, 0)
    pixels = f", {width}x{height} pixels" if width > 0 and height > 0 else ""
    return f"{mime}{pixels}, {size} bytes"


def refusal(shown: str, kind: MediaKind, mime: str, size: int, head: bytes) -> ToolError:
    cannot = "see" if kind == "image" else "take"
    return ToolError(
        f"{shown} is {_NAMES[kind]} ({described(mime, size, head)}), which this model cannot {cannot}; {_NEXT[kind]}"
    )


def _pixels(head: bytes) -> tuple[int, int]:
    import imagesize

    try:
        width, height = imagesize.get(io.BytesIO(head))
    except _DAMAGE:
        return 0, 0
    return int(width), int(height)


def pdf_text(data: bytes, shown: str) -> tuple[str, tuple[str, ...]]:
    """The text of a PDF, each page under a line with its number, and notes. Raises ToolError when there is none.

    It is read in a process of its own, which has `PDF_SECONDS` and `PDF_MEMORY`: what was read until then is given.
    """
    if find_spec("pypdf") is None:
        raise ToolError(
            f"{shown} is a PDF; its text can be read when pypdf is installed (pip install 'toolcall-adapter[pdf]'). "
            f"Until then {_NEXT['pdf']}"
        )
    texts, total, end = _pages(data)
    pages = [f"--- page {number} of {total} ---\n{text.strip()}\n" for number, text in enumerate(texts, 1)]
    if end and not texts:
        raise ToolError(f"{shown} is a PDF that cannot be read ({end}); {_NEXT['pdf']}")
    if not any(text.strip() for text in texts):
        raise ToolError(f"{shown} is a PDF without text ({len(pages)} pages), probably scanned; use OCR on it")
    return "\n".join(pages), (f"only {len(pages)} of {total} pages were read: {end}",) if end else ()


def _pages(data: bytes) -> tuple[list[str], int, str]:
    """The texts of the pages, how many there are, and why they are not all read, if they are not."""
    words = [sys.executable, "-I", pdf_pages.__file__, f"{PDF_SECONDS:.0f}", str(PDF_MEMORY)]
    try:
        done = subprocess.run(words, input=data, capture_output=True, timeout=2 * PDF_SECONDS, check=False)
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    except OSError as error:
        return [], 0, error.strerror or str(error)
    whole, _, _ = output.rpartition(b"\n")  # the last line may be cut off
    said = [json.loads(line) for line in whole.splitlines()]
    total = next((each["total"] for each in said if "total" in each), 0)
    end = next((each["end"] for each in said if "end" in each), f"it takes more than {PDF_SECONDS:g} s")
    return [each["text"] for each in said if "text" in each], total, end
