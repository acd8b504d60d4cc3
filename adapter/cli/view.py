"""`adapter view`: shows a recording, a transcript or evaluation results in the browser."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.options import option
from adapter.cli.text_input import read_text
from adapter.core.errors import UsageError
from adapter.core.private_files import write_private

if TYPE_CHECKING:
    from adapter.recording.view.view_page_data import PageData


def view(
    file: Annotated[
        str,
        typer.Argument(
            help="Show this recording of `serve`, `run` or `probe`, or these results of `eval`; - means standard input."
        ),
    ],
    html: Annotated[Path | None, option("FILE", "Write the page to this file instead of serving it.")] = None,
    format: Annotated[
        str | None, option("NAME", "Parse the answers again in this format, or auto, and compare the results.")
    ] = None,
    policy: Annotated[
        str | None,
        option(
            "NAME",
            "Parse the answers again with this policy (strict, safe, approved or lenient), and compare the results.",
        ),
    ] = None,
) -> None:
    """Show a recording in the browser. The page has prompts, raw output and parsed results."""
    from adapter.recording.view.view_page import render_view_page

    text = render_view_page(_load_page_data(file, format, policy).data)
    if html is None:
        _serve(text)
    else:
        write_private(html, text, "--html")


def _serve(text: str) -> None:
    """Serve the page on the loopback interface until the user presses Ctrl-C."""
    from adapter.recording.view.page_server import PageServer

    with PageServer(text) as server, suppress(KeyboardInterrupt):
        print(server.address, flush=True)
        print("Press Ctrl-C to stop.", file=sys.stderr)
        server.serve_forever()


def _load_page_data(file: str, format: str | None, policy: str | None) -> PageData:
    from adapter.evaluation.eval_view_data import is_run_log, view_runs
    from adapter.protocols.recorded_exchange import is_exchange_recording, read_exchanges
    from adapter.recording.transcript import Transcript
    from adapter.recording.view.view_page_data import ReparseOptions, build_exchanges_view, build_transcript_view

    text, name = read_text(file), Path(file).name
    reparse = ReparseOptions.from_names(format, policy)
    if is_exchange_recording(text):
        return build_exchanges_view(read_exchanges(text, file), name, reparse)
    if is_run_log(text):
        if reparse is not None:
            raise UsageError("results of `adapter eval` cannot be parsed again; omit --format and --policy")
        return view_runs(text, name)
    try:
        transcript = Transcript.from_text(text, file)
    except UsageError as error:
        raise UsageError(
            f"{error}. Expected a file written by serve, run or probe with --record, or by eval."
        ) from error
    return build_transcript_view(transcript, name, reparse)
