"""`adapter derive`: what a chat template says of its model's calls, and a format of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adapter.cli.terminal_output import print_escaped
from adapter.core.errors import UsageError


def derive(
    file: Annotated[Path, typer.Argument(help="A chat template: Jinja, tokenizer_config.json, a folder, GGUF.")],
    model: Annotated[str | None, typer.Option(help="The model's name, which may tell its format, too.")] = None,
    emit: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Write adapter/parsing/formats/NAME.py and its cases below the current folder."
        ),
    ] = None,
) -> None:
    """Derive how a model writes calls from its chat template."""
    from adapter.backends.template_detection import detect_format, examine_template, template_digest
    from adapter.backends.template_files import load_chat_template
    from adapter.prompting.deriving.codegen import generate_format_files
    from adapter.prompting.deriving.report import format_report

    template = load_chat_template(file)
    found = examine_template(template)
    if emit is None:
        print_escaped(format_report(found, detect_format(template, model)), end="")
        raise typer.Exit(0 if found.format is not None else 1)
    if found.format is None or found.description is None:
        raise UsageError(f"{file}: no format can be derived: {found.why}")
    for path in _write(
        generate_format_files(found.description, _checked(emit), template.source, template_digest(template))
    ):
        print_escaped(path)


def _checked(name: str) -> str:
    from adapter.parsing.formats import FORMATS

    if not name.isidentifier() or name != name.lower():
        raise UsageError(f"a format is called in small letters, digits and underscores, got {name!r}")
    if name in FORMATS:
        raise UsageError(f"there is a format {name!r} already; choose another name")
    return name


def _write(files: dict[str, str]) -> list[str]:
    if not Path("adapter/parsing/formats").is_dir() or not Path("fixtures/cases").is_dir():
        raise UsageError("--emit writes into a checkout of toolcall-adapter: go to its folder first")
    for path in files:
        if Path(path).exists():
            raise UsageError(f"{path} is there already; choose another name")
    for path, text in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    return [*files]
