"""Options shared by several commands, and functions that define, check and resolve options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.dialects import Dialect
    from adapter.tools.operations import Edits
    from adapter.tools.operations.permissions import PermissionRule


def _define_option(metavar: str | None, help: str, *names: str, **settings: Any) -> Any:
    """Define an option of a command: its metavar (empty for a flag), help and names, and settings of `typer.Option`."""
    settings.setdefault("show_envvar", "envvar" in settings)  # not the variables of all options of `serve`
    if isinstance(default := settings.get("show_default"), str):
        help, settings["show_default"] = f"{help} Default: {default}.", False  # Typer would add brackets
    return typer.Option(*names, metavar=metavar, help=help, **settings)


def _define_setting(default: Any, metavar: str | None, help: str, *names: str, **settings: Any) -> Any:
    """Define a field of a settings class that is also an option. See `takes_settings`."""
    return field(default=default, metadata={"option": _define_option(metavar, help, *names, **settings)})


option, flag, setting = _define_option, partial(_define_option, ""), _define_setting
"""Short names of the functions that define an option with a value, one without a value, and a settings class's field.
"""


def define_settings_group(title: str, *, is_advanced: bool = False) -> Callable[..., Any]:
    """Return a `setting` function for the group ``title`` in the help. Only `--help-all` shows advanced options."""
    return partial(setting, rich_help_panel=title, hidden=is_advanced)


_permission = partial(option, "RULE", rich_help_panel="Permissions and sandbox", hidden=True)

BaseUrl = Annotated[str | None, option("URL", "Use the model server at this base URL.", show_default="detected")]
Model = Annotated[str | None, option("NAME", "Use this model on the server, or load this GGUF file in this process.")]
Format = Annotated[
    str,
    option(
        "NAME",
        "Parse calls in this format: a name, a format file, auto (detect it) or from-template (derive it from the "
        "chat template).",
    ),
]
DialectOption = Annotated[
    str, option("NAME", "Give the model this tool set: blade, maki, promptly, proto, proxyai or none.")
]


Workspace = Annotated[Path, option("DIR", "Work in this folder.", "--workspace", "-w")]
FormatTemplate = Annotated[
    Path | None, option("FILE", "Derive the format from this chat template; requires `--format from-template`.")
]
TOOLS_HELP = "With `--dialect promptly`: read the tools from files called NAME.json instead of tools.json."
INCLUDE_HELP = "With `--dialect promptly`: offer only tools whose names contain TEXT, including opt-in tools."
EXCLUDE_HELP = "With `--dialect promptly`: leave out tools whose names contain TEXT."
IncludeTools = Annotated[list[str] | None, option("TEXT", INCLUDE_HELP)]
ExcludeTools = Annotated[list[str] | None, option("TEXT", EXCLUDE_HELP)]
EDITS_HELP = (
    "Set how closely an edit's old text must match the file: exact, tolerant, or auto (each tool's documented default)."
)
ENCODING_HELP = "Assume that files that are not UTF-8 have this encoding."
EditsOption = Annotated[str, option("MODE", EDITS_HELP, "--edits")]
EncodingOption = Annotated[str | None, option("NAME", ENCODING_HELP, show_default="detected")]
POLICY_HELP = (
    "Accept calls up to this level: strict (valid, with markers), safe (also repaired calls, and reads without "
    "markers), approved (also changes without markers, if a person approves them), lenient (also calls amid text)."
)
PolicyOption = Annotated[str, option("NAME", POLICY_HELP)]
AsJson = Annotated[bool, flag("Print the result as a JSON object.", "--json")]

CONSTRAINT_HELP = (
    "Constrain the output: arguments (any text, only valid calls), prefer (a valid call or an answer in words), "
    "required (a valid call), off, or auto (if needed)."
)
PROFILE_HELP = "Use a profile from `adapter probe`: auto (the one saved for this model), a name, a file, or none."
GUARDRAILS_HELP = (
    "Retry answers that these guardrails reject: on, off, or names to add or (with -) remove, such as on,-refusal."
)
RETRIES_HELP = "Retry at most N times if guardrails reject an answer."
PROMPT_HELP = "Describe the tools with the model's chat template (own) or a generated prompt (words); auto picks one."
GUIDE_HELP = "Pick the tool for the model, based on the request's wording: on, off, or auto (only for tiny models)."
TEMPLATE_HELP = "Render prompts with this chat template instead of the server's: Jinja, tokenizer_config.json or GGUF."
CONTEXT_BUDGET_HELP = (
    "Shorten conversations that exceed this many tokens: a number, auto (the model server's context size) or off."
)
STYLES_HELP = "compact (one line), args (with types), full (explained), trained (JSON, as in training)"
STYLE_HELP = f"Describe tools in a generated prompt in this style: {STYLES_HELP} or auto."
PROMPTS_HELP = "Use the prompt templates in this folder instead of the built-in ones."

Approve = Annotated[
    str,
    option(
        "MODE",
        "Set which actions run without approval: reads (ask), reads and edits (auto-edit) or all (yolo). plan "
        "refuses all changes.",
    ),
]
Allow = Annotated[
    list[str] | None,
    option("RULE", "Allow calls that match RULE without approval, such as 'run_command(git status)'; repeatable."),
]
Ask = Annotated[
    list[str] | None,
    _permission("Require approval for calls that match RULE, such as 'write_file(docs/**)'; repeatable."),
]
Deny = Annotated[
    list[str] | None,
    _permission("Refuse calls that match RULE, even if another rule or the mode allows them; repeatable."),
]

HELP_ALL_HINT = "--help-all shows all options."


def show_hidden_options(command: Any) -> None:
    """Show the advanced options of ``command`` in its help."""
    command.epilog = None
    for param in command.params:
        param.hidden = False


def _print_full_help(ctx: typer.Context, is_requested: bool) -> None:
    if is_requested:
        show_hidden_options(ctx.command)
        print(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        callback=_print_full_help,
        help="Show all options and exit.",
        allow_from_autoenv=False,
    ),
]


def takes_settings(settings: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for commands whose first parameter is an instance of the dataclass ``settings``. It replaces
    that parameter by the options that the dataclass's fields define."""
    hints = get_type_hints(settings, include_extras=True)
    options = [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=annotation)
        for each in fields(settings)
        for annotation in [Annotated[hints[each.name], each.metadata["option"]] if each.metadata else hints[each.name]]
        if hasattr(annotation, "__metadata__")
    ]
    help_all = Parameter("help_all", Parameter.KEYWORD_ONLY, default=False, annotation=HelpAll)
    has_advanced = any(each.annotation.__metadata__[0].hidden for each in options)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run_command(**values: Any) -> None:
            values.pop("help_all", None)  # its callback prints the help text
            command(settings(**{each.name: values.pop(each.name) for each in options}), **values)

        _, *others = signature(command, eval_str=True).parameters.values()
        parameters = [
            *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in others),
            *options,
            *[help_all] * has_advanced,
        ]
        run_command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        run_command.__annotations__ = {each.name: each.annotation for each in parameters}
        return run_command

    return decorate


