"""Read syntax nodes' names, assigned values and end rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 40
"""Maximum nesting of declarations and declarators."""
MAX_LOOKED_AT = 4_000
"""Number of bytes searched at the start of a declaration, enough for a signature."""
_VALUE_HOLDERS = frozenset(
    {"variable_declarator", "assignment_statement", "assignment_expression", "expression_list", "assignment"}
)
_NAME_HOLDERS = _VALUE_HOLDERS | {"variable_list", "variable_declaration", "const_element", "property_element"}
_NAME_ENDINGS = ("identifier", "constant", "name", "word")


def find_name_nodes(node: Node, fields: Sequence[str]) -> list[Node]:
    """Return the nodes of the names that a declaration introduces, such as ``a`` and ``b`` in ``let a, b``. ``fields``
    are the grammar's fields for names."""
    for name in fields:
        nodes = node.children_by_field_name(name)
        if nodes:
            same_type = [_find_innermost_name(each) for each in nodes if each.type == nodes[0].type]
            return [leaf for each in same_type for leaf in _split_pattern(each)]
    holders = [child for child in node.named_children if child.type in _NAME_HOLDERS]
    if holders:
        first = holders[0].type
        return [name for each in holders if each.type == first for name in find_name_nodes(each, fields)]
    return [child for child in node.named_children if child.type.endswith(_NAME_ENDINGS)][:1]


def _find_innermost_name(node: Node) -> Node:
    """Return the node of the name inside pointers, arrays and qualifiers."""
    for _ in range(MAX_DEPTH):
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if inner is None and node.type in ("parenthesized_declarator", "reference_declarator"):
            inner = next(iter(node.named_children), None)
        if inner is None:
            return node
        node = inner
    return node


def _split_pattern(node: Node) -> list[Node]:
    """Return the nodes of the names in ``a, b = 1, 2`` or ``const {a, b} = ...``, or the node itself."""
    if node.type in ("pattern_list", "tuple_pattern", "object_pattern", "array_pattern", "list_pattern"):
        return [child for child in node.named_children if child.type.endswith(("identifier", "identifier_pattern"))]
    return [node]


def find_value(node: Node) -> Node | None:
    """Return the node of the value that ``node``, or a declaration in it, assigns, or None."""
    for _ in range(4):
        value_node = node.child_by_field_name("value") or node.child_by_field_name("right")
        if value_node is not None:
            return value_node
        holder = next((child for child in reversed(node.named_children) if child.type in _VALUE_HOLDERS), None)
        if holder is None:
            return None
        node = holder
    return None


def declares(node: Node, declarator: str) -> bool:
    """Return whether the declared name is in a node of the type ``declarator``. In C, ``int *f(int)`` is a function
    declarator, but ``int (*f)(int)`` is a pointer."""
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


def is_comment(node: Node) -> bool:
    return node.type.endswith("comment")


def is_docstring(node: Node) -> bool:
    return node.type == "expression_statement" and [child.type for child in node.named_children] == ["string"]


def get_end_row(node: Node) -> int:
    """Return the last row of ``node``. A line feed at its end does not begin another row."""
    row, column = node.end_point
    return row - 1 if column == 0 and row > node.start_point[0] else row


def get_text(node: Node) -> str:
    """Return the text of ``node``, truncated to `MAX_LOOKED_AT` bytes."""
    return (node.text or b"")[:MAX_LOOKED_AT].decode("utf-8", "replace")
