"""What several commands take, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from adapter.errors import UsageError

if TYPE_CHECKING:
    from adapter.approval import Rule
    from adapter.dialects import Dialect


IncludeTools = Annotated[
    list[str] | None, typer.Option(help="With promptly: only tools whose names contain this; also opt-in ones.")
]
ExcludeTools = Annotated[list[str] | None, typer.Option(help="With promptly: no tools whose names contain this.")]

ConstraintOption = Annotated[
    str, typer.Option(help="Hold the model to valid calls: off, arguments, prefer or required; auto decides.")
]

ProfileOption = Annotated[
    str,
    typer.Option(help="What `adapter probe` found: auto (the model's own profile), a profile's name or file, or none."),
]


def dialect_named(name: str, tools: str | None, include: list[str] | None, exclude: list[str] | None) -> Dialect:
    """The dialect called ``name``; of `promptly`, the tools that the command line asks for."""
    if name == "promptly":
        from adapter.toolfiles import DEFAULT_BASENAME, Choice, load_dialect

        return load_dialect(Choice(tools or DEFAULT_BASENAME, include or (), exclude or ()))
    if tools or include or exclude:
        raise UsageError(
            f"--tools, --include-tools and --exclude-tools choose the tools of --dialect promptly, not of {name!r}"
        )
    from adapter.dialects import get_dialect

    return get_dialect(name)


def rules_of(allow: list[str] | None, ask: list[str] | None, deny: list[str] | None) -> tuple[Rule, ...]:
    from adapter.approval import Rule

    return (
        *(Rule.parse("deny", text) for text in deny or ()),
        *(Rule.parse("ask", text) for text in ask or ()),
        *(Rule.parse("allow", text) for text in allow or ()),
    )
