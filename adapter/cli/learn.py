"""`adapter learn`: learns a format from example outputs (`adapter derive` derives one from a chat template)."""

from __future__ import annotations

from json import JSONDecodeError
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import option
from adapter.core.argument_checks import explain_read_error
from adapter.core.errors import UsageError
from adapter.core.events import JsonObject

if TYPE_CHECKING:
    from adapter.prompting.deriving.learn_from_examples import LearningExample, LearningResult

MAX_CHARACTERS = 1_000_000
"""Maximum length of the examples file, in characters."""
_EXPECTED = 'expected {"text": "the model\'s raw text", "calls": [...]}'
MAX_EXAMPLES = 100
"""Maximum number of examples in the examples file."""


def learn(
    file: Annotated[
        Path,
        typer.Argument(
            help='Learn from this JSON Lines file with at least three examples: {"text": "...", "calls": [...]}.'
        ),
    ],
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "Write the format to this file.",
            "--output",
            "-o",
            show_default="the examples with the suffix .toml",
        ),
    ] = None,
    name: Annotated[
        str | None, option("NAME", "Give the format this name.", show_default="the output file's name")
    ] = None,
) -> None:
    """Learn a tool-call format from examples."""
    from adapter.parsing.format_file import write_format_file
    from adapter.prompting.deriving.learn_from_examples import learn_format

    examples = read_examples(file)
    output = output or file.with_suffix(".toml")
    if output.suffix != ".toml":
        raise UsageError(f"the format file {output} must end with .toml, so that --format recognizes it as a file")
    learned = learn_format(examples, _format_name(name or output.stem))
    if learned.spec is None:
        for line in _explain_refusal(learned):
            print_escaped(line)
        raise typer.Exit(1)
    try:
        with output.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(write_format_file(learned.spec))
    except FileExistsError:
        raise UsageError(f"{output} already exists; remove it, or choose another file with --output") from None
    for line in _list_report_lines(learned, output, len(examples)):
        print_escaped(line)


def read_examples(path: Path) -> list[LearningExample]:
    """Return the examples in a JSON Lines file. Raises UsageError, whose message names the invalid line."""
    from adapter.core.bounded_parsing import parse_json
    from adapter.prompting.deriving.learn_from_examples import MIN_EXAMPLES

    try:
        with path.open(encoding="utf-8-sig") as opened:
            text = opened.read(MAX_CHARACTERS + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {explain_read_error(error)}") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(text) > MAX_CHARACTERS or len(lines) > MAX_EXAMPLES:
        raise UsageError(
            f"{path} is too large: it may contain at most {MAX_EXAMPLES} examples and {MAX_CHARACTERS:,} characters"
        )
    examples = []
    for number, line in lines:
        try:
            examples.append(_parse_example(parse_json(line)))
        except JSONDecodeError as error:
            raise UsageError(f"{path}, line {number}: invalid JSON ({error}); {_EXPECTED}") from error
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {error}") from error
    if sum(bool(example.calls) for example in examples) < MIN_EXAMPLES:
        raise UsageError(f"{path} has too few examples: at least {MIN_EXAMPLES} with calls are needed")
    return examples


def _parse_example(value: Any) -> LearningExample:
    from adapter.prompting.deriving.learn_from_examples import LearningExample

    match value:
        case {"text": str(text), "calls": list(calls)}:
            return LearningExample(text, list(map(_parse_call, calls)))
    raise ValueError(_EXPECTED)


def _parse_call(value: Any) -> tuple[str, JsonObject]:
    match value:
        case {"name": str(name), "arguments": dict(arguments)} if name:
            return name, arguments
    raise ValueError(f'expected "calls": a list of {{"name": "...", "arguments": {{...}}}}, got {str(value)[:60]!r}')


def _format_name(text: str) -> str:
    import re

    from adapter.parsing.formats import FORMATS

    name = re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_")[:60] or "learned"
    name = f"format_{name}" if name[0].isdigit() else name
    if name in FORMATS or name in FORMATS.by_alias:
        raise UsageError(f"{name!r} is the name of a built-in format; choose another one with --name")
    return name


def _list_report_lines(learned: LearningResult, output: Path, count: int) -> list[str]:
    assert learned.spec is not None
    lines = [f"Wrote {output}: a format with the body {learned.spec.body!r}, which parses all {count} examples."]
    lines.append(
        f"Cross-check: {count - len(learned.left_out)} of {count} examples are parsed by a format learned from the "
        "others."
    )
    lines += [f"  learned without example {index + 1}: {why}" for index, why in learned.left_out]
    if learned.left_out:
        lines.append("  More examples make the format more reliable.")
    if learned.known is not None:
        lines.append(
            f"The built-in format {learned.known!r} also parses all examples, and can repair more malformed calls."
        )
    return [*lines, f"Use it with --format {output}"]


def _explain_refusal(learned: LearningResult) -> list[str]:
    lines = ["No format parses all examples:"]
    lines += [f"  {body}: {why}" for body, why in learned.refusals.items()]
    if learned.known is not None:
        lines.append(f"The built-in format {learned.known!r} parses all examples: use --format {learned.known}")
    return lines
