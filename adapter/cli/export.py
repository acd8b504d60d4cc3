"""`adapter export`: converts recordings and transcripts to training data."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapter.cli.escaped_output import print_escaped
from adapter.cli.options import option
from adapter.cli.text_input import read_text
from adapter.core.errors import UsageError
from adapter.core.private_files import write_private
from adapter.core.text.plurals import pluralize

if TYPE_CHECKING:
    from adapter.core.events import JsonObject
    from adapter.recording.training_samples import TrainingSample

SHAPES = ("openai", "sharegpt", "text")


def export(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Export these recordings of `serve --record` or `run --record`, or all recordings in these folders."
        ),
    ],
    out: Annotated[
        str, option("FILE", "Write the samples to this .jsonl file; - means standard output.", "--out", "-o")
    ],
    shape: Annotated[
        str, option("NAME", "Write the samples in this format: openai, sharegpt or text.", "--as")
    ] = "openai",
    template: Annotated[
        Path | None, option("FILE", "Render the samples with this chat template; required by `--as text`.")
    ] = None,
    only: Annotated[
        str,
        option(
            "NAMES",
            "Skip answers that do not meet all these conditions, separated by commas: valid (complete, without "
            "invalid calls), unfixed (no call was repaired), calls (has calls), approved (no call was denied), "
            "succeeded (no call failed), answered (the conversation ended with an answer).",
        ),
    ] = "",
) -> None:
    """Export recordings and transcripts as training data. Every answer becomes one line."""
    from adapter.recording.file_replay import find_transcripts
    from adapter.recording.training_formats import UnrepresentableSample
    from adapter.recording.training_samples import find_failing_filter, parse_filters

    filters = parse_filters(only)
    if out != "-" and Path(out).exists():
        raise UsageError(f"{out} already exists; remove it, or choose another file with --out")
    skipped: Counter[str] = Counter()
    lines: list[str] = []
    with ExitStack() as stack:
        convert = _make_converter(shape, template, stack)
        for sample in (each for file in find_transcripts(files) for each in _read_samples(file)):
            if isinstance(sample, str):
                skipped[sample] += 1
            elif name := find_failing_filter(sample, filters):
                skipped[f"not {name}"] += 1
            else:
                try:
                    lines.append(json.dumps(convert(sample)) + "\n")
                except UnrepresentableSample as error:
                    skipped[str(error)] += 1
    if out == "-":
        sys.stdout.write("".join(lines))
    else:
        write_private(Path(out), "".join(lines), "--out")
    print(f"{pluralize(len(lines), 'sample')}, {pluralize(skipped.total(), 'answer')} skipped", file=sys.stderr)
    for reason, count in skipped.most_common():
        print_escaped(f"{count:6}  {reason}", to_stderr=True)


def _read_samples(file: Path) -> Iterator[TrainingSample | str]:
    from adapter.protocols.recorded_exchange import is_exchange_recording, read_exchanges
    from adapter.recording.training_samples import list_exchange_samples, list_transcript_samples
    from adapter.recording.transcript import Transcript

    text = read_text(str(file))
    if is_exchange_recording(text):
        return list_exchange_samples(read_exchanges(text, str(file)))
    return list_transcript_samples(Transcript.from_text(text, str(file)))


def _make_converter(name: str, template: Path | None, stack: ExitStack) -> Callable[[TrainingSample], JsonObject]:
    from adapter.recording.training_formats import (
        Render,
        UnrepresentableSample,
        to_openai,
        to_sharegpt,
        to_templated_text,
    )

    if name not in SHAPES:
        raise UsageError(f"unknown --as {name!r}; expected {', '.join(SHAPES)}")
    if (name == "text") != (template is not None):
        raise UsageError("--as text and --template FILE must be given together")
    if template is None:
        return to_openai if name == "openai" else to_sharegpt
    from adapter.backends.template_files import TemplateWorker, load_chat_template
    from adapter.prompting.chat_template import ChatTemplateError

    worker = stack.enter_context(TemplateWorker(load_chat_template(template)))

    def render(messages: object, tools: object, adds_prompt: bool) -> str:
        try:
            return worker.render(messages, tools, add_generation_prompt=adds_prompt)  # type: ignore[arg-type]
        except ChatTemplateError as error:
            raise UnrepresentableSample(f"rejected by the template: {error}") from error

    typed: Render = render
    return lambda sample: to_templated_text(sample, typed)
