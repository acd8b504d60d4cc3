"""A language's definition for outlines: its grammar, and the meaning of its syntax nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adapter.tools.operations import Section


@dataclass(frozen=True, slots=True)
class NodeRule:
    """A rule that assigns syntax nodes of certain types to a section of the outline. For each node, the first matching
    rule applies."""

    section: Section
    node_types: tuple[str, ...]
    when: re.Pattern[str] | None = None
    """Pattern that must occur in the node's text, or None."""
    value: frozenset[str] = frozenset()
    """Node types that the value assigned by the node may have; empty for any."""
    declarator: str = ""
    """Node type that the C declarator in the node must have; empty for any."""
    members: bool = False
    """True if declarations inside the node are members of its item."""
    inside: bool = False
    """True if declarations inside the node are separate items, as in a namespace."""
    variant: bool = False
    """True to show only the name, as for an enum member."""

    @property
    def cut_value(self) -> bool:
        """True if a long value after ``=`` is truncated."""
        return self.section in ("consts", "fields", "types") and not self.members


def _build_rule(entry: str | Mapping[str, str]) -> NodeRule:
    """Build a rule from ``SECTION [FLAGS]: NODE TYPES``, or from a table with this string under ``rule``."""
    fields = {"rule": entry} if isinstance(entry, str) else entry
    head, _, node_types = fields["rule"].partition(": ")
    section, *flags = head.split()
    when = re.compile(fields["when"]) if "when" in fields else None
    value, declarator = frozenset(fields.get("value", "").split()), fields.get("declarator", "")
    types, switches = tuple(node_types.split()), dict.fromkeys(flags, True)
    return NodeRule(cast(Section, section), types, when, value, declarator, **switches)


@dataclass(frozen=True, slots=True)
class Language:
    """A language that can be outlined; ``rules`` are grouped by node type."""

    name: str
    extensions: tuple[str, ...]
    grammar: str
    """Name of the grammar's module. Its distribution has ``-`` instead of ``_``."""
    rules: Mapping[str, Sequence[NodeRule]]
    import_path: Callable[[str], str]
    """Converts an import statement to a path, with ``{a, b}`` for several paths."""
    separator: str = ""
    """The text between the components of an import path."""
    loader: str = "language"
    wrappers: frozenset[str] = frozenset()
    """Types of nodes whose text belongs to the declaration inside them (``export``, decorators)."""
    through: frozenset[str] = frozenset()
    """Types of nodes that are searched for declarations as if their children were children of the node's parent."""
    body: frozenset[str] = frozenset({"body"})
    """Fields or types of child nodes that end a signature. These nodes contain the members."""
    attached: frozenset[str] = frozenset()
    """Types of nodes that belong to the declaration below them, such as attributes."""
    dropped: frozenset[str] = frozenset()
    """Types of nodes that signatures omit."""
    prefix: str = ""
    """Prefix that signatures omit, because the section already implies it."""
    blanked: re.Pattern[bytes] | None = None
    """Macros and directives that the grammar cannot parse.

    The matched group is replaced with spaces, or with a type if the group's name is ``type``.
    """
    names: tuple[str, ...] = ("name", "declarator", "left", "pattern")
    """Fields of syntax nodes that may contain the declared name."""
    aliases: tuple[str, ...] = ()
    """Aliases of the language in file type filters."""

    def get_rules(self, node_type: str) -> Sequence[NodeRule]:
        return self.rules.get(node_type, ())


_NODE_TYPES = ("wrappers", "through", "body", "attached", "dropped")


def build_language(
    name: str, table: Mapping[str, Any], import_path: Callable[[str], str] | None, blanked: re.Pattern[bytes] | None
) -> Language:
    """Build a language from its table in languages.toml.

    ``import_path`` converts an import statement to a path. By default, the matches of the table's ``import_noise``
    (keywords, quotes, the final ``;``) are removed from the statement.
    """
    noise = re.compile(table.get("import_noise", ""))
    rules: dict[str, list[NodeRule]] = {}
    for rule in map(_build_rule, table["rules"]):
        for node_type in rule.node_types:
            rules.setdefault(node_type, []).append(rule)
    fields: dict[str, Any] = {key: table[key] for key in ("grammar", "loader", "separator", "prefix") if key in table}
    fields |= {key: tuple(table[key].split()) for key in ("extensions", "aliases", "names") if key in table}
    fields |= {key: frozenset(table[key].split()) for key in _NODE_TYPES if key in table}
    import_path = import_path or (lambda text: noise.sub("", text).strip())
    return Language(name=name, rules=rules, import_path=import_path, blanked=blanked, **fields)
