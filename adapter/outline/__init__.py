"""Outlines: what a source file declares, with the lines where it does.

A language is one table in `adapter.outline.languages`; reading needs the
grammars of the extra ``index``, which are imported when they are first used.
"""

__all__ = ["extractor", "formatter", "language", "syntax"]
