"""`adapter view`: a recording, a transcript or the results of an evaluation as a page."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.terminal_output import read_text
from adapter.core.errors import UsageError

if TYPE_CHECKING:
    from adapter.recording.view.page_data import PageData


def view(
    file: Annotated[
        str, typer.Argument(help="What `serve`, `run`, `probe --record` or `eval` wrote; - for standard input.")
    ],
    html: Annotated[Path | None, typer.Option(help="Write the page here, as one file, instead of serving it.")] = None,
    format: Annotated[
        str | None, typer.Option(help="Read the answers again as this format, or auto, beside how they were read.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Read the answers again by this policy (strict, safe, approved or lenient), beside how they were read."
        ),
    ] = None,
) -> None:
    """Show what a model was sent, what it wrote and what became of that, as a page for a browser."""
    from adapter.recording.view.page import page

    text = page(_view(file, format, policy).data)
    if html is None:
        _serve(text)
        return
    try:
        html.touch(mode=0o600)
        html.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {str(html)!r}: {error.strerror}. Choose another --html.") from error


def _serve(text: str) -> None:
    """On this machine alone, until Ctrl-C."""
    from adapter.recording.view.page_server import PageServer

    with PageServer(text) as server, suppress(KeyboardInterrupt):
        print(server.address, flush=True)
        print("Ctrl-C ends it.", file=sys.stderr)
        server.serve_forever()


def _view(file: str, format: str | None, policy: str | None) -> PageData:
    from adapter.evaluation.trace_view import is_run_log, view_runs
    from adapter.protocols.recorded_exchange import holds_exchanges, read_exchanges
    from adapter.recording.transcript import Transcript
    from adapter.recording.view.page_data import ReparseOptions, view_exchanges, view_transcript

    text, name = read_text(file), Path(file).name
    again = ReparseOptions.named(format, policy)
    if holds_exchanges(text):
        return view_exchanges(read_exchanges(text, file), name, again)
    if is_run_log(text):
        if again is not None:
            raise UsageError("results of an eval have no text of a model to read again: leave out --format, --policy")
        return view_runs(text, name)
    try:
        transcript = Transcript.from_text(text, file)
    except UsageError as error:
        raise UsageError(f"{error}. What `--record` of serve, run and probe, and `eval` write can be shown.") from error
    return view_transcript(transcript, name, again)
