"""The text of a PDF, a page a line, as a program of its own: ``python -I pdf_pages.py SECONDS BYTES < file.pdf``.

A page of 160 KB can unpack to millions of instructions, which take pypdf minutes and
gigabytes. So memory and processor time are limited here, and whoever started it reads
what came until then. Each line is JSON: ``{"total": 2}``, then ``{"text": ...}`` for
each page, at last ``{"end": ""}`` or, of a file that cannot be read, ``{"end": reason}``.
Nothing of the package is imported.
"""

from __future__ import annotations

import io
import json
import sys


def main() -> None:
    seconds, most = int(sys.argv[1]), int(sys.argv[2])
    import pypdf

    _limit(seconds, most)
    try:
        reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        _say(total=len(reader.pages))
        for page in reader.pages:
            _say(text=page.extract_text())
        _say(end="")
    except MemoryError:
        _say(end="it takes too much memory")
    except Exception as error:  # noqa: BLE001 - damaged files make pypdf raise nearly anything
        _say(end=f"{type(error).__name__}: {error}"[:500])


def _limit(seconds: int, most: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: who started this ends it by the clock
        return
    limits = {resource.RLIMIT_CPU: seconds}
    if sys.platform == "linux":
        limits[resource.RLIMIT_DATA] = most
    for kind, wanted in limits.items():
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def _say(**said: object) -> None:
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
