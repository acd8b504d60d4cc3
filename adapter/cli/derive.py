"""`adapter derive`: derives a tool-call format from a chat template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import option
from adapter.core.errors import UsageError


def derive(
    file: Annotated[
        Path,
        typer.Argument(
            help="Read the chat template from this Jinja file, tokenizer_config.json, GGUF file or model folder."
        ),
    ],
    model: Annotated[str | None, option("NAME", "Use this model name as an additional clue to the format.")] = None,
    emit: Annotated[
        str | None,
        option(
            "NAME",
            "Write the format as adapter/parsing/formats/NAME.py, with test cases, into this checkout of the project.",
        ),
    ] = None,
) -> None:
    """Derive a model's tool-call format from its chat template."""
    from adapter.backends.format_derivation import detect_format, examine_template, hash_template
    from adapter.backends.template_files import load_chat_template
    from adapter.prompting.deriving.codegen import generate_format_files
    from adapter.prompting.deriving.derivation_report import NEXT_STEP, format_report

    template = load_chat_template(file)
    found = examine_template(template)
    if emit is None:
        print_escaped(format_report(found, detect_format(template, model)), end="")
        raise typer.Exit(0 if found.format is not None else 1)
    if found.format is None or found.description is None:
        print_escaped(f"adapter: {file}: cannot derive a format: {found.why}; {NEXT_STEP}", to_stderr=True)
        raise typer.Exit(1)
    for path in _write_files(
        generate_format_files(found.description, _validate_name(emit), template.source, hash_template(template))
    ):
        print_escaped(path)


def _validate_name(name: str) -> str:
    from adapter.parsing.formats import FORMATS

    if not name.isidentifier() or name != name.lower():
        raise UsageError(f"invalid format name {name!r}: expected lower-case letters, digits and underscores")
    if name in FORMATS:
        raise UsageError(f"format {name!r} already exists; choose another name")
    return name


def _write_files(files: dict[str, str]) -> list[str]:
    if not Path("adapter/parsing/formats").is_dir() or not Path("fixtures/cases").is_dir():
        raise UsageError("--emit needs a checkout of toolcall-adapter, and this folder is not one; change to one first")
    for path in files:
        if Path(path).exists():
            raise UsageError(f"{path} already exists; choose another name")
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    return [*files]
