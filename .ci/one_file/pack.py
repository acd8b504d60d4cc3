"""Packs the folder that PyInstaller made into one file: python3 pack.py FOLDER OUTPUT

The output is launcher.sh, followed by the folder as an archive. The same files give the same output.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path


def pack(folder: Path, output: Path) -> None:
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_anonymize)
    content = buffer.getvalue()
    launcher = Path(__file__).with_name("launcher.sh").read_text(encoding="utf-8")
    launcher = launcher.replace("@IDENTITY@", hashlib.sha256(content).hexdigest()[:16])
    launcher = launcher.replace("@LINE@", str(launcher.count("\n") + 1))
    output.write_bytes(launcher.encode() + content)
    output.chmod(0o755)


def _anonymize(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    pack(*map(Path, sys.argv[1:]))
