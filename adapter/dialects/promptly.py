"""Promptly's shell tools: programs that a user allows, each an entry in a JSON file.

::

    {"shellCommands": [{
      "name": "ShowFileTree", "description": "Visual directory tree listing", "executable": "tree",
      "argumentTemplate": [["-L", "{{depth}}"], ["{(path)}"]],
      "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}},
                     "required": ["path"]},
      "echoOutput": false, "truncateOutput": true, "exclusiveArgumentTemplate": false, "optIn": false
    }]}

Each group of ``argumentTemplate`` is kept when all its placeholders have a value
and dropped otherwise; with ``exclusiveArgumentTemplate`` only the first that can
be kept is used. ``{{name}}`` stands for a value, ``{(name)}`` for a path inside
the workspace. There is no shell: one token is one argument, whatever is in it. A
token that holds an array is repeated for each item; an empty array is a missing
value, and a missing one with a ``default`` has that. A value is never taken for an option: where a token begins with a
placeholder, a value that begins with ``-`` is refused unless ``--`` stands before it.

A file may also hold a plain list of entries, or one entry. Source: Promptly's
"Shell tools" document; where it is silent, the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError
from rapidfuzz import fuzz, process

from adapter.customary import CONTENT, DESTINATION, DIRECTORY, NEW_TEXT, OLD_TEXT, PATH, PATTERN, SOURCE
from adapter.dialects import wording
from adapter.dialects.base import Aliases, Dialect, Naming, Rendered, ToolArguments, expect
from adapter.errors import ToolError, UsageError
from adapter.events import Json, JsonObject
from adapter.operations import (
    Copy,
    Delete,
    Done,
    FileInfo,
    FileText,
    Glob,
    Grep,
    GrepHits,
    Listing,
    MakeDirectory,
    Move,
    Operation,
    Outcome,
    Patch,
    Patched,
    PatchNames,
    PatchText,
    Paths,
    PathValue,
    ProgramOutput,
    ReadText,
    RunProgram,
    Stat,
    Tree,
    Word,
    WriteText,
    Written,
)
from adapter.schema import resolve_references
from adapter.text.truncate import MAX_BYTES, MAX_LINES
from adapter.text.visible import visible
from adapter.tools import Tool

ENTRIES_KEY = "shellCommands"
MAX_MESSAGE = 200
"""Characters of an error that are shown to the model."""
MAX_ENTRIES = 500
"""Of a directory, and of what is found by name, that are shown."""
MAX_PAGE_BYTES = MAX_BYTES - 2_000
"""Of a page of a file: room is left for what is said above it."""

_PLACEHOLDER = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}|\{\(\s*([^()]+?)\s*\)\}")
_NAME = r"^[A-Za-z0-9_.-]{1,64}$"

# ---------------------------------------------------------------------- entries


def _parameters_schema(schema: JsonObject) -> JsonObject:
    """``schema`` without references, so that checking a value never fetches anything. Raises ValueError."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(schema, Draft202012Validator.FORMAT_CHECKER)
    except SchemaError as error:
        raise ValueError(f"is no JSON Schema: {_place(error.absolute_path)}{_cut(error.message)}") from None
    if schema.get("type", "object") != "object":
        raise ValueError(f"describes {schema['type']!r}; expected an object with the parameters as properties")
    resolved = resolve_references(schema)
    undeclared = [name for name in resolved.get("required", ()) if name not in resolved.get("properties", {})]
    if undeclared:
        raise ValueError(f"requires {', '.join(map(repr, undeclared))}, which {_near(undeclared[0], resolved)}")
    return {"type": "object", "properties": {}} | resolved


