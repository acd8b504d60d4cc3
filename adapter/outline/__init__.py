"""Outlines: a source file's declarations, with their line numbers.

Each language is a table in languages.toml. Parsing needs grammars, which the ``index`` extra installs and which are
imported on first use.
"""

__all__ = ["extractor", "formatter", "language", "languages", "syntax"]
