"""Source text to outline: the syntax tree walked from the top, declarations only, never into function bodies.

A file with mistakes still has a tree; what stands in its broken parts is
looked at like everything else.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from adapter.errors import ToolError
from adapter.operations import FileOutline, Item, Name
from adapter.outline.imports import expand
from adapter.outline.language import Language, Rule
from adapter.text.lines import line_texts

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

MAX_ITEMS = 5_000
"""Declarations of a file that are given."""
MAX_DEPTH = 40
"""Levels of declarations in declarations."""
MAX_SIGNATURE = 240
"""Characters of a declaration's signature that are shown."""
LONG_SIGNATURE = 100
"""Characters above which the lists in the head of a function or class are shortened."""
MAX_LOOKED_AT = 4_000
"""Bytes of one declaration that patterns see: enough for a signature, too few for a pattern to become slow on."""
MAX_VALUE = 60
"""Characters of a constant's value that are shown."""

PARSE_SECONDS = 5.0
"""For reading one file."""
MAX_RESTARTS = 5
"""How often reading goes on behind a place that takes too long."""
_BLOCK_BYTES = 1_048_576

_AT_MARGIN = re.compile(rb"^[A-Za-z@#]", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_ASSIGNS = re.compile(r"(?<![=!<>:])=(?![=>])")
_TYPED_VALUE = re.compile(r"([^=(]*[\w\])]: [^=]*?) =(?!=) ")
_LOOSE_END = re.compile(r"(?:[\s{:;=(,]|\bend\b)+$")
_WRAPPED = re.compile(r"(?<=[(\[]) | (?=[)\]])|, ?(?=[)\]])")
"""Blanks and commas that a list has only because it stood on several lines."""
_BODY_FIELDS = ("body", "computed_value")
_VALUE_HOLDERS = frozenset(
    {"variable_declarator", "assignment_statement", "assignment_expression", "expression_list", "assignment"}
)
_NAME_HOLDERS = _VALUE_HOLDERS | {"variable_list", "variable_declaration", "const_element", "property_element"}
_NAME_ENDINGS = ("identifier", "constant", "name", "word")


class MissingGrammar(ToolError):
    """The optional packages that read a language are not installed."""


def outline(text: str, path: str, language: Language) -> FileOutline:
    """What ``text`` declares. Raises MissingGrammar when the language cannot be read here."""
    source = text.encode("utf-8", "replace")
    deadline = time.monotonic() + PARSE_SECONDS
    root = _parse(source, language, deadline).root_node
    extraction = _Extraction(language, source)
    items = extraction.items(root)
    if root.has_error:
        items = _with_recovered(items, source, language, _mistake(root), deadline)
    notes = []
    if root.has_error:
        notes.append(f"the code has mistakes, or spellings the grammar does not know, first at line {_mistake(root)}")
    if extraction.is_full:
        notes.append(f"only the first {MAX_ITEMS} declarations are given")
    return FileOutline(
        path,
        language.name,
        len(line_texts(text)),
        tuple(items),
        tuple(extraction.imports),
        language.separator,
        extraction.module_doc,
        tuple(notes),
    )


def parser_for(language: Language) -> Parser:
    """Raises MissingGrammar that says what to install."""
    try:
        return _parser(language.grammar, language.loader)
    except ImportError as error:
        raise MissingGrammar(
            f"outlines of {language.name} need {error.name or language.grammar}, which is not installed "
            "(pip install 'toolcall-adapter[index]'); read the file instead"
        ) from None


@cache
def _parser(grammar: str, loader: str) -> Parser:
    import tree_sitter

    return tree_sitter.Parser(tree_sitter.Language(getattr(importlib.import_module(grammar), loader)()))


def _with_recovered(items: list[Item], source: bytes, language: Language, mistake: int, deadline: float) -> list[Item]:
    """``items`` and what a mistake hid: the code is read again from the next lines that begin at the margin.

    An unclosed bracket can swallow all that follows it.
    """
    found = list(items)
    known = {name.line for item in _flat(items) for name in item.names}
    for _ in range(MAX_RESTARTS):
        margin = _AT_MARGIN.search(source, _line_start(source, mistake + 1))
        if margin is None:
            break
        skipped = source.count(b"\n", 0, margin.start())
        rest = b"\n" * skipped + source[margin.start() :]  # lines keep their numbers
        try:
            root = _parse(rest, language, deadline).root_node
        except ToolError:
            break
        for item in _Extraction(language, rest).items(root):
            lines = {name.line for name in item.names}
            if lines and known.isdisjoint(lines) and item.section != "imports":
                found.append(item)
                known |= {name.line for each in _flat([item]) for name in each.names}
        if not root.has_error:
            break
        mistake = max(_mistake(root), skipped + 1)
    return sorted(found, key=lambda item: item.start_line)


def _flat(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from _flat(item.members)


def _line_start(source: bytes, line: int) -> int:
    """Where the 1-based ``line`` starts, the end of ``source`` when it has no such line."""
    position = 0
    for _ in range(line - 1):
        position = source.find(b"\n", position) + 1
        if position == 0:
            return len(source)
    return position


def _parse(source: bytes, language: Language, deadline: float) -> Tree:
    parser = parser_for(language)
    if language.blanked:
        source = language.blanked.sub(_without_macro, source)
    try:
        return parser.parse(
            lambda offset, _: source[offset : offset + _BLOCK_BYTES],
            progress_callback=lambda *_: time.monotonic() > deadline,
        )
    except ValueError:  # how the binding says that the callback ended it
        parser.reset()
        raise ToolError(
            f"reading the code as {language.name} took more than {PARSE_SECONDS:g} s; read the file instead"
        ) from None


def _without_macro(found: re.Match[bytes]) -> bytes:
    """The match with its group blanked, or a type in its place; every other byte and line end stays."""
    start, end = (edge - found.start() for edge in found.span(found.lastindex or 0))
    blanks = re.sub(rb"[^\n]", b" ", found[0][start:end])
    instead = b"int" + blanks[3:] if found.lastgroup == "type" else blanks
    return found[0][:start] + instead + found[0][end:]


def _mistake(node: Node) -> int:
    """The line of the first mistake at or below ``node``."""
    while not (node.is_error or node.is_missing):
        following = next((child for child in node.children if child.has_error or child.is_missing), None)
        if following is None:
            break
        node = following
    return node.start_point[0] + 1


@dataclass(slots=True)
class _Extraction:
    language: Language
    source: bytes
    imports: list[str] = field(default_factory=list)
    module_doc: tuple[int, int] | None = None
    count: int = 0

    @property
    def is_full(self) -> bool:
        return self.count >= MAX_ITEMS

    def items(self, root: Node) -> list[Item]:
        self.module_doc = self._module_doc(root)
        return list(self._declared(root, 0))

    def _module_doc(self, root: Node) -> tuple[int, int] | None:
        """The comment or string at the top, unless it stands directly above a declaration and so belongs to it."""
        run: list[Node] = []
        for child in root.named_children:
            if child.type == "php_tag":
                continue
            touches = bool(run) and child.start_point[0] <= _end_row(run[-1]) + 1
            if (_is_comment(child) and (touches or not run)) or (
                not run and root.type == "module" and _is_docstring(child)
            ):
                run.append(child)
                continue
            if touches and self._owns_comment(child) and not _text(run[0]).startswith(("//!", "#!")):
                return None
            break
        return (run[0].start_point[0] + 1, _end_row(run[-1]) + 1) if run else None

    def _owns_comment(self, node: Node) -> bool:
        if node.type in self.language.wrappers or node.type in self.language.attached:
            return True
        found = self._fitting(node)
        return found is not None and found.section not in ("imports", "mods")

    def _declared(self, parent: Node, depth: int) -> Iterator[Item]:
        """The declarations among the children of ``parent``, each with the comments directly above it."""
        above: int | None = None
        last = -1
        for child in parent.named_children:
            if self.is_full:
                return
            row = child.start_point[0]
            if above is not None and row > last + 1:
                above = None
            if _is_comment(child) or child.type in self.language.attached:
                if above is None and row != last:  # on the line of what stands before, it is about that
                    above = row
            else:
                yield from self._found(child, child, row if above is None else above, depth)
                above = None
            last = _end_row(child)

    def _found(self, node: Node, whole: Node, first_row: int, depth: int) -> Iterator[Item]:
        """The declarations that ``node`` is or holds; ``whole`` is the wrapper around it, or itself."""
        found = self._fitting(node)
        if found is not None:
            yield self._item(node, whole, found, first_row, depth)
            body = self._body(node, found) if found.inside and depth < MAX_DEPTH else None
            if body is not None:
                yield from self._declared(body, depth + 1)
        elif depth >= MAX_DEPTH:
            return
        elif node.type in self.language.wrappers:
            inner = [child for child in node.named_children if self._leads_on(child)]
            for child in inner:
                alone = len(inner) == 1
                row = first_row if alone else child.start_point[0]
                yield from self._found(child, whole if alone else child, row, depth + 1)
        elif node.type in self.language.through or node.is_error:
            yield from self._declared(node, depth + 1)

    def _leads_on(self, node: Node) -> bool:
        language = self.language
        return bool(language.rules_for(node.type)) or node.type in language.wrappers or node.type in language.through

    def _fitting(self, node: Node) -> Rule | None:
        for candidate in self.language.rules_for(node.type):
            if candidate.when and not candidate.when.search(_text(node)):
                continue
            if candidate.declarator and not _declares(node, candidate.declarator):
                continue
            if candidate.value:
                value = _value(node)
                if value is None or value.type not in candidate.value:
                    continue
            return candidate
        return None

    def _item(self, node: Node, whole: Node, found: Rule, first_row: int, depth: int) -> Item:
        self.count += 1
        if found.section in ("imports", "mods"):
            first_row = whole.start_point[0]  # a comment above them is about the file
        if found.section == "imports":
            path = _SPACE.sub(" ", self.language.import_path(_text(node))).strip()
            self.imports += expand(path, self.language.separator)
        body = self._body(node, found)
        names = tuple(self._name(each) for each in _name_nodes(node, self.language.names))
        members: tuple[Item, ...] = ()
        if found.members and body is not None and depth < MAX_DEPTH:
            if self.language.rules_for(body.type):  # Scala: a body may be the one member itself
                inner = self._found(body, body, body.start_point[0], depth + 1)
            else:
                inner = self._declared(body, depth + 1)
            members = tuple(_as_member(item) for item in inner)
        text = names[0].text if found.variant and names else self._signature(node, whole, body, found, names)
        return Item(found.section, text, first_row + 1, _end_row(whole) + 1, names, members)

    def _signature(self, node: Node, whole: Node, body: Node | None, found: Rule, names: Sequence[Name]) -> str:
        end = body.start_byte if body is not None else node.end_byte
        text = self._without_dropped(node, whole.start_byte, end)
        if body is not None:
            after = (
                self.source[body.end_byte : node.end_byte][:MAX_LOOKED_AT]
                .decode("utf-8", "replace")
                .strip(" \t\r\n;})")
            )
            if after and after != "end":
                text = f"{text.rstrip(' {')} {after}"
        text = _WRAPPED.sub("", _SPACE.sub(" ", text)).strip().removeprefix(self.language.prefix)
        if found.cut_value:
            text = _with_short_value(text)
        elif found.section in ("fns", "classes") and len(text) > LONG_SIGNATURE:
            text = _with_short_lists(text, names[0].text if names else "")
        text = _LOOSE_END.sub("", text) or text
        longest = 2 * MAX_VALUE if found.section in ("macros", "fields") else MAX_SIGNATURE
        return text if len(text) <= longest else text[:longest].rstrip() + "..."

    def _without_dropped(self, node: Node, start: int, end: int) -> str:
        """The source from ``start`` to ``end`` without the nodes that the language leaves out."""
        pieces: list[bytes] = []
        for dropped in self._dropped(node, min(end, start + MAX_LOOKED_AT)):
            if dropped.start_byte >= start:
                pieces.append(self.source[start : dropped.start_byte])
                start = dropped.end_byte
        pieces.append(self.source[start:end])
        return b"".join(pieces)[:MAX_LOOKED_AT].decode("utf-8", "replace")

    def _dropped(self, node: Node, end: int, depth: int = 0) -> Iterator[Node]:
        """What is left out before ``end``, in order."""
        for child in node.named_children:
            if child.start_byte >= end:
                break
            if child.type in self.language.dropped or _is_comment(child):
                yield child
            elif depth < MAX_DEPTH:
                yield from self._dropped(child, end, depth + 1)

    def _body(self, node: Node, found: Rule) -> Node | None:
        """Where the signature ends and the members stand, if the declaration has such a place."""
        own = self._body_child(node)
        if own is not None:
            return own
        inner = node.child_by_field_name("type") or _value(node)
        if inner is None:
            return None
        if inner.type in self.language.body:  # an object or a table, whose functions are members
            return inner if found.members else None
        return self._body_child(inner)

    def _body_child(self, node: Node) -> Node | None:
        named = [node.child_by_field_name(name) for name in _BODY_FIELDS if name in self.language.body]
        typed = next((child for child in node.named_children if child.type in self.language.body), None)
        found = [child for child in (*named, typed) if child is not None]
        return min(found, key=lambda child: child.start_byte, default=None)

    def _name(self, node: Node) -> Name:
        row, column = node.start_point
        if column < MAX_LOOKED_AT:  # else in a line that no one counts columns in
            column = len(self.source[node.start_byte - column : node.start_byte].decode("utf-8", "replace"))
        return Name(_SPACE.sub(" ", _text(node)), row + 1, column + 1)


def _name_nodes(node: Node, fields: Sequence[str]) -> list[Node]:
    """The nodes of the names that a declaration gives; more than one for ``let a, b``."""
    for name in fields:
        found = node.children_by_field_name(name)
        if found:
            alike = [_innermost(each) for each in found if each.type == found[0].type]
            return [leaf for each in alike for leaf in _parts(each)]
    holders = [child for child in node.named_children if child.type in _NAME_HOLDERS]
    if holders:
        first = holders[0].type
        return [name for each in holders if each.type == first for name in _name_nodes(each, fields)]
    return [child for child in node.named_children if child.type.endswith(_NAME_ENDINGS)][:1]


def _innermost(node: Node) -> Node:
    """The name itself, out of the pointers, arrays and qualifiers around it."""
    for _ in range(MAX_DEPTH):
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if inner is None and node.type in ("parenthesized_declarator", "reference_declarator"):
            inner = next(iter(node.named_children), None)
        if inner is None:
            return node
        node = inner
    return node


def _parts(node: Node) -> list[Node]:
    """The names in ``a, b = 1, 2`` and ``const {a, b} = ...``; else the node itself."""
    if node.type in ("pattern_list", "tuple_pattern", "object_pattern", "array_pattern", "list_pattern"):
        return [child for child in node.named_children if child.type.endswith(("identifier", "identifier_pattern"))]
    return [node]


def _value(node: Node) -> Node | None:
    """What is assigned in ``node``, however deep the declaration wraps it."""
    for _ in range(4):
        found = node.child_by_field_name("value") or node.child_by_field_name("right")
        if found is not None:
            return found
        holder = next((child for child in reversed(node.named_children) if child.type in _VALUE_HOLDERS), None)
        if holder is None:
            return None
        node = holder
    return None


def _declares(node: Node, declarator: str) -> bool:
    """Whether the declared name stands in a ``declarator``, as in C's ``int *f(int)``, not ``int (*f)(int)``."""
    for _ in range(MAX_DEPTH):
        inner = node.child_by_field_name("declarator")
        if inner is None and node.type == "reference_declarator":
            inner = next(iter(node.named_children), None)
        if inner is None:
            return False
        if inner.type == declarator:
            innermost = inner.child_by_field_name("declarator")
            return innermost is None or innermost.type != "parenthesized_declarator"
        node = inner
    return False


def _with_short_value(text: str) -> str:
    assigns = _ASSIGNS.search(text)
    if assigns is None or len(text) - assigns.end() <= MAX_VALUE:
        return text
    return text[: assigns.end() + MAX_VALUE].rstrip() + "..."


def _with_short_lists(text: str, name: str) -> str:
    """A long signature with the ends of its lists left out: first of the parameters, then of what
    stands before the name (type parameters, as a rule). The name and the type of the result stay."""
    start = text.find("(", text.find(name) + len(name))
    end = _closing(text, start)
    if end < 0:
        return text
    room = LONG_SIGNATURE - (len(text) - (end - start))
    cut = text.rfind(",", start, start + max(room, 0) + 1)
    text = f"{text[:cut]}, ...{text[end:]}" if cut > start else f"{text[: start + 1]}...{text[end:]}"
    start = text.find("<", 0, text.find(name) + 1)
    end = _closing(text, start)
    if len(text) > LONG_SIGNATURE and 0 <= start < end < text.find(name):
        text = f"{text[: start + 1]}...{text[end:]}"
    return text


def _closing(text: str, start: int) -> int:
    """Where the bracket at ``start`` is closed, -1 when it is not."""
    if start < 0:
        return -1
    opening, closing = text[start], {"(": ")", "<": ">"}[text[start]]
    level = 0
    for position in range(start, len(text)):
        if text[position] == opening:
            level += 1
        elif text[position] == closing and text[position - 1] not in "-=":
            level -= 1
            if level == 0:
                return position
    return -1


def _as_member(item: Item) -> Item:
    """A constant in a class is a field; a field's value is not shown beside its type."""
    if item.section not in ("consts", "fields"):
        return item
    typed = _TYPED_VALUE.match(item.text)
    return replace(item, section="fields", text=typed[1] if typed and not item.members else item.text)


def _is_comment(node: Node) -> bool:
    return node.type.endswith("comment")


def _is_docstring(node: Node) -> bool:
    return node.type == "expression_statement" and [child.type for child in node.named_children] == ["string"]


def _end_row(node: Node) -> int:
    """The last row that ``node`` really stands in: some nodes end with their line's line feed."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def _text(node: Node) -> str:
    """The beginning of the node's text."""
    return (node.text or b"")[:MAX_LOOKED_AT].decode("utf-8", "replace")
