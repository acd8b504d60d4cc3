"""Extract an outline from source text by searching its syntax tree for declarations. Function bodies are not searched.

In a file with syntax errors, the nodes with the errors are also searched.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from adapter.core.errors import ToolError
from adapter.core.text.lines import split_line_texts
from adapter.outline.import_merging import expand_import
from adapter.outline.language import Language, NodeRule
from adapter.outline.shorten_signatures import LONG_SIGNATURE, MAX_VALUE, shorten_lists, shorten_value
from adapter.outline.syntax import PARSE_SECONDS, find_first_error_line, parse
from adapter.outline.syntax_nodes import (
    MAX_DEPTH,
    MAX_LOOKED_AT,
    declares,
    find_name_nodes,
    find_value,
    get_end_row,
    get_text,
    is_comment,
    is_docstring,
)
from adapter.tools.operations import FileOutline, OutlineItem, OutlineName

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_ITEMS = 5_000
"""Maximum number of declarations per file."""
MAX_SIGNATURE = 240
"""Maximum length of a signature, in characters."""
MAX_RESTARTS = 5
"""Maximum number of times that parsing restarts after a syntax error."""

_AT_MARGIN = re.compile(rb"^[A-Za-z@#]", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_TYPED_VALUE = re.compile(r"([^=(]*[\w\])]: [^=]*?) =(?!=) ")
_LOOSE_END = re.compile(r"(?:[\s{:;=(,]|\bend\b)+$")
_WRAPPED = re.compile(r"(?<=[(\[]) | (?=[)\]])|, ?(?=[)\]])")
"""Matches spaces and commas that are left over when a list from several lines is put on one line."""
_BODY_FIELDS = ("body", "computed_value")


def extract_outline(text: str, path: str, language: Language) -> FileOutline:
    """Return the outline of ``text``. Raises MissingGrammar if the language's grammar is not installed."""
    source = text.encode("utf-8", "replace")
    deadline = time.monotonic() + PARSE_SECONDS
    root = parse(source, language, deadline).root_node
    extraction = _Extraction(language, source)
    items = extraction.extract_items(root)
    notes = []
    if root.has_error:
        line = find_first_error_line(root)
        items = _recover_hidden(items, source, language, line, deadline)
        notes.append(f"the code has syntax errors or syntax unknown to the grammar, first at line {line}")
    if extraction.is_full:
        notes.append(f"only the first {MAX_ITEMS} declarations are shown")
    return FileOutline(
        path,
        language.name,
        len(split_line_texts(text)),
        tuple(items),
        tuple(extraction.imports),
        language.separator,
        extraction.module_doc,
        notes=tuple(notes),
    )


def _recover_hidden(
    items: list[OutlineItem], source: bytes, language: Language, error_line: int, deadline: float
) -> list[OutlineItem]:
    """Add the declarations that a syntax error hides, by parsing again from the next unindented line."""
    recovered = list(items)
    known = {name.line for item in _flatten(items) for name in item.names}
    for _ in range(MAX_RESTARTS):
        margin = _AT_MARGIN.search(source, _find_line_start(source, error_line + 1))
        if margin is None:
            break
        skipped = source.count(b"\n", 0, margin.start())
        rest = b"\n" * skipped + source[margin.start() :]  # keeps the line numbers
        try:
            root = parse(rest, language, deadline).root_node
        except ToolError:
            break
        for item in _Extraction(language, rest).extract_items(root):
            lines = {name.line for name in item.names}
            if lines and known.isdisjoint(lines) and item.section != "imports":
                recovered.append(item)
                known |= {name.line for nested in _flatten([item]) for name in nested.names}
        if not root.has_error:
            break
        error_line = max(find_first_error_line(root), skipped + 1)
    return sorted(recovered, key=lambda item: item.start_line)


def _flatten(items: Iterable[OutlineItem]) -> Iterator[OutlineItem]:
    for item in items:
        yield item
        yield from _flatten(item.members)


