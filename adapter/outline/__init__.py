"""Outlines: a source file's declarations, with their line numbers.

languages.toml defines each language. Parsing needs tree-sitter grammars, which the ``index`` extra installs and which
are imported on first use.
"""

__all__ = ["extractor", "formatter", "language", "languages", "syntax"]
