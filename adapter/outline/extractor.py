"""Source text to outline: the syntax tree walked from the top, declarations only, never into function bodies.

What stands in the broken parts of a file with mistakes is looked at like everything else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.core.errors import ToolError
from adapter.core.text.lines import line_texts
from adapter.outline.imports import expand
from adapter.outline.language import Language, Rule
from adapter.outline.signatures import LONG_SIGNATURE, MAX_VALUE, with_short_lists, with_short_value
from adapter.outline.syntax import PARSE_SECONDS, mistake_line, parse
from adapter.outline.syntax_nodes import (
    MAX_DEPTH,
    MAX_LOOKED_AT,
    declares,
    end_row,
    is_comment,
    is_docstring,
    name_nodes,
    text_of,
    value_of,
)
from adapter.tools.operations import FileOutline, OutlineItem, OutlineName

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_ITEMS = 5_000
"""Declarations of a file that are given."""
MAX_SIGNATURE = 240
"""Characters of a declaration's signature that are shown."""
MAX_RESTARTS = 5
"""How often reading goes on behind a place that takes too long."""

_AT_MARGIN = re.compile(rb"^[A-Za-z@#]", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_TYPED_VALUE = re.compile(r"([^=(]*[\w\])]: [^=]*?) =(?!=) ")
_LOOSE_END = re.compile(r"(?:[\s{:;=(,]|\bend\b)+$")
_WRAPPED = re.compile(r"(?<=[(\[]) | (?=[)\]])|, ?(?=[)\]])")
"""Blanks and commas that a list has only because it stood on several lines."""
_BODY_FIELDS = ("body", "computed_value")


def outline(text: str, path: str, language: Language) -> FileOutline:
    """What ``text`` declares. Raises MissingGrammar when the language cannot be read here."""
    source = text.encode("utf-8", "replace")
    deadline = time.monotonic() + PARSE_SECONDS
    root = parse(source, language, deadline).root_node
    extraction = _Extraction(language, source)
    items = extraction.items(root)
    if root.has_error:
        items = _with_recovered(items, source, language, mistake_line(root), deadline)
    notes = []
    if root.has_error:
        notes.append(
            f"the code has mistakes, or spellings the grammar does not know, first at line {mistake_line(root)}"
        )
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


def _with_recovered(
    items: list[OutlineItem], source: bytes, language: Language, mistake: int, deadline: float
) -> list[OutlineItem]:
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
            root = parse(rest, language, deadline).root_node
        except ToolError:
            break
        for item in _Extraction(language, rest).items(root):
            lines = {name.line for name in item.names}
            if lines and known.isdisjoint(lines) and item.section != "imports":
                found.append(item)
                known |= {name.line for each in _flat([item]) for name in each.names}
        if not root.has_error:
            break
        mistake = max(mistake_line(root), skipped + 1)
    return sorted(found, key=lambda item: item.start_line)


def _flat(items: Iterable[OutlineItem]) -> Iterator[OutlineItem]:
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

    def items(self, root: Node) -> list[OutlineItem]:
        self.module_doc = self._module_doc(root)
        return list(self._declared(root, 0))

    def _module_doc(self, root: Node) -> tuple[int, int] | None:
        """The comment or string at the top, unless it stands directly above a declaration and so belongs to it."""
        run: list[Node] = []
        for child in root.named_children:
            if child.type == "php_tag":
                continue
            touches = bool(run) and child.start_point[0] <= end_row(run[-1]) + 1
            if (is_comment(child) and (touches or not run)) or (
                not run and root.type == "module" and is_docstring(child)
            ):
                run.append(child)
                continue
            if touches and self._owns_comment(child) and not text_of(run[0]).startswith(("//!", "#!")):
                return None
            break
        return (run[0].start_point[0] + 1, end_row(run[-1]) + 1) if run else None

    def _owns_comment(self, node: Node) -> bool:
        if node.type in self.language.wrappers or node.type in self.language.attached:
            return True
        found = self._fitting(node)
        return found is not None and found.section not in ("imports", "mods")

    def _declared(self, parent: Node, depth: int) -> Iterator[OutlineItem]:
        """The declarations among the children of ``parent``, each with the comments directly above it."""
        above: int | None = None
        last = -1
        for child in parent.named_children:
            if self.is_full:
                return
            row = child.start_point[0]
            if above is not None and row > last + 1:
                above = None
            if is_comment(child) or child.type in self.language.attached:
                if above is None and row != last:  # on the line of what stands before, it is about that
                    above = row
            else:
                yield from self._found(child, child, row if above is None else above, depth)
                above = None
            last = end_row(child)

    def _found(self, node: Node, whole: Node, first_row: int, depth: int) -> Iterator[OutlineItem]:
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
            if candidate.when and not candidate.when.search(text_of(node)):
                continue
            if candidate.declarator and not declares(node, candidate.declarator):
                continue
            if candidate.value:
                value = value_of(node)
                if value is None or value.type not in candidate.value:
                    continue
            return candidate
        return None

    def _item(self, node: Node, whole: Node, found: Rule, first_row: int, depth: int) -> OutlineItem:
        self.count += 1
        if found.section in ("imports", "mods"):
            first_row = whole.start_point[0]  # a comment above them is about the file
        if found.section == "imports":
            path = _SPACE.sub(" ", self.language.import_path(text_of(node))).strip()
            self.imports += expand(path, self.language.separator)
        body = self._body(node, found)
        names = tuple(self._name(each) for each in name_nodes(node, self.language.names))
        members: tuple[OutlineItem, ...] = ()
        if found.members and body is not None and depth < MAX_DEPTH:
            if self.language.rules_for(body.type):  # Scala: a body may be the one member itself
                inner = self._found(body, body, body.start_point[0], depth + 1)
            else:
                inner = self._declared(body, depth + 1)
            members = tuple(_as_member(item) for item in inner)
        text = names[0].text if found.variant and names else self._signature(node, whole, body, found, names)
        return OutlineItem(found.section, text, first_row + 1, end_row(whole) + 1, names, members)

    def _signature(self, node: Node, whole: Node, body: Node | None, found: Rule, names: Sequence[OutlineName]) -> str:
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
            text = with_short_value(text)
        elif found.section in ("fns", "classes") and len(text) > LONG_SIGNATURE:
            text = with_short_lists(text, names[0].text if names else "")
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
            if child.type in self.language.dropped or is_comment(child):
                yield child
            elif depth < MAX_DEPTH:
                yield from self._dropped(child, end, depth + 1)

    def _body(self, node: Node, found: Rule) -> Node | None:
        """Where the signature ends and the members stand, if the declaration has such a place."""
        own = self._body_child(node)
        if own is not None:
            return own
        inner = node.child_by_field_name("type") or value_of(node)
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

    def _name(self, node: Node) -> OutlineName:
        row, column = node.start_point
        if column < MAX_LOOKED_AT:  # else in a line that no one counts columns in
            column = len(self.source[node.start_byte - column : node.start_byte].decode("utf-8", "replace"))
        return OutlineName(_SPACE.sub(" ", text_of(node)), row + 1, column + 1)


def _as_member(item: OutlineItem) -> OutlineItem:
    """A constant in a class is a field; a field's value is not shown beside its type."""
    if item.section not in ("consts", "fields"):
        return item
    typed = _TYPED_VALUE.match(item.text)
    return replace(item, section="fields", text=typed[1] if typed and not item.members else item.text)
