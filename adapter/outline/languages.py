"""The languages that can be outlined: the tables in languages.toml, and rules that a table cannot express."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adapter.outline.language import Language, build_language

__all__ = ["LANGUAGES", "find_extensions", "find_language"]

_PYTHON_FROM = re.compile(r"^from\s+(\S+)\s+import\s+\(?(.*?),?\s*\)?$", re.DOTALL)
_JS_FROM = re.compile(r"""^(?:import|export)\s+(.*?)\s*\bfrom\s*['"](.*)['"]""", re.DOTALL)
_JS_REQUIRE = re.compile(r"""^(?:const|let|var)\s+(.*?)\s*=\s*require\(\s*['"](.*)['"]""", re.DOTALL)
_JS_MODULE = re.compile(r"""['"](.*)['"]""")


def _format_python_import(text: str) -> str:
    match = _PYTHON_FROM.match(text)
    if not match:
        return text.removeprefix("import").strip()
    module, names = match.groups()
    return f"{module}{'' if module.endswith('.') else '.'}{{{names}}}"


def _format_js_import(text: str) -> str:
    """Return ``module name {names}``: the module first, then its imported names."""
    match = _JS_FROM.match(text) or _JS_REQUIRE.match(text)
    if match:
        return f"{match[2]} {match[1].removeprefix('type ')}"
    module = _JS_MODULE.search(text)
    return module[1] if module else text


def _format_go_import(text: str) -> str:
    alias, _, path = text.rpartition(" ")
    return path.strip('"`') + (f" as {alias}" if alias else "")


_IMPORT_PATHS: Mapping[str, Callable[[str], str]] = {
    "Python": _format_python_import, "Go": _format_go_import,
    "JavaScript": _format_js_import, "TypeScript": _format_js_import, "TSX": _format_js_import,
}  # fmt: skip
_ARGUMENTS = rb"\((?:[^()\n]|\([^()\n]*\))*\)"
_MACRO = rb"[A-Z_][A-Z0-9_]{3,}(?:" + _ARGUMENTS + rb")?"
_MACROS = re.compile(
    # a macro instead of a type, perhaps with attributes: API(void) f(int);
    rb"^(?P<type>[A-Z_][A-Z0-9_]{3,}\([A-Za-z_][^()\n\"]*\)(?:\s+%(macro)s){0,3})(?=\s+\w+[ \t]*\()"
    # alone on a line, and not the type of the next declaration: NAMESPACE_BEGIN, __BEGIN_DECLS
    rb"|^[ \t]*([A-Z_][A-Z0-9_]{3,}(?:%(arguments)s|(?!\s+\w+[ \t]*\()))[ \t]*\r?$(?!\s+[{<&|.?:=+,)-])"
    # instead of private: or public:
    rb"|^[ \t]*([A-Z_][A-Z0-9_]{3,}:)[ \t]*\r?$"
    # after a declaration, or between its type and its name: int f(void) HIDDEN; int WINAPI g(void);
    rb"|[)\]]\s*(%(macro)s)(?=\s*[;{])"
    rb"|^[\w \t*]*?(?:\b(?:void|bool|char|short|int|long|float|double|\w+_t)|\*)[ \t]*"
    rb"[ \t\r\n*]([A-Z_][A-Z0-9_]{3,})\s+(?=\w+\s*\()"
    # before the name of a class, or before a declaration
    rb"|\b(?:class|struct|enum|union)\s+([A-Z_][A-Z0-9_]{2,}(?:%(arguments)s)?)\s+(?=\w+\s*(?:final\s*)?[:{])"
    rb"|^(?:[ \t]*)([A-Z_][A-Z0-9_]*_(?:API|EXPORT|EXTERN|DLL|PUBLIC|PRIVATE|INLINE|FORCEINLINE)\b)"
    % {b"macro": _MACRO, b"arguments": _ARGUMENTS},
    re.MULTILINE,
)
_BLANKED = {
    "C": _MACROS,
    "C++": _MACROS,
    "Swift": re.compile(rb"^[ \t]*(#(?:if|elseif|else|endif)\b[^\n]*)", re.MULTILINE),  # not parsed inside a switch
}


def _load_languages() -> dict[str, Language]:
    tables: dict[str, dict[str, Any]] = {}
    for name, table in tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8")).items():
        base = tables.get(table.pop("extends", ""), {})
        tables[name] = {**base, **table, "rules": [*table.get("rules", ()), *base.get("rules", ())]}
    return {
        name: build_language(name, table, _IMPORT_PATHS.get(name), _BLANKED.get(name)) for name, table in tables.items()
    }


_BY_NAME = _load_languages()
LANGUAGES = tuple(_BY_NAME.values())
_BY_EXTENSION = {extension: language for language in LANGUAGES for extension in language.extensions}

_IS_CPP = re.compile(
    r"^[ \t]*(?:class\s+(?:\w+\s+)?\w+\s*(?:final\s*)?[:;{]|(?:inline\s+)?namespace(?:\s+[\w:]+)?\s*\{|template\s*<"
    r"|using\s+(?:namespace\s+)?[\w:]+\s*[=;]|(?:public|private|protected):)",
    re.MULTILINE,
)
_IS_FLOW = re.compile(r"^[\s/*]*@flow\b", re.MULTILINE)


def find_language(path: str, text: str = "") -> Language | None:
    """Return a file's language by its extension, in any letter case, or None if the extension is unknown.

    ``text`` is the file's text, which decides if an extension is ambiguous: ``.h`` may contain C++, and ``.js`` Flow
    types, which parse best as TSX.
    """
    _, dot, extension = path.rpartition("/")[2].rpartition(".")
    language = _BY_EXTENSION.get(extension.lower()) if dot else None
    if language is _BY_NAME["C"] and _IS_CPP.search(text):
        return _BY_NAME["C++"]
    if language is _BY_NAME["JavaScript"] and _IS_FLOW.search(text[:2_000]):
        return _BY_NAME["TSX"]
    return language


def find_extensions(file_type: str) -> frozenset[str]:
    """Return the extensions, without dots, of a file type: a language's name, or an extension such as ``*.py``."""
    name = file_type.strip().lower().removeprefix("*").removeprefix(".")
    extensions = {
        extension
        for language in LANGUAGES
        if name == language.name.lower() or name in language.aliases
        for extension in language.extensions
    }
    return frozenset(extensions or {name})
