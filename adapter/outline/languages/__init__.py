"""The languages that can be outlined: one module each, with one table, listed here."""

from __future__ import annotations

import re

from adapter.outline.language import Language
from adapter.outline.languages import (
    bash,
    c,
    cpp,
    csharp,
    go,
    java,
    javascript,
    kotlin,
    lua,
    php,
    python,
    ruby,
    rust,
    scala,
    swift,
    typescript,
)

__all__ = ["LANGUAGES", "extensions_of", "language_of"]

LANGUAGES: tuple[Language, ...] = (
    rust.LANGUAGE,
    python.LANGUAGE,
    typescript.LANGUAGE,
    typescript.TSX,
    javascript.LANGUAGE,
    go.LANGUAGE,
    java.LANGUAGE,
    c.LANGUAGE,
    cpp.LANGUAGE,
    csharp.LANGUAGE,
    ruby.LANGUAGE,
    php.LANGUAGE,
    swift.LANGUAGE,
    kotlin.LANGUAGE,
    scala.LANGUAGE,
    bash.LANGUAGE,
    lua.LANGUAGE,
)

_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}

_IS_CPP = re.compile(
    r"^[ \t]*(?:class\s+(?:\w+\s+)?\w+\s*(?:final\s*)?[:;{]|(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*\{|template\s*<"
    r"|using\s+(?:namespace\s+)?[\w:]+\s*[=;]|(?:public|private|protected):)",
    re.MULTILINE,
)
_IS_FLOW = re.compile(r"^[\s/*]*@flow\b", re.MULTILINE)


def language_of(path: str, text: str = "") -> Language | None:
    """The language that the file name's extension says, in any case of letters.

    ``text`` decides where an extension has two meanings: C++ in ``.h``, and Flow's
    types in ``.js``, which read best as TSX.
    """
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    language = _BY_EXTENSION.get(extension.lower()) if dot else None
    if language is c.LANGUAGE and _IS_CPP.search(text):
        return cpp.LANGUAGE
    if language is javascript.LANGUAGE and _IS_FLOW.search(text[:2_000]):
        return typescript.TSX
    return language


def extensions_of(file_type: str) -> frozenset[str]:
    """The extensions that a language's name or an extension (``.py``, ``*.py``) stands for, without dots."""
    wanted = file_type.strip().lower().removeprefix("*").removeprefix(".")
    found = {
        extension
        for language in LANGUAGES
        if wanted == language.name.lower() or wanted in language.aliases
        for extension in language.extensions
    }
    return frozenset(found or {wanted})
