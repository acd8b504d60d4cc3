"""`adapter read`: files of a model's outputs, with what was read in them as columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.shared_options import POLICY_HELP
from adapter.core.arguments import reason
from adapter.core.errors import AdapterError, UsageError

if TYPE_CHECKING:
    from adapter.integrations.batch.inputs import Source
    from adapter.integrations.batch.row_parser import RowSettings
    from adapter.integrations.batch.runner import ProgressCallback
    from adapter.integrations.batch.stats import BatchStats


def read(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="A .jsonl, .parquet or .arrow file, a folder of such, or -.")
    ],
    out: Annotated[str, typer.Option(help="The file, or the folder, to write; - for standard output.")],
    column: Annotated[str, typer.Option(help="What the model wrote: a column, or a path in one (a.0.b).")] = "text",
    format: Annotated[
        str, typer.Option(help="The format to read; auto recognises any; from-template derives it from --template.")
    ] = "auto",
    template: Annotated[Path | None, typer.Option(help="With --format from-template: the chat template.")] = None,
    policy: Annotated[str, typer.Option(help=POLICY_HELP)] = "safe",
    tools: Annotated[Path | None, typer.Option(help="JSON file with the tools that may be called.")] = None,
    tools_column: Annotated[str | None, typer.Option(help="The column with each row's own tools.")] = None,
    finish_reason: Annotated[
        str, typer.Option(help="The column with what the server said, where there is one.")
    ] = "finish_reason",
    prompt: Annotated[
        str | None, typer.Option(help="The column with the prompt: it may have opened reasoning.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; one a core when left out.", min=1)] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Read by Ray Data on a cluster; IN and OUT may be what it takes (s3://...).")
    ] = False,
) -> None:
    """Read files of a model's outputs, one row an output, and add what was read as columns."""
    from adapter.integrations.batch.inputs import find_sources
    from adapter.integrations.batch.runner import process_files

    settings = _settings(column, format, template, policy, tools, tools_column, finish_reason, prompt)
    if ray:
        from adapter.integrations.batch.ray_data import process_with_ray

        process_with_ray(source, out, settings)
        return
    sources = find_sources(source, out)
    if any(each.kind == "table" for each in sources):
        _need_pyarrow()
    with _shown(sources) as told:
        counts = process_files(sources, out, settings, jobs or _cores(), told)
    print(_summary(counts), file=sys.stderr)
    if counts.rows and counts.errors == counts.rows:
        is_column = counts.first_error.startswith("column")
        fix = "name the column of the text with --column" if is_column else "check the file"
        raise AdapterError(f"no row could be read ({counts.first_error}); {fix}. The column 'error' has all reasons.")


def _settings(
    column: str, format: str, template: Path | None, policy: str, tools: Path | None, tools_column: str | None,
    finish_reason: str, prompt: str | None,
) -> RowSettings:  # fmt: skip
    from adapter.backends.template_files import load_chat_template
    from adapter.integrations.batch.row_parser import RowSettings
    from adapter.parsing.formats import FROM_TEMPLATE

    if (format == FROM_TEMPLATE) != (template is not None):
        raise UsageError(f"--format {FROM_TEMPLATE} and --template FILE go together")
    if tools is not None and tools_column is not None:
        raise UsageError("name the tools by --tools or by --tools-column, not by both")
    return RowSettings(
        column=column,
        format=None if format == "auto" else format,
        template=load_chat_template(template).source if template else "",
        policy=policy,
        tools=_text(tools) if tools else "[]",
        tools_column=tools_column,
        finish_reason=finish_reason,
        prompt=prompt,
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read tool definitions from {str(file)!r}: {reason(error)}") from error


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError("Parquet and Arrow files need pyarrow: pip install 'toolcall-adapter[batch]'") from error


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _shown(sources: list[Source]) -> Iterator[ProgressCallback]:
    """How far it is, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"reading {len(sources)} file{'s' * (len(sources) != 1)}") as status:
        yield lambda counts: status.update(_summary(counts))


def _summary(counts: BatchStats) -> str:
    told = {
        "row{}": counts.rows,
        "call{}": counts.calls,
        "row{} with fixes": counts.fixed,
        "invalid call{}": counts.invalid,
        "row{} that could not be read": counts.errors,
    }
    return ", ".join(f"{number:,} {words.format('s' * (number != 1))}" for words, number in told.items())
