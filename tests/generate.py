"""Write every generated page, table and data file, each by the test module that also checks it.

python -m tests.generate               write the files that are out of date
python -m tests.generate --check       name them instead, and exit with 1 if there are any
python -m tests.generate --pictures    also draw the pictures of the documentation; needs Chromium and its driver
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent


def updates() -> Iterator[tuple[Path, Callable[[str], str]]]:
    """Yield generated files, each with a function from its current text to the new one; several may update one page."""
    from tests import (
        test_checklist,
        test_commands_page,
        test_engines_page,
        test_examples,
        test_fields,
        test_limits,
        test_readme,
    )
    from tests.dialects import test_lazy_definitions
    from tests.evaluation.probe import test_shared_result
    from tests.parsing.formats import test_catalogue
    from tests.tools.operations import test_autorun_files

    yield test_lazy_definitions.FILE, lambda _: test_lazy_definitions.written()
    yield test_limits.PAGE, lambda _: test_limits.page()
    yield test_checklist.TABLE, lambda _: test_checklist.table()
    yield test_commands_page.PAGE, lambda _: test_commands_page.page()
    yield test_catalogue.README, test_catalogue.with_table
    yield test_autorun_files.SECURITY, test_autorun_files.with_table
    yield test_fields.PAGE, test_fields.with_tables
    yield test_shared_result.PAGE, test_shared_result.with_table
    yield test_engines_page.PAGE, test_engines_page.with_tables
    yield test_readme.README_FILE, test_readme.with_count
    for name, (page, _) in test_readme.TABLES.items():
        yield page, partial(test_readme.with_table, name=name)
    for page in test_examples.PAGES:
        yield page, test_examples.with_programs


def draw_pictures() -> Iterator[tuple[Path, bytes]]:
    """Yield the pictures of docs/. Pictures of the browser come last, because they need one."""
    from tests import chat_picture, drawings, picture, terminal_picture

    os.environ.pop("NO_COLOR", None)
    for name, drawing in drawings.DRAWINGS.items():
        yield drawings.FOLDER / f"{name}.svg", drawing.svg().encode()
    yield terminal_picture.PICTURE, terminal_picture.picture(terminal_picture.lines()).encode()
    yield chat_picture.PICTURE, chat_picture.picture().encode()
    for name, png in picture.pictures():
        yield picture.DOCS / f"{name}.png", png


def outdated() -> dict[Path, str]:
    """Return the files that are out of date, with their new text."""
    new: dict[Path, str] = {}
    for file, update in updates():
        new[file] = update(new.get(file, file.read_text(encoding="utf-8")))
    return {file: text for file, text in new.items() if file.read_text(encoding="utf-8") != text}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.generate", description="Write the generated files.")
    parser.add_argument("--check", action="store_true", help="only name the files that are out of date")
    parser.add_argument("--pictures", action="store_true", help="also draw the pictures of the documentation")
    options = parser.parse_args()

    new = {file: text.encode() for file, text in outdated().items()}
    if options.pictures and not options.check:
        new |= {file: picture for file, picture in draw_pictures() if file.read_bytes() != picture}
    for file, content in new.items():
        print(f"{'out of date:' if options.check else 'wrote'} {file.relative_to(ROOT)}")
        if not options.check:
            file.write_bytes(content)
    return 1 if options.check and new else 0


if __name__ == "__main__":
    sys.exit(main())
