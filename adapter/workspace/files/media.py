"""Detect the type of media files, describe them, and extract the text of PDFs."""

from __future__ import annotations

import io
import struct
from importlib.util import find_spec
from pathlib import Path

from adapter.core.errors import ToolError
from adapter.core.install_advice import build_install_command
from adapter.tools.operations import MediaKind
from adapter.workspace.sandbox.bounded_worker import run_bounded

MAX_MEDIA_BYTES = 10_000_000
"""Maximum size of an image, audio or video file passed to the model, in bytes."""
HEAD_BYTES = 1_000_000
"""Number of bytes searched for an image's dimensions. In a JPEG, a preview may precede them."""
MAX_PDF_BYTES = 50_000_000
"""Maximum size of a PDF file, in bytes."""
PDF_SECONDS = 20.0
"""Maximum processor time to extract the text of a PDF, in seconds. The maximum wall time is twice as long."""
PDF_MEMORY = 200 * 1024 * 1024
"""Maximum memory of the process that reads a PDF, in bytes."""

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
"""Signature, its offset in the file, kind and MIME type. The first match decides."""

_NAMES: dict[MediaKind, str] = {"image": "an image", "pdf": "a PDF", "audio": "audio", "video": "a video"}
_NEXT: dict[MediaKind, str] = {
    "image": "ask the user to describe it, or use a program on it",
    "pdf": "use a program such as pdftotext on it",
    "audio": "ask the user for its content, or use a program on it",
    "video": "ask the user to describe it, or use a program on it",
}

_DAMAGE = (ArithmeticError, struct.error, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)
"""Exceptions that imagesize raises for damaged files."""


def detect_media_type(head: bytes) -> tuple[MediaKind, str] | None:
    """Return the kind and MIME type of a file, judging by its first bytes, or None for text and unknown types."""
    for signature, position, kind, mime in _SIGNATURES:
        if head.startswith(signature, position) and (kind == "pdf" or not head.isascii() or b"\0" in head):
            return kind, mime
    return None


def describe_media(mime: str, size: int, head: bytes) -> str:
    """Return a description like ``image/png, 640x480 pixels, 1234 bytes``, without pixels if ``head`` lacks them."""
    width, height = _read_pixels(head) if mime.startswith("image/") else (0, 0)
    pixels = f", {width}x{height} pixels" if width > 0 and height > 0 else ""
    return f"{mime}{pixels}, {size} bytes"


def build_refusal(display_path: str, kind: MediaKind, mime: str, size: int, head: bytes) -> ToolError:
    cannot = "see" if kind == "image" else "process"
    return ToolError(
        f"{display_path} is {_NAMES[kind]} ({describe_media(mime, size, head)}), which this model cannot {cannot}; "
        f"{_NEXT[kind]}"
    )


def _read_pixels(head: bytes) -> tuple[int, int]:
    import imagesize

    try:
        width, height = imagesize.get(io.BytesIO(head))
    except _DAMAGE:
        return 0, 0
    return int(width), int(height)


def read_pdf_text(data: bytes, display_path: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a PDF, each page under a line with its number, and notes. Raises ToolError if it has no text.

    A separate process reads the PDF. If it exceeds `PDF_SECONDS` or `PDF_MEMORY`, the pages read by then are returned.
    """
    if find_spec("pypdf") is None:
        raise ToolError(
            f"{display_path} is a PDF; reading its text requires pypdf ({build_install_command('pdf')}). "
            f"Until it is installed, {_NEXT['pdf']}"
        )
    job = str(Path(__file__).with_name("pdf_text_worker.py"))
    result = run_bounded(job, data, seconds=PDF_SECONDS, max_bytes=PDF_MEMORY)
    (total, *texts), end = result.values or (0,), result.stop_reason
    pages = [f"--- page {number} of {total} ---\n{text.strip()}\n" for number, text in enumerate(texts, 1)]
    if end and not texts:
        raise ToolError(f"{display_path} is a PDF that cannot be read ({end}); {_NEXT['pdf']}")
    if not any(text.strip() for text in texts):
        raise ToolError(f"{display_path} is a PDF without text ({len(pages)} pages), probably scanned; use OCR on it")
    return "\n".join(pages), (f"only {len(pages)} of {total} pages were read: {end}",) if end else ()
