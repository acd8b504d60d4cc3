"""Files that are no text: recognised by their first bytes, given as they are or as the text in them."""

from __future__ import annotations

import io
import struct
import time

from adapter.errors import ToolError
from adapter.operations import MediaKind

MAX_MEDIA_BYTES = 10_000_000
"""Of an image, sound or video that is given to the model."""
HEAD_BYTES = 1_000_000
"""In which the size of an image is looked for: a JPEG may carry a preview before it."""
MAX_PDF_BYTES = 50_000_000
"""Of a PDF file that is read."""
PDF_SECONDS = 20.0
"""For the text of a PDF file."""

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
"""What damaged files make pypdf and imagesize raise, beside errors of their own."""


def recognise(head: bytes) -> tuple[MediaKind, str] | None:
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
    """The text of a PDF, each page under a line with its number, and notes. Raises ToolError when there is none."""
    try:
        import pypdf
    except ImportError:
        raise ToolError(
            f"{shown} is a PDF; its text can be read when pypdf is installed (pip install 'toolcall-adapter[pdf]'). "
            f"Until then {_NEXT['pdf']}"
        ) from None
    deadline = time.monotonic() + PDF_SECONDS
    pages: list[str] = []
    notes: tuple[str, ...] = ()
    has_text = False
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        total = len(reader.pages)
        for number, page in enumerate(reader.pages, 1):
            if time.monotonic() > deadline:
                notes = (f"only {number - 1} of {total} pages were read: the limit is {PDF_SECONDS:g} s",)
                break
            text = page.extract_text()
            has_text = has_text or bool(text.strip())
            pages.append(f"--- page {number} of {total} ---\n{text.strip()}\n")
    except (pypdf.errors.PyPdfError, *_DAMAGE) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ToolError(f"{shown} is a PDF that cannot be read ({reason}); {_NEXT['pdf']}") from error
    if not has_text:
        raise ToolError(f"{shown} is a PDF without text ({len(pages)} pages), probably scanned; use OCR on it")
    return "\n".join(pages), notes
