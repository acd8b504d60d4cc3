"""The playground without a server: a page that runs the parser in the browser, with Pyodide.

The Python runtime (MPL-2.0) comes from the npm registry, and its hash is checked.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from adapter.recording.view.playground_page import render_playground_page

PYODIDE = "314.0.7"
SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
"""Version of Pyodide, and the hash of its package as the npm registry gives it."""
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
FOLDERS = ("core", "tools", "parsing", "prompting", "recording")
"""Folders of the package that the page needs."""
PACKAGE = Path(__file__).parent.parent / "adapter"


def site_files() -> dict[str, bytes]:
    """Return the files of the page by name. Raises RuntimeError if the runtime cannot be fetched."""
    files = {f"pyodide/{name}": content for name, content in _runtime().items()}
    page = render_playground_page(has_server=False).encode()
    return {"index.html": page, "adapter.zip": _package(), **files}


def _runtime() -> dict[str, bytes]:
    if shutil.which("npm") is None:
        raise RuntimeError("npm, which fetches the runtime, is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", f"pyodide@{PYODIDE}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        packed = next(Path(folder).glob("*.tgz"), None)
        if packed is None:
            raise RuntimeError(f"npm could not fetch pyodide {PYODIDE}: {done.stderr[-300:]}")
        content = packed.read_bytes()
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != SHA512:
        raise RuntimeError(f"the package of pyodide {PYODIDE} has another hash than expected")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {name: archive.extractfile(f"package/{name}") for name in RUNTIME}
        return {name: member.read() for name, member in members.items() if member is not None}


def _package() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in [
            PACKAGE / "__init__.py",
            *(file for name in FOLDERS for file in sorted((PACKAGE / name).rglob("*.py"))),
        ]:
            archive.write(path, path.relative_to(PACKAGE.parent))
    return written.getvalue()
