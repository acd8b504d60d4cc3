"""Extract the text of a PDF page by page, as a separate program: ``python -I pdf_pages.py SECONDS BYTES < file.pdf``.

A page of 160 KB can unpack to millions of instructions, for which pypdf needs minutes and gigabytes. So this program
limits its memory and processor time, and the parent process uses the pages printed by then. Each output line is JSON:
``{"total": 2}``, then ``{"text": ...}`` for each page, and finally ``{"end": ""}`` or, for an unreadable file,
``{"end": reason}``. This file imports no module of the package.
"""

from __future__ import annotations

import io
import json
import sys


def main() -> None:
    seconds, max_bytes = int(sys.argv[1]), int(sys.argv[2])
    import pypdf

    _limit(seconds, max_bytes)
    try:
        reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        _write(total=len(reader.pages))
        for page in reader.pages:
            _write(text=page.extract_text())
        _write(end="")
    except MemoryError:
        _write(end="it needs too much memory")
    except Exception as error:  # noqa: BLE001 - damaged files make pypdf raise nearly anything
        _write(end=f"{type(error).__name__}: {error}"[:500])


def _limit(seconds: int, max_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent enforces a timeout
        return
    limits = {resource.RLIMIT_CPU: seconds}
    if sys.platform == "linux":
        limits[resource.RLIMIT_DATA] = max_bytes
    for kind, limit in limits.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _write(**message: object) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
