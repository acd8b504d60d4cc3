"""`adapter tool list`, `view`, `add`, `install` and `remove`: manage the shell tools of the `promptly` dialect.

The exit code is 3 if a command's tool does not exist.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.options import ExcludeTools, IncludeTools, flag, option
from adapter.core.text.display_escaping import dump_for_display, escape_for_display

app = typer.Typer(name="tool", help="List and change the shell tools of `--dialect promptly`.", no_args_is_help=True)

NOT_FOUND = 3

Basename = Annotated[str, option("NAME", "Use the tool files called NAME.json.", "--tools")]
ToolId = Annotated[
    str, typer.Argument(metavar="TOOL-ID", help="Select the tool with this id, as listed by `adapter tool list`.")
]
ConfigFile = Annotated[
    Path | None,
    option(
        "FILE", "Change this tools file.", "--config-file", show_default="./tools.json if it exists, else the user's"
    ),
]


@app.command("list")
def list_(tools: Basename = "tools", include_tools: IncludeTools = None, exclude_tools: ExcludeTools = None) -> None:
    """List the tools with their id, source, program and description."""
    from adapter.dialects.promptly.tool_files import ToolSelection, find_tools, load_dialect

    found = {each.tool.name: each for each in reversed(find_tools(tools))}
    offered = load_dialect(ToolSelection(tools, include_tools or (), exclude_tools or ())).tools
    rows = [("ID", "SOURCE", "PROGRAM", "DESCRIPTION")]
    for tool in offered.values():
        each = found.get(tool.name)
        source, program = (each.source, each.tool.executable) if each else ("built-in", "-")
        rows.append(
            (escape_for_display(tool.name), source, escape_for_display(program), escape_for_display(tool.description))
        )
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join([*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True)), row[3]]))
    for name in sorted(found.keys() - offered.keys()) if not (include_tools or exclude_tools) else ():
        entry = found[name].tool
        reason = f"add --include-tools {name}" if entry.opt_in else f"{entry.executable} is not installed"
        print(escape_for_display(f"not offered: {name} ({reason})"), file=sys.stderr)


@app.command()
def view(tool_id: ToolId, tools: Basename = "tools") -> None:
    """Show one tool as JSON, with its source."""
    from adapter.dialects.promptly import BUILT_IN
    from adapter.dialects.promptly.tool_files import find_tools

    found = find_tools(tools)
    built_in = {kind.naming.name: kind.build_tool() for kind in BUILT_IN}
    each = next((each for each in found if each.tool.name == tool_id), None)
    if each is None and tool_id in built_in:
        print("source: built-in", file=sys.stderr)
        print(dump_for_display(built_in[tool_id].to_openai()["function"], indent=2))
        return
    if each is None:
        raise _build_not_found_exit(tool_id, [*(each.tool.name for each in found), *built_in])
    print(f"source: {each.source}" + (f" ({each.file})" if each.file else ""), file=sys.stderr)
    print(dump_for_display(each.tool.model_dump(mode="json", by_alias=True, exclude_defaults=True), indent=2))


@app.command()
def add(
    id: Annotated[str, option("NAME", "Give the tool this unique name.", "--id")],
    name: Annotated[str, option("TEXT", "Describe the tool to the model with this text.", "--description", "--name")],
    command: Annotated[str, option("PROGRAM", "Run this program, given as a name or a path.", "--command")],
    argument_template: Annotated[
        list[str] | None,
        option(
            "TOKENS",
            "Pass these arguments to the program, separated by commas, with placeholders for parameters, such as "
            '"-n,{{count}},{(path)}"; repeatable.',
        ),
    ] = None,
    parameters: Annotated[str | None, option("JSON", "Define the tool's parameters with this JSON Schema.")] = None,
    parameters_file: Annotated[
        Path | None, option("FILE", "Read the JSON Schema of the tool's parameters from this file.")
    ] = None,
    echo_output: Annotated[bool, flag("Show the program's output to the user while it runs.", "--echo-output")] = False,
    truncate_output: Annotated[bool, flag("Truncate the program's output if it is long.", "--truncate-output")] = False,
    exclusive_argument_template: Annotated[
        bool,
        flag(
            "Use only the first `--argument-template` whose parameters are all given in the call.",
            "--exclusive-argument-template",
        ),
    ] = False,
    opt_in: Annotated[bool, flag("Offer the tool only if `--include-tools` matches it.", "--opt-in")] = False,
    config_file: ConfigFile = None,
) -> None:
    """Add a tool to a tools file."""
    from adapter.core.argument_checks import explain_read_error
    from adapter.core.errors import UsageError
    from adapter.core.events import JsonObject
    from adapter.dialects.promptly.tool_files import add_tool, find_target_file

    if parameters is not None and parameters_file is not None:
        raise UsageError("--parameters and --parameters-file cannot be combined; pass one of them")
    if parameters_file is not None:
        try:
            parameters = parameters_file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {parameters_file}: {explain_read_error(error)}") from error
    entry: JsonObject = {"name": id, "description": name, "executable": command}
    entry["argumentTemplate"] = [group.split(",") for group in argument_template or ()]
    if parameters is not None:
        try:
            entry["parameters"] = json.loads(parameters)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the parameters are not valid JSON: {explain_read_error(error)}") from error
    flags = {
        "echoOutput": echo_output,
        "truncateOutput": truncate_output,
        "exclusiveArgumentTemplate": exclusive_argument_template,
        "optIn": opt_in,
    }
    file = find_target_file(config_file)
    add_tool(entry | {field: True for field, is_set in flags.items() if is_set}, file)
    print(f"added {id} to {file}", file=sys.stderr)


@app.command()
def install(tools: Basename = "tools") -> None:
    """Copy the shipped tools file to the user's configuration for editing."""
    from adapter.dialects.promptly.tool_files import install_defaults

    print(install_defaults(tools))


@app.command()
def remove(
    tool_id: ToolId,
    force: Annotated[bool, flag("Remove the tool without confirmation.", "--force")] = False,
    config_file: ConfigFile = None,
) -> None:
    """Remove a tool from a tools file."""
    from adapter.core.argument_checks import explain_read_error
    from adapter.core.errors import UsageError
    from adapter.dialects.promptly.tool_files import find_target_file, remove_tool
    from adapter.dialects.promptly.tools_file_entries import parse_entries

    file = find_target_file(config_file)
    try:
        text = file.read_text(encoding="utf-8-sig") if file.is_file() else "[]"
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {explain_read_error(error)}") from error
    known = [tool.name for tool in parse_entries(text, str(file))]
    if tool_id not in known:
        raise _build_not_found_exit(tool_id, known, f" in {file}")
    if not force and not sys.stdin.isatty():
        print(
            f"adapter: {tool_id} was not removed, because confirmation needs a terminal; --force skips it",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    if not force and not typer.confirm(f"Remove tool '{tool_id}' from {file}?", err=True):
        raise typer.Exit(1)
    remove_tool(tool_id, file)
    print(f"removed {tool_id} from {file}", file=sys.stderr)


def _build_not_found_exit(tool_id: str, known: list[str], where: str = "") -> typer.Exit:
    from rapidfuzz import fuzz, process

    near = process.extractOne(tool_id, known, scorer=fuzz.ratio, score_cutoff=50)
    hint = f"did you mean {near[0]!r}?" if near else f"available: {', '.join(known) or 'none'}"
    print(escape_for_display(f"adapter: no tool {tool_id!r}{where}; {hint}"), file=sys.stderr)
    return typer.Exit(NOT_FOUND)
