"""Decode the part of YAML that models write as arguments: block mappings and lists, scalars, and JSON on one line."""

from __future__ import annotations

import re

from adapter.core.errors import FormatError
from adapter.core.events import Json, JsonObject
from adapter.core.json.strict import MAX_DEPTH, decode_strict

_ENTRY = re.compile(
    r"(?P<key>\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s:#\"'\[\]{},&*!|>%@`-][^:\n]*?) *:(?:[ \t]+(?P<rest>\S.*))?\s*"
)
_LINE_BREAK = re.compile(r"\r\n?|\n")
_ITEM = re.compile(r"-(?:(?P<space> +)(?P<rest>\S.*))?\s*")
_BLOCK = re.compile(r"(?P<style>[|>])(?P<chomp>[+-]?)\s*(?:#.*)?")
_NOT_SUPPORTED = re.compile(r"[&*][\w-]+(?:\s|\Z)|[!|>]")
"""Matches anchors, aliases and tags, but not unquoted text such as ``*.py`` and ``@name``, which models also write."""
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "~": None, "": None}


def decode_yaml(text: str) -> Json:
    """Return the value that ``text`` describes. Raises FormatError for invalid or unsupported text."""
    return _YamlReader(text).read()


class _YamlReader:
    """Parses lines in one pass, with a recursive call for each level of indentation."""

    def __init__(self, text: str) -> None:
        text = text.expandtabs(4) if text.lstrip(" \n").startswith("\t") else text
        self.lines = _LINE_BREAK.split(text)  # str.splitlines() also splits at characters that JSON strings may contain
        if not self.lines[-1]:
            self.lines.pop()
        self.index = 0

    def read(self) -> Json:
        value = self._parse_block(0, 0)
        if self._find_next_indent() is not None:
            raise FormatError(f"line {self.index + 1} has the wrong indentation")
        return value

    def _find_next_indent(self) -> int | None:
        """Skip blank lines and comments. Return the next line's indentation, or None at the end."""
        while self.index < len(self.lines):
            line = self.lines[self.index]
            if line.strip() and not line.lstrip().startswith("#"):
                return len(line) - len(line.lstrip(" "))
            self.index += 1
        return None

    def _parse_block(self, least: int, depth: int) -> Json:
        """Return the value in the next lines, or None if they are indented by fewer than ``least`` spaces."""
        if depth > MAX_DEPTH:
            raise FormatError(f"the value is nested more than {MAX_DEPTH} levels deep")
        indent = self._find_next_indent()
        if indent is None or indent < least:
            return None
        line = self.lines[self.index].strip()
        if _ITEM.fullmatch(line):
            return self._parse_list(indent, depth)
        if _ENTRY.fullmatch(line) and not line.startswith(("{", "[")):
            return self._parse_mapping(indent, depth)
        self.index += 1
        return _decode_scalar(line)

    def _parse_mapping(self, indent: int, depth: int) -> JsonObject:
        mapping: JsonObject = {}
        while self._find_next_indent() == indent and (entry := _ENTRY.fullmatch(self.lines[self.index].strip())):
            self.index += 1
            key = str(_decode_scalar(entry["key"])) if entry["key"][0] in "\"'" else entry["key"]
            if key in mapping:
                raise FormatError(f"the key {key!r} occurs twice")
            mapping[key] = self._parse_value(entry["rest"] or "", indent, depth, is_entry=True)
        return mapping

    def _parse_list(self, indent: int, depth: int) -> list[Json]:
        items: list[Json] = []
        while self._find_next_indent() == indent and (item := _ITEM.fullmatch(self.lines[self.index].strip())):
            rest = item["rest"] or ""
            if _ENTRY.fullmatch(rest) and not rest.startswith(("{", "[")):  # a mapping that begins after the hyphen
                inner = indent + 1 + len(item["space"])
                self.lines[self.index] = " " * inner + rest
                items.append(self._parse_block(inner, depth + 1))
            else:
                self.index += 1
                items.append(self._parse_value(rest, indent, depth, is_entry=False))
        return items

    def _parse_value(self, rest: str, indent: int, depth: int, *, is_entry: bool) -> Json:
        if block := _BLOCK.fullmatch(rest):
            return self._parse_block_scalar(indent, block["style"] == ">", block["chomp"])
        if rest and not rest.startswith("#"):
            return _decode_scalar(rest)
        begins_list = (
            is_entry and self._find_next_indent() == indent and _ITEM.fullmatch(self.lines[self.index].strip())
        )
        return self._parse_block(indent if begins_list else indent + 1, depth + 1)

    def _parse_block_scalar(self, indent: int, is_folded: bool, chomp: str) -> str:
        lines: list[str] = []
        while self.index < len(self.lines):
            line = self.lines[self.index]
            if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
                break
            lines.append(line)
            self.index += 1
        margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
        text = "\n".join(line[margin:] for line in lines)
        body = text.rstrip("\n")
        if is_folded:
            body = re.sub(r"(?<!\n)\n(?!\n)", " ", body)
        if chomp == "+":
            return f"{body}{text[len(text.rstrip(chr(10))) :]}\n"
        return body if chomp == "-" or not body else f"{body}\n"


def _decode_scalar(text: str) -> Json:
    if text[0] in '"[{':
        decoded = decode_strict(text)
        if decoded is None or not re.fullmatch(r"\s*(?:\s#.*)?", text[decoded.end :]):
            raise FormatError(f"{text[:60]!r} is not valid JSON")
        return decoded.value
    if text[0] == "'":
        quoted = re.fullmatch(r"'((?:[^']|'')*)'\s*(?:#.*)?", text)
        if quoted is None:
            raise FormatError(f"{text[:60]!r} has no closing quote")
        return quoted[1].replace("''", "'")
    if _NOT_SUPPORTED.match(text):
        raise FormatError(
            f"{text[:60]!r} begins like a YAML anchor, alias, tag or block, which is not supported; quote the value"
        )
    plain = re.sub(r"\s+#.*\Z", "", text).strip()
    if plain.lower() in _WORDS:
        return _WORDS[plain.lower()]
    decoded = decode_strict(plain)
    return decoded.value if decoded is not None and decoded.end == len(plain) else plain
