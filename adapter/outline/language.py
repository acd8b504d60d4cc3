"""Definition of a language for outlines: its grammar, and the meaning of its syntax nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from adapter.tools.operations import Section


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that assigns types of syntax nodes to a section. The first matching rule for a node type applies.

    ``when``: pattern that must occur in the node's text. ``value``: allowed types of the assigned value.
    ``declarator``: required type of a C declarator. ``members``: whether declarations inside the node are members of
    its item. ``inside``: whether they are separate items, as in a namespace. ``variant``: whether to show only the
    name, as for an enum member.
    """

    section: Section
    node_types: tuple[str, ...]
    when: re.Pattern[str] | None = None
    value: frozenset[str] = frozenset()
    declarator: str = ""
    members: bool = False
    inside: bool = False
    variant: bool = False

    @property
    def cut_value(self) -> bool:
        """True if a long value after ``=`` is truncated."""
        return self.section in ("consts", "fields", "types") and not self.members


def make_rule(
    section: Section,
    node_types: str,
    *,
    when: str = "",
    value: str = "",
    declarator: str = "",
    members: bool = False,
    inside: bool = False,
    variant: bool = False,
) -> Rule:
    """Create a rule. The types in ``node_types`` and ``value`` are separated by spaces."""
    pattern = re.compile(when) if when else None
    return Rule(section, tuple(node_types.split()), pattern, split_types(value), declarator, members, inside, variant)


def index_rules(*rules: Rule) -> Mapping[str, Sequence[Rule]]:
    """Group rules by node type, and keep their order."""
    index: dict[str, list[Rule]] = {}
    for rule in rules:
        for node_type in rule.node_types:
            index.setdefault(node_type, []).append(rule)
    return index


def split_types(names: str) -> frozenset[str]:
    return frozenset(names.split())


@dataclass(frozen=True, slots=True)
class Language:
    """A language that can be outlined; ``rules`` are grouped by node type.

    ``wrappers``: nodes whose text belongs to the declaration inside them (``export``, decorators). ``through``: nodes
    whose children are treated as children of the node's parent. ``body``: fields or child types at which a signature
    ends; they contain the members. ``attached``: nodes above a declaration that belong to it (attributes). ``dropped``:
    nodes that signatures omit. ``import_path``: converts an import statement to a path, with ``{a, b}`` for several
    paths. ``separator``: separates the components of a path.
    """

    name: str
    extensions: tuple[str, ...]
    grammar: str
    """Name of the grammar's module. Its distribution has ``-`` instead of ``_``."""
    rules: Mapping[str, Sequence[Rule]]
    import_path: Callable[[str], str]
    separator: str = ""
    loader: str = "language"
    wrappers: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()
    body: frozenset[str] = frozenset({"body"})
    attached: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    prefix: str = ""
    """Prefix that signatures omit, because the section already implies it."""
    blanked: re.Pattern[bytes] | None = None
    """Macros and directives that the grammar cannot parse.

    The matched group is replaced with spaces, or with a type if its name is ``type``.
    """
    names: tuple[str, ...] = ("name", "declarator", "left", "pattern")
    aliases: tuple[str, ...] = ()
    """Aliases of the language in file type filters."""

    def get_rules(self, node_type: str) -> Sequence[Rule]:
        return self.rules.get(node_type, ())


def strip_pattern(pattern: str) -> Callable[[str], str]:
    """Return an ``import_path`` function that removes matches of ``pattern``: keywords, quotes, the final ``;``."""
    compiled = re.compile(pattern)
    return lambda text: compiled.sub("", text).strip()
