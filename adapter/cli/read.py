"""`adapter read`: parses files of model outputs and adds the results as columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli import options
from adapter.cli.options import flag, option, parse_auto
from adapter.cli.text_input import read_text
from adapter.core.errors import AdapterError, UsageError
from adapter.core.install_advice import build_install_command
from adapter.core.text.plurals import pluralize

MAX_SHOWN = 10
"""Maximum number of formats, and of repairs, that the report lists."""

if TYPE_CHECKING:
    from adapter.integrations.batch.input_and_target_files import InputFile
    from adapter.integrations.batch.resumable_run import ProgressCallback
    from adapter.integrations.batch.stats import BatchStats


def read(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="Read this .jsonl, .parquet or .arrow file, or all such files in this folder; - means standard input.",
        ),
    ],
    out: Annotated[
        str,
        option(
            "PATH",
            "Write the rows to this .jsonl or .parquet file, or to this folder if IN is one; - means standard output.",
            "--out",
            "-o",
        ),
    ],
    column: Annotated[
        str,
        option(
            "NAME", "Read the model's text from this column, or from a path within a column, such as choices.0.text."
        ),
    ] = "text",
    format: options.Format = "auto",
    template: options.FormatTemplate = None,
    policy: options.PolicyOption = "safe",
    tools: Annotated[Path | None, option("FILE", "Match calls to the tool definitions in this JSON file.")] = None,
    tools_column: Annotated[
        str | None, option("NAME", "Match the calls of each row to the tool definitions in this column.")
    ] = None,
    finish_reason: Annotated[
        str,
        option(
            "NAME", "Read the finish reason of each answer, such as stop or length, from this column, if it exists."
        ),
    ] = "finish_reason",
    prompt: Annotated[
        str | None,
        option(
            "NAME",
            "Read the prompts from this column; required if they end with an opening reasoning tag, such as <think>.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, option("N", "Parse with N processes.", min=1, show_default="number of CPU cores")
    ] = None,
    ray: Annotated[
        bool,
        flag("Run on a Ray cluster; IN and OUT can then be any path that Ray Data accepts, such as s3://...", "--ray"),
    ] = False,
) -> None:
    """Parse files of model outputs and add the results as columns. Every row holds one output."""
    from adapter.backends.template_files import load_chat_template
    from adapter.integrations.batch.input_and_target_files import find_sources
    from adapter.integrations.batch.resumable_run import process_files
    from adapter.integrations.batch.row_parser import RowSettings
    from adapter.parsing.formats import FROM_TEMPLATE

    if (format == FROM_TEMPLATE) != (template is not None):
        raise UsageError(f"--format {FROM_TEMPLATE} and --template FILE must be given together")
    if tools is not None and tools_column is not None:
        raise UsageError("--tools and --tools-column cannot be combined; pass one of them")
    settings = RowSettings(
        column=column,
        format=parse_auto(format),
        template=load_chat_template(template).source if template else "",
        policy=policy,
        tools=read_text(str(tools)) if tools else "[]",
        tools_column=tools_column,
        finish_reason=finish_reason,
        prompt=prompt,
    )
    if ray and jobs is not None:
        raise UsageError("--ray and --jobs cannot be combined, because Ray decides how many processes run")
    if ray:
        from adapter.integrations.batch.ray_data import process_with_ray

        process_with_ray(source, out, settings)
        return
    sources = find_sources(source, out)
    if any("table" in (each.kind, each.output_kind) for each in sources):
        _require_pyarrow()
    with _show_progress(sources) as observe:
        counts = process_files(sources, out, settings, jobs or _count_cores(), observe)
    print(_format_report(counts), file=sys.stderr)
    if counts.rows and counts.errors == counts.rows:
        is_column = counts.first_error.startswith("column")
        advice = "name the column that has the text with --column" if is_column else "check the file"
        raise AdapterError(
            f"no row could be parsed ({counts.first_error}); {advice}. The column 'error' explains each row's error."
        )


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(f"Parquet and Arrow files need pyarrow: {build_install_command('batch')}") from error


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _show_progress(sources: list[InputFile]) -> Iterator[ProgressCallback]:
    """Show the progress and the remaining time on stderr, if stderr is a terminal."""
    if not sys.stderr.isatty():  # old versions of rich print an empty line even if the bar is disabled
        yield lambda _: None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from adapter.cli.progress_bars import create_progress_bar

    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(filter(None, sizes))
    columns = (TextColumn("{task.description}"), BarColumn(20), TaskProgressColumn(), TimeRemainingColumn())
    with create_progress_bar(*columns, transient=True) as progress:
        task = progress.add_task(f"reading {pluralize(len(sources), 'file')}", total=total)
        yield lambda counts: progress.update(task, completed=counts.size, description=_describe_counts(counts))


def _format_report(counts: BatchStats) -> str:
    """Return the summary, and the most frequent formats and repairs."""
    tables = {"formats": counts.formats, "fixes": counts.fixes}
    details = [f"{title}: {_format_most_common(table)}" for title, table in tables.items() if table]
    return "\n".join([_describe_counts(counts), *details])


def _format_most_common(table: Mapping[str, int]) -> str:
    ordered = sorted(table, key=lambda name: -table[name])
    shown = [f"{name} {table[name]:,}" for name in ordered[:MAX_SHOWN]]
    return ", ".join(shown) + f" and {len(table) - MAX_SHOWN} more" * (len(table) > MAX_SHOWN)


def _describe_counts(counts: BatchStats) -> str:
    totals = {
        "row{}": counts.rows,
        "call{}": counts.calls,
        "row{} with fixes": counts.fixed,
        "invalid call{}": counts.invalid,
        "row{} with errors": counts.errors,
    }
    return ", ".join(f"{number:,} {words.format('s' * (number != 1))}" for words, number in totals.items())
