"""What an outline needs to know about a language: one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from adapter.tools.operations import Section


@dataclass(frozen=True, slots=True)
class Rule:
    """What one type of syntax node means.

    Of the rules given for a node type the first one that fits is taken:
    ``when`` is searched in the node's text, ``value`` names types its assigned
    value must have, ``declarator`` the type that a C declarator must
    have. ``cut_value`` shortens what stands after ``=``.
    ``members``: declarations inside belong to the item; ``inside``: they are
    items beside it (a namespace). ``variant``: a name in an enumeration.
    """

    section: Section
    when: re.Pattern[str] | None = None
    value: frozenset[str] = frozenset()
    declarator: str = ""
    cut_value: bool = False
    members: bool = False
    inside: bool = False
    variant: bool = False


def make_rule(
    section: Section,
    *,
    when: str = "",
    value: Sequence[str] = (),
    declarator: str = "",
    members: bool = False,
    inside: bool = False,
    variant: bool = False,
) -> Rule:
    """A Rule, with the pattern compiled and values cut where values are what makes an item long."""
    return Rule(
        section,
        re.compile(when) if when else None,
        frozenset(value),
        declarator,
        cut_value=section in ("consts", "fields", "types") and not members,
        members=members,
        inside=inside,
        variant=variant,
    )


@dataclass(frozen=True, slots=True)
class Language:
    """``rules`` by node type; ``wrappers`` are nodes whose text belongs to the declaration
    they hold (``export``, decorators); ``through`` are looked into as if they were not there.

    ``body`` names the fields or child types at which a signature ends and in which
    members stand. ``attached`` are nodes above a declaration that belong to it
    (attributes); ``dropped`` are left out of signatures. ``import_path`` gives an
    import statement as a path, ``{a, b}`` for several, which ``separator`` divides.
    """

    name: str
    extensions: tuple[str, ...]
    grammar: str
    """The module that brings the grammar; its distribution is spelled with ``-``."""
    rules: Mapping[str, Rule | Sequence[Rule]]
    import_path: Callable[[str], str]
    separator: str = ""
    loader: str = "language"
    wrappers: frozenset[str] = frozenset()
    through: frozenset[str] = frozenset()
    body: frozenset[str] = frozenset({"body"})
    attached: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    prefix: str = ""
    """What signatures begin with and is said by their section already."""
    blanked: re.Pattern[bytes] | None = None
    """Macros and directives that the grammar cannot know and stumbles over: the group found is read as blanks, or as a
    type when its name is ``type``."""
    names: tuple[str, ...] = ("name", "declarator", "left", "pattern")
    aliases: tuple[str, ...] = ()
    """Other names of the language, as file type filters have them."""

    def rules_for(self, node_type: str) -> Sequence[Rule]:
        found = self.rules.get(node_type, ())
        return (found,) if isinstance(found, Rule) else found


def strip_pattern(pattern: str) -> Callable[[str], str]:
    """An ``import_path`` that removes what ``pattern`` matches: keywords, quotes, the final ``;``."""
    compiled = re.compile(pattern)
    return lambda text: compiled.sub("", text).strip()