def explain_invalid_option(error: typer.BadParameter, context: Any) -> None:
    """Rewrite the message of a value that pydantic rejects, and add the value and its origin: a variable or file."""
    from pydantic import ValidationError

    from adapter.core.validation_errors import simplify_message

    if not isinstance(cause := error.__cause__, ValidationError) or error.param is None:
        return
    name, detail = str(error.param.name), cause.errors(include_url=False)[0]
    error.message = f"{simplify_message(detail['msg'])}, got {detail['input']!r}"
    variable = f"{context.auto_envvar_prefix}_{name.upper()}"
    origins = {"ENVIRONMENT": variable, "DEFAULT_MAP": context.params.get("config")}
    if origin := origins.get(getattr(context.get_parameter_source(name), "name", "")):
        error.param_hint = f"{error.param.get_error_hint()}, from {origin}"


def refuse_empty_paths(command: Callable[..., Any]) -> None:
    """Make all path parameters of ``command`` reject an empty string, which may come from an unset variable. It would
    otherwise mean the current folder."""
    command.__annotations__ = get_type_hints(command, include_extras=True)
    for hint in command.__annotations__.values():
        if hasattr(hint, "__metadata__") and "Path" in str(hint.__origin__):
            hint.__metadata__[0].parser = _parse_path


def _parse_path(value: str) -> Path:
    if not value:
        raise typer.BadParameter("the path is empty; pass a path, or . for the current folder")
    return Path(value)


def parse_auto(value: str) -> str | None:
    """Return the value of an option, or None for ``auto``."""
    return None if value == "auto" else value


def parse_edit_mode(name: str) -> Edits | None:
    """Return the edit mode, or None for ``auto``. Raises UsageError for an unknown name."""
    from adapter.workspace.files.file_patching import resolve_edit_mode

    return None if name == "auto" else resolve_edit_mode(name)


def resolve_dialect(
    name: str, tools: str | None, include: list[str] | None, exclude: list[str] | None, local: str | None = None
) -> Dialect:
    """Return the dialect ``name``. ``tools``, ``include`` and ``exclude`` select tools of `promptly`, and are invalid
    for other dialects. For ``local``, see `ToolSelection`."""
    if name == "promptly":
        from adapter.dialects.promptly.tool_files import DEFAULT_BASENAME, ToolSelection, load_dialect

        return load_dialect(ToolSelection(tools or DEFAULT_BASENAME, include or (), exclude or (), local))
    if tools or include or exclude:
        given = (("--tools", tools), ("--include-tools", include), ("--exclude-tools", exclude))
        named = " and ".join(option for option, value in given if value)
        raise UsageError(f"{named} can only be used with --dialect promptly, got --dialect {name}")
    from adapter.dialects import get_dialect

    return get_dialect(name)


def parse_rules(allow: list[str] | None, ask: list[str] | None, deny: list[str] | None) -> tuple[PermissionRule, ...]:
    """Return the permission rules of ``--deny``, ``--ask`` and ``--allow``, in order of precedence."""
    from adapter.tools.operations.permissions import PermissionRule

    return (
        *(PermissionRule.parse("deny", text) for text in deny or ()),
        *(PermissionRule.parse("ask", text) for text in ask or ()),
        *(PermissionRule.parse("allow", text) for text in allow or ()),
    )
