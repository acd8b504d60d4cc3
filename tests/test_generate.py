"""The generated pages, tables and data files are up to date."""

from tests.generate import ROOT, outdated


def test_generated_files_are_up_to_date():
    """If this fails, run `python -m tests.generate`."""
    assert [str(file.relative_to(ROOT)) for file in outdated()] == []
