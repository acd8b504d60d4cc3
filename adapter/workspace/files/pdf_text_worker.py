"""Extract the text of a PDF page by page, as a job of `adapter.workspace.sandbox.bounded_worker`.

A page of 160 KB can unpack to millions of instructions, and take minutes and gigabytes to read with pypdf. This file
imports no module of the package.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pypdf

_EMPTY_TABLE = b"\nstartxref\n0\n%%EOF\n"
"""Makes pypdf search for the objects of a file without a cross-reference table, instead of rejecting the file."""


def run(data: bytes) -> Iterator[int | str]:
    """Yield the number of pages, then the text of each page."""
    data += b"" if b"startxref" in data else _EMPTY_TABLE
    reader = pypdf.PdfReader(io.BytesIO(data))
    yield len(reader.pages)
    for page in reader.pages:
        yield page.extract_text()
