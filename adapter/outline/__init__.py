"""Outlines: the declarations of a source file with their lines.

A language is one table in languages.toml. Parsing needs the grammars of the extra ``index``, which are imported on
first use.
"""

__all__ = ["extractor", "formatter", "language", "languages", "syntax"]