class ShellTool(BaseModel):
    """One entry, its fields named as in the document but in snake case."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, strict=True)

    name: Annotated[str, Field(pattern=_NAME)]
    description: str = ""
    executable: Annotated[str, Field(min_length=1)]
    argument_template: list[list[str]] = Field(default=[])
    parameters: Annotated[JsonObject, AfterValidator(_parameters_schema)] = Field(
        default={"type": "object", "properties": {}}
    )
    echo_output: bool = False
    truncate_output: bool = False
    exclusive_argument_template: bool = False
    opt_in: bool = False

    @model_validator(mode="after")
    def _placeholders_are_parameters(self) -> ShellTool:
        for place, group in enumerate(self.argument_template):
            for token in group:
                for name in _names(token):
                    if name not in self.parameters["properties"]:
                        raise ValueError(
                            f"argumentTemplate[{place}]: the placeholder in {token!r} {_near(name, self.parameters)}"
                        )
        return self

    def tool(self) -> Tool:
        tokens = [token for group in self.argument_template for token in group]
        paths = {path for token in tokens for _, path in _PLACEHOLDER.findall(token) if path}
        return Tool(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            argument_aliases=dict.fromkeys(paths, (*PATH, *DIRECTORY, "target")) if len(paths) == 1 else {},
            effect="execute",
            validate=self.call,
        )

    def call(self, arguments: JsonObject) -> ShellToolCall:
        """The call with these arguments. Raises pydantic's ValidationError when they do not fit ``parameters``."""
        from jsonschema import Draft202012Validator

        missing = [name for name in self.parameters.get("required", ()) if name not in arguments]
        details = [InitErrorDetails(type="missing", loc=(name,), input=arguments) for name in missing]
        for problem in Draft202012Validator(self.parameters).iter_errors(arguments):
            if problem.validator == "required" and not problem.absolute_path:
                continue
            kind = PydanticCustomError("value_error", "{error}", {"error": _cut(problem.message)})
            details.append(InitErrorDetails(type=kind, loc=tuple(problem.absolute_path), input=problem.instance))
        if details:
            raise ValidationError.from_exception_data(self.name, details)
        defaults = {
            name: schema["default"] for name, schema in self.parameters["properties"].items() if "default" in schema
        }
        return ShellToolCall(self, defaults | arguments)


