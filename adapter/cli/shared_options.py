"""What several commands take, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.dialects import Dialect
    from adapter.tools.operations import Edits
    from adapter.tools.operations.permissions import PermissionRule


INCLUDE_HELP = "With promptly: only tools whose names contain this; also opt-in ones."
EXCLUDE_HELP = "With promptly: no tools whose names contain this."
CONSTRAINT_HELP = "Hold the model to valid calls: off, arguments, prefer or required; auto decides."
POLICY_HELP = "Which text may become a call: strict, safe, approved or lenient."
PROFILE_HELP = "What `adapter probe` found: auto (the model's own profile), a profile's name or file, or none."

APPROVE_HELP = (
    "What may happen unasked: ask (only reading), auto-edit (edits), yolo (everything); plan refuses changes."
)
PROMPT_HELP = "Who describes the tools to the model: own (its chat template), words (we do), auto: own where possible."
TEMPLATE_HELP = "The model's chat template, where its server fills none: Jinja, tokenizer_config.json, GGUF."

GUIDE_HELP = "Decide by words what a small model calls: auto (where its server says that it is small), on or off."

IncludeTools = Annotated[list[str] | None, typer.Option(help=INCLUDE_HELP)]
ExcludeTools = Annotated[list[str] | None, typer.Option(help=EXCLUDE_HELP)]


EDITS_HELP = "The old text of edits: exact, tolerant of slips, or auto: as the tool's document says."
EditsOption = Annotated[str, typer.Option("--edits", help=EDITS_HELP)]
ENCODING_HELP = "The encoding of files that are not UTF-8; guessed by itself."
EncodingOption = Annotated[str | None, typer.Option("--encoding", help=ENCODING_HELP)]


def parse_edit_mode(name: str) -> Edits | None:
    """Raises UsageError for a name that is no choice."""
    from adapter.workspace.files.edit_strictness import resolve_edit_mode

    return None if name == "auto" else resolve_edit_mode(name)


def resolve_dialect(name: str, tools: str | None, include: list[str] | None, exclude: list[str] | None) -> Dialect:
    """The dialect called ``name``; of `promptly`, the tools that the command line asks for."""
    if name == "promptly":
        from adapter.dialects.promptly.tool_files import DEFAULT_BASENAME, ToolSelection, load_dialect

        return load_dialect(ToolSelection(tools or DEFAULT_BASENAME, include or (), exclude or ()))
    if tools or include or exclude:
        raise UsageError(
            f"--tools, --include-tools and --exclude-tools choose the tools of --dialect promptly, not of {name!r}"
        )
    from adapter.dialects import get_dialect

    return get_dialect(name)


def parse_rules(allow: list[str] | None, ask: list[str] | None, deny: list[str] | None) -> tuple[PermissionRule, ...]:
    from adapter.tools.operations.permissions import PermissionRule

    return (
        *(PermissionRule.parse("deny", text) for text in deny or ()),
        *(PermissionRule.parse("ask", text) for text in ask or ()),
        *(PermissionRule.parse("allow", text) for text in allow or ()),
    )
