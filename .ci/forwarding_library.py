"""Writes bcryptprimitives.dll, which Wine 8 lacks and libraries made with Rust need: python forwarding_library.py FILE

Its only function, `ProcessPrng`, is `SystemFunction036` of advapi32, which also fills a buffer with random bytes. A
library that only forwards needs no code: a PE header, and a table of exports (PE Format, Microsoft Learn).
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

NAME, FUNCTION, TARGET = b"bcryptprimitives.dll\0", b"ProcessPrng\0", b"advapi32.SystemFunction036\0"
SECTION, FILE_ALIGNMENT, PAGE = 0x1000, 0x200, 0x1000


def library() -> bytes:
    name = SECTION + 50  # behind the directory, and tables of one address, name and ordinal
    function, target = name + len(NAME), name + len(NAME) + len(FUNCTION)
    directory = struct.pack("<2I2H7I", *[0] * 4, name, 1, 1, 1, SECTION + 40, SECTION + 44, SECTION + 48)
    exports = directory + struct.pack("<IIH", target, function, 0) + NAME + FUNCTION + TARGET
    coff = b"PE\0\0" + struct.pack("<2H3I2H", 0x8664, 1, 0, 0, 0, 240, 0x2022)  # x86-64, a DLL
    optional = struct.pack("<H2B5I", 0x20B, 0, 0, 0, FILE_ALIGNMENT, 0, 0, SECTION)
    optional += struct.pack("<Q2I6H", 0x180000000, PAGE, FILE_ALIGNMENT, 6, 0, 0, 0, 6, 0)
    optional += struct.pack("<4I2H", 0, SECTION + PAGE, FILE_ALIGNMENT, 0, 3, 0x160)
    optional += struct.pack("<4Q2I", *[0x100000, PAGE] * 2, 0, 16)
    directories = struct.pack("<2I", SECTION, len(exports)).ljust(16 * 8, b"\0")
    sections = b".edata\0\0" + struct.pack(
        "<6I2HI", len(exports), SECTION, FILE_ALIGNMENT, FILE_ALIGNMENT, *[0] * 4, 0x40000040
    )
    header = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + coff + optional + directories + sections
    return header.ljust(FILE_ALIGNMENT, b"\0") + exports.ljust(FILE_ALIGNMENT, b"\0")


Path(sys.argv[1]).write_bytes(library())