def read_entries(text: str, source: str) -> list[ShellTool]:
    """The entries of a tools file. Raises UsageError that names ``source``, the tool and the field."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} is no JSON: {error}") from error
    if isinstance(content, dict):
        content = content.get(ENTRIES_KEY, [content])
    if not isinstance(content, list):
        raise UsageError(f'{source} must hold {{"{ENTRIES_KEY}": [...]}} or a list of tools')
    entries = [read_entry(entry, f"{source}, tool {number}") for number, entry in enumerate(content, 1)]
    names = [entry.name for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{source} defines {twice!r} more than once; a name stands for one tool")
    return entries


def read_entry(entry: Json, source: str) -> ShellTool:
    """One entry. Raises UsageError that lists every wrong field."""
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        source = f"{source} ({visible(entry['name'])})"
    try:
        return ShellTool.model_validate(entry)
    except ValidationError as error:
        problems = "; ".join(_field_problem(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors())
        raise UsageError(f"{source}: {problems}") from error


_FIELDS = [to_camel(name) for name in ShellTool.model_fields]


def _field_problem(place: Sequence[str | int], kind: str, message: str) -> str:
    message = message.removeprefix("Value error, ")
    if not place:
        return message
    field = _place(place).removesuffix(": ")
    if kind == "extra_forbidden":
        near = process.extractOne(str(place[0]), _FIELDS, scorer=fuzz.ratio, score_cutoff=60)
        return f"unknown field {field!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are: {_FIELDS}")
    if kind == "missing":
        return f"{field!r} is missing"
    return f"{field!r}: {message[:1].lower()}{message[1:]}"


def _near(name: str, parameters: JsonObject) -> str:
    known = list(parameters.get("properties", {}))
    near = process.extractOne(name, known, scorer=fuzz.ratio, score_cutoff=50)
    hint = f" (did you mean {near[0]!r}?)" if near else f"; there are: {', '.join(known) or 'none'}"
    return f"is none of its parameters{hint}"


def _place(path: Iterable[str | int]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return f"{text}: " if text else ""


def _cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 3]}..."


# ------------------------------------------------------------------------ calls


@dataclass(frozen=True, slots=True)
class ShellToolCall:
    """A call of a `ShellTool` whose arguments fit its parameters."""

    tool: ShellTool
    values: JsonObject

    def operation(self) -> Operation:
        return RunProgram(
            program=self.tool.executable,
            arguments=tuple(self._words()),
            echo=self.tool.echo_output,
            slice_output=self.tool.truncate_output,
        )

    def render(self, outcome: Outcome) -> Rendered:
        run = expect(outcome, ProgramOutput)
        data: JsonObject = {"exitCode": run.exit_code, "output": run.output}
        if run.skipped_lines:
            data |= {"skippedLines": run.skipped_lines, "regex": list(run.patterns)}
        return wording.program_text(run), data

    def notes(self) -> tuple[str, ...]:
        return ()

    def _words(self) -> Iterator[Word]:
        """The arguments. Raises ToolError for values that would be options, and when no alternative is complete."""
        complete = [group for group in self.tool.argument_template if self._is_complete(group)]
        if self.tool.exclusive_argument_template:
            if not complete and self.tool.argument_template:
                ways = " or ".join(", ".join(sorted(_all_names(group))) for group in self.tool.argument_template)
                raise ToolError(f"{self.tool.name} needs more arguments: {ways}. Nothing was run")
            complete = complete[:1]
        only_operands = False
        for group in complete:
            for token in group:
                for word in self._filled(token):
                    if not only_operands:
                        self._refuse_option(token, word)
                    yield word
                only_operands = only_operands or token == "--"

    def _is_complete(self, group: Sequence[str]) -> bool:
        return all(self.values.get(name) not in (None, []) for name in _all_names(group))

    def _filled(self, token: str) -> Iterator[Word]:
        """The token with its values, once for each item of an array in it."""
        lists = [name for name in _names(token) if isinstance(self.values[name], list)]
        if len(set(lists)) > 1:
            raise ToolError(f"{self.tool.name} cannot put two lists into one argument ({token!r}); nothing was run")
        for item in self.values[lists[0]] if lists else [None]:
            yield tuple(_pieces(token, self.values | ({lists[0]: item} if lists else {})))

    def _refuse_option(self, token: str, word: Word) -> None:
        first = next((piece for piece in word if piece != ""), "")
        if not token.startswith("-") and isinstance(first, str) and first.startswith("-"):
            names = ", ".join(_names(token))
            raise ToolError(
                f"{self.tool.name}: {names} is {visible(first[:60])!r}, which {self.tool.executable} would take for "
                "an option. Nothing was run; give a value that does not begin with '-'"
            )


def _pieces(token: str, values: Mapping[str, Json]) -> Iterator[str | PathValue]:
    end = 0
    for match in _PLACEHOLDER.finditer(token):
        yield token[end : match.start()]
        value, path = match.groups()
        yield _as_text(values[value]) if value else PathValue(_as_text(values[path]))
        end = match.end()
    yield token[end:]


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _names(token: str) -> list[str]:
    return [value or path for value, path in _PLACEHOLDER.findall(token)]


def _all_names(group: Sequence[str]) -> set[str]:
    return {name for token in group for name in _names(token)}


# ---------------------------------------------------------------- built-in tools
# What Promptly's defaults do with sed, a here-document, mv, cp, rm, awk, wc, ls, find and rg: no program can be talked
# into more than was asked here, writes are shown as a diff, and a link is moved or removed itself. On a sparse file of
# 20 GB awk takes the processor until its time is over and rg 11 GB of memory, and grep makes gigabytes of a pattern
# like .{1,32000}x; ls, find and rg print the line breaks in a name.


class WriteToFile(ToolArguments):
    """Write content to a file, creating or overwriting it."""

    naming = Naming("WriteToFile", effect="write", example={"file": "notes/plan.txt", "content": "first step\n"})
    file: Annotated[str, Field(description="File to write"), Aliases(*PATH)]
    content: Annotated[str, Field(description="The whole new content"), Aliases(*CONTENT)]

    def operation(self) -> Operation:
        return WriteText(self.file, self.content)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.written_text(expect(outcome, Written)), None


class SearchAndReplace(ToolArguments):
    """Replace a text in a file wherever it occurs."""

    naming = Naming(
        "SearchAndReplace",
        effect="write",
        example={"search": "old_name", "replace": "new_name", "file": "src/main.c"},
    )
    search: Annotated[str, Field(description="Text to find"), Aliases(*OLD_TEXT)]
    replace: Annotated[str, Field(description="Text to put in its place"), Aliases(*NEW_TEXT)]
    file: Annotated[str, Field(description="File to change"), Aliases(*PATH)]

    def operation(self) -> Operation:
        patch = Patch(self.search, self.replace, replace_all=True)
        return PatchText(self.file, (patch,), names=PatchNames("search", "replace", start_line=None))

    def render(self, outcome: Outcome) -> Rendered:
        return wording.patched_text(expect(outcome, Patched)), None


class MakeDirectories(ToolArguments):
    """Create a directory and its parents."""

    naming = Naming("MakeDirectory", effect="write", example={"dir": "src/parts"})
    dir: Annotated[str, Field(description="Directory to create"), Aliases(*DIRECTORY, "path")]

    def operation(self) -> Operation:
        return MakeDirectory(self.dir)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.made_text(expect(outcome, Done)), None


class RemoveFiles(ToolArguments):
    """Remove a file, or a directory with all that is in it."""

    naming = Naming("RemoveFiles", effect="delete", example={"target": "build"})
    target: Annotated[str, Field(description="File or directory to remove"), Aliases(*PATH, *DIRECTORY)]

    def operation(self) -> Operation:
        return Delete(self.target, recursive=True)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.deleted_text(expect(outcome, Done)), None


class MoveFiles(ToolArguments):
    """Move or rename a file or directory."""

    naming = Naming("MoveFiles", effect="write", example={"source": "a.txt", "destination": "docs/a.txt"})
    source: Annotated[str, Field(description="What to move"), Aliases(*SOURCE)]
    destination: Annotated[str, Field(description="Its new path"), Aliases(*DESTINATION)]

    def operation(self) -> Operation:
        return Move(self.source, self.destination)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.moved_text(expect(outcome, Done)), None


class CopyFiles(ToolArguments):
    """Copy a file, or a directory with all that is in it."""

    naming = Naming("CopyFiles", effect="write", example={"source": "a.txt", "destination": "b.txt"})
    source: Annotated[str, Field(description="What to copy"), Aliases(*SOURCE)]
    destination: Annotated[str, Field(description="The path of the copy"), Aliases(*DESTINATION)]

    def operation(self) -> Operation:
        return Copy(self.source, self.destination)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.copied_text(expect(outcome, Done)), None


class SearchText(ToolArguments):
    """Find the lines that match a regular expression, as path:line:text."""

    naming = Naming("SearchText", example={"pattern": "TODO|FIXME", "path": "src"})
    pattern: Annotated[str, Field(description="Regular expression"), Aliases(*PATTERN)]
    path: Annotated[str, Field(description="File or directory to search"), Aliases(*PATH, *DIRECTORY)]

    def operation(self) -> Operation:
        return Grep(self.pattern, self.path)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.grep_text(expect(outcome, GrepHits), self.pattern), None


class RipGrep(SearchText):
    """Find the lines that match a regular expression, leaving out ignored files."""

    naming = Naming("RipGrep", example={"pattern": "TODO|FIXME", "path": "src"})


class RipGrepWithGlob(SearchText):
    """Find the lines that match a regular expression in files whose paths match globs."""

    naming = Naming("RipGrepWithGlob", example={"pattern": "TODO", "glob": ["*.c", "!*_test.c"], "path": "src"})
    glob: Annotated[list[str], Field(description="Such as *.c or !*.min.js", min_length=1), Aliases("globs", "include")]

    def operation(self) -> Operation:
        wanted = tuple(glob for glob in self.glob if not glob.startswith("!"))
        unwanted = tuple(glob[1:] for glob in self.glob if glob.startswith("!"))
        return Grep(self.pattern, self.path, wanted, leave_out=unwanted)


class RipGrepIncludingHidden(SearchText):
    """Find the lines that match a regular expression, in hidden and ignored files, too."""

    naming = Naming("RipGrepIncludingHidden", example={"pattern": "TODO|FIXME", "path": "src"})

    def operation(self) -> Operation:
        return Grep(self.pattern, self.path, ignored=True)


class ListFiles(ToolArguments):
    """List a directory with sizes and dates."""

    naming = Naming("ListFiles", example={"path": "src"})
    path: Annotated[
        str, Field(description="Directory to list; the project folder when left out"), Aliases(*DIRECTORY, *PATH)
    ] = "."

    def operation(self) -> Operation:
        return Tree(self.path, limit=MAX_ENTRIES, details=True)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.listing_text(expect(outcome, Listing)), None


class FindFiles(ToolArguments):
    """Find files and directories by name, with * and ?."""

    naming = Naming("FindFiles", example={"pattern": "*.c", "path": "src"})
    pattern: Annotated[str, Field(description="Name to find, such as *.c"), Aliases("name", *PATTERN)]
    path: Annotated[str, Field(description="Directory to search"), Aliases(*DIRECTORY, *PATH)]

    def operation(self) -> Operation:
        return Glob(f"**/{self.pattern}", self.path, case_sensitive=True, limit=MAX_ENTRIES, directories=True)

    def render(self, outcome: Outcome) -> Rendered:
        return wording.paths_text(expect(outcome, Paths), self.pattern), None


class ShowFileContents(ToolArguments):
    """Show a text file, or lineCount lines of it after the first startLine lines."""

    naming = Naming(
        "ShowFileContents",
        example={"file": "src/main.c", "startLine": 40, "lineCount": 20},
        max_lines=MAX_PAGE_BYTES,
    )
    file: Annotated[str, Field(description="File to show"), Aliases(*PATH)]
    startLine: Annotated[int, Field(description="Lines to skip", ge=0), Aliases("offset", "skip")] = 0
    lineCount: Annotated[int | None, Field(description="Lines to show", ge=1), Aliases("limit")] = None

    def operation(self) -> Operation:
        start = self.startLine + 1 if self.startLine else None
        return ReadText(self.file, start, max_lines=self.lineCount or MAX_LINES)

    def render(self, outcome: Outcome) -> Rendered:
        def read_on(line: int) -> str:
            return f"for more: startLine={line - 1}"

        read = expect(outcome, FileText)
        if read.end_line - read.start_line + 1 == self.lineCount:  # all that was asked for
            read = replace(read, truncated=False)
        return wording.plain_page(read, MAX_PAGE_BYTES, read_on), None


class LineCount(ToolArguments):
    """Count the lines of a file."""

    naming = Naming("LineCount", example={"file": "src/main.c"})
    file: Annotated[str, Field(description="File to count"), Aliases(*PATH)]

    def operation(self) -> Operation:
        return Stat(self.file, count_lines=True)

    def render(self, outcome: Outcome) -> Rendered:
        info = expect(outcome, FileInfo)
        return f"{info.lines} {info.path}", None


BUILT_IN = (
    *(WriteToFile, SearchAndReplace, MakeDirectories, RemoveFiles, MoveFiles, CopyFiles),
    *(ShowFileContents, LineCount, ListFiles, FindFiles),
    *(SearchText, RipGrep, RipGrepWithGlob, RipGrepIncludingHidden),
)
OPT_IN = frozenset({RipGrepIncludingHidden.naming.name})
"""Of the built-in ones those that wait for an ``include``."""

# --------------------------------------------------------------------- the dialect


@cache
def default_text() -> str:
    """The shipped tools file."""
    return files("adapter.dialects").joinpath("promptly_tools.json").read_text(encoding="utf-8")


def default_entries() -> list[ShellTool]:
    return read_entries(default_text(), "the shipped tools file")


def make_dialect(entries: Iterable[ShellTool], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> Dialect:
    """The dialect with the built-in tools and ``entries``, of which the first of a name counts, also before a
    built-in one.

    ``include``: only tools whose names contain one of these, opt-in ones among
    them; without it all but the opt-in ones. ``exclude``: none whose names
    contain one of these. Letters count as they are. Raises UsageError when
    an ``include`` matches nothing, and when no tool is left.
    """
    first: dict[str, ShellTool] = {}
    for entry in entries:
        first.setdefault(entry.name, entry)
    offered = {kind.naming.name: kind.naming.name in OPT_IN for kind in BUILT_IN} | {
        name: entry.opt_in for name, entry in first.items()
    }
    for wanted in include:
        if not any(wanted in name for name in offered):
            raise UsageError(f"no tool's name contains {wanted!r}; there are: {', '.join(offered)}")
    chosen = {
        name
        for name, opt_in in offered.items()
        if (any(wanted in name for wanted in include) if include else not opt_in)
        and not any(unwanted in name for unwanted in exclude)
    }
    if not chosen:
        raise UsageError(f"no tool is left of: {', '.join(offered)}; include or exclude others")
    return Dialect(
        name="promptly",
        title="Promptly",
        classes=[kind for kind in BUILT_IN if kind.naming.name in chosen - first.keys()],
        defined=tuple(entry.tool() for entry in first.values() if entry.name in chosen),
    )


DIALECT = make_dialect(default_entries())