def _find_line_start(source: bytes, line: int) -> int:
    """Return the offset of the 1-based ``line``, or the end of ``source`` if it has fewer lines."""
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

    def extract_items(self, root: Node) -> list[OutlineItem]:
        self.module_doc = self._find_module_doc(root)
        return list(self._collect_declarations(root, 0))

    def _find_module_doc(self, root: Node) -> tuple[int, int] | None:
        """Return the first and last line of the comment or string at the top that describes the whole file."""
        comments: list[Node] = []
        for child in root.named_children:
            if child.type == "php_tag":
                continue
            is_adjacent = bool(comments) and child.start_point[0] <= get_end_row(comments[-1]) + 1
            is_first_docstring = not comments and root.type == "module" and is_docstring(child)
            if is_first_docstring or (is_comment(child) and (is_adjacent or not comments)):
                comments.append(child)
                continue
            if is_adjacent and self._owns_comment(child) and not get_text(comments[0]).startswith(("//!", "#!")):
                return None
            break
        return (comments[0].start_point[0] + 1, get_end_row(comments[-1]) + 1) if comments else None

    def _owns_comment(self, node: Node) -> bool:
        if node.type in self.language.wrappers or node.type in self.language.attached:
            return True
        rule = self._find_matching_rule(node)
        return rule is not None and rule.section not in ("imports", "mods")

    def _collect_declarations(self, parent: Node, depth: int) -> Iterator[OutlineItem]:
        """Yield the declarations among the children of ``parent``, with the comments directly above them."""
        comment_row: int | None = None
        last_row = -1
        for child in parent.named_children:
            if self.is_full:
                return
            row = child.start_point[0]
            if comment_row is not None and row > last_row + 1:
                comment_row = None
            if is_comment(child) or child.type in self.language.attached:
                if comment_row is None and row != last_row:  # a trailing comment belongs to the previous node
                    comment_row = row
            else:
                yield from self._find_declarations(child, child, row if comment_row is None else comment_row, depth)
                comment_row = None
            last_row = get_end_row(child)

    def _find_declarations(self, node: Node, whole: Node, first_row: int, depth: int) -> Iterator[OutlineItem]:
        """Yield the declarations at or inside ``node``. Their signature is taken from ``whole``: ``node`` or a wrapper
        around it, such as ``export``. ``first_row`` is the first row of the declaration and its comments."""
        rule = self._find_matching_rule(node)
        if rule is not None:
            yield self._build_item(node, whole, rule, first_row, depth)
            body = self._find_body(node, rule) if rule.inside and depth < MAX_DEPTH else None
            if body is not None:
                yield from self._collect_declarations(body, depth + 1)
        elif depth >= MAX_DEPTH:
            return
        elif node.type in self.language.wrappers:
            inner = [child for child in node.named_children if self._may_contain_declarations(child)]
            for child in inner:
                alone = len(inner) == 1
                row = first_row if alone else child.start_point[0]
                yield from self._find_declarations(child, whole if alone else child, row, depth + 1)
        elif node.type in self.language.through or node.is_error:
            yield from self._collect_declarations(node, depth + 1)

    def _may_contain_declarations(self, node: Node) -> bool:
        language = self.language
        return bool(language.get_rules(node.type)) or node.type in language.wrappers or node.type in language.through

    def _find_matching_rule(self, node: Node) -> NodeRule | None:
        for rule in self.language.get_rules(node.type):
            if rule.when and not rule.when.search(get_text(node)):
                continue
            if rule.declarator and not declares(node, rule.declarator):
                continue
            value = find_value(node) if rule.value else None
            if not rule.value or (value is not None and value.type in rule.value):
                return rule
        return None

    def _build_item(self, node: Node, whole: Node, rule: NodeRule, first_row: int, depth: int) -> OutlineItem:
        self.count += 1
        if rule.section in ("imports", "mods"):
            first_row = whole.start_point[0]  # a comment above an import describes the file
        if rule.section == "imports":
            text = self._remove_dropped(node, node.start_byte, node.end_byte)
            path = _SPACE.sub(" ", self.language.import_path(text)).strip()
            self.imports += expand_import(path, self.language.separator)
        body = self._find_body(node, rule)
        names = tuple(self._build_name(name_node) for name_node in find_name_nodes(node, self.language.names))
        members: tuple[OutlineItem, ...] = ()
        if rule.members and body is not None and depth < MAX_DEPTH:
            if self.language.get_rules(body.type):  # Scala: the body may be a single member
                inner = self._find_declarations(body, body, body.start_point[0], depth + 1)
            else:
                inner = self._collect_declarations(body, depth + 1)
            members = tuple(_to_member(item) for item in inner)
        text = names[0].text if rule.variant and names else self._build_signature(node, whole, body, rule, names)
        return OutlineItem(rule.section, text, first_row + 1, get_end_row(whole) + 1, names, members)

    def _build_signature(
        self, node: Node, whole: Node, body: Node | None, rule: NodeRule, names: Sequence[OutlineName]
    ) -> str:
        end = body.start_byte if body is not None else node.end_byte
        text = self._remove_dropped(node, whole.start_byte, end)
        if body is not None:
            rest = self.source[body.end_byte : node.end_byte][:MAX_LOOKED_AT].decode("utf-8", "replace")
            after = rest.strip(" \t\r\n;})")
            if after and after != "end":
                text = f"{text.rstrip(' {')} {after}"
        text = _WRAPPED.sub("", _SPACE.sub(" ", text)).strip().removeprefix(self.language.prefix)
        if rule.cut_value:
            text = shorten_value(text)
        elif rule.section in ("fns", "classes") and len(text) > LONG_SIGNATURE:
            text = shorten_lists(text, names[0].text if names else "")
        text = _LOOSE_END.sub("", text) or text
        longest = 2 * MAX_VALUE if rule.section in ("macros", "fields") else MAX_SIGNATURE
        return text if len(text) <= longest else text[:longest].rstrip() + "..."

    def _remove_dropped(self, node: Node, start: int, end: int) -> str:
        """Return the source from ``start`` to ``end`` without the comments and nodes in ``node`` that signatures
        omit."""
        pieces: list[bytes] = []
        for dropped in self._find_dropped_nodes(node, min(end, start + MAX_LOOKED_AT)):
            if dropped.start_byte >= start:
                pieces.append(self.source[start : dropped.start_byte])
                start = dropped.end_byte
        pieces.append(self.source[start:end])
        return b"".join(pieces)[:MAX_LOOKED_AT].decode("utf-8", "replace")

    def _find_dropped_nodes(self, node: Node, end: int, depth: int = 0) -> Iterator[Node]:
        """Yield, in order, the comments and omitted nodes that begin before ``end``."""
        for child in node.named_children:
            if child.start_byte >= end:
                break
            if child.type in self.language.dropped or is_comment(child):
                yield child
            elif depth < MAX_DEPTH:
                yield from self._find_dropped_nodes(child, end, depth + 1)

    def _find_body(self, node: Node, rule: NodeRule) -> Node | None:
        """Return the body of a declaration: the node that ends its signature and contains its members. Return None if
        there is no body."""
        if (body := self._find_body_child(node)) is not None:
            return body
        inner = node.child_by_field_name("type") or find_value(node)
        if inner is None:
            return None
        if inner.type in self.language.body:  # an object or table whose functions are members
            return inner if rule.members else None
        return self._find_body_child(inner)

    def _find_body_child(self, node: Node) -> Node | None:
        named = [node.child_by_field_name(name) for name in _BODY_FIELDS if name in self.language.body]
        typed = next((child for child in node.named_children if child.type in self.language.body), None)
        candidates = [child for child in (*named, typed) if child is not None]
        return min(candidates, key=lambda child: child.start_byte, default=None)

    def _build_name(self, node: Node) -> OutlineName:
        row, column = node.start_point
        if column < MAX_LOOKED_AT:  # skip extremely long lines
            column = len(self.source[node.start_byte - column : node.start_byte].decode("utf-8", "replace"))
        return OutlineName(_SPACE.sub(" ", get_text(node)), row + 1, column + 1)


def _to_member(item: OutlineItem) -> OutlineItem:
    """Convert a class's constant to a field, and drop the value of a field with a type."""
    if item.section not in ("consts", "fields"):
        return item
    typed = _TYPED_VALUE.match(item.text)
    return replace(item, section="fields", text=typed[1] if typed and not item.members else item.text)
