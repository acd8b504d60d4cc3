"""Compare prompts rendered by the models' chat templates with the prompts of Hugging Face's library, byte for byte.

    python -m benchmarks.own_prompts FOLDER REFERENCE.json [--details] [--held-out | --seen]

``FOLDER`` has chat templates (``*.jinja``). `benchmarks.reference_prompts` writes ``REFERENCE.json`` for the same
folder. Conversations that the reference cannot render are counted separately, with whether our prompt is complete.
"""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from adapter.core.events import JsonObject
from adapter.parsing.formats import get_format, guess_format
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from adapter.prompting.template_capabilities import ProbeConversation, TemplateCapabilities, probe_template
from adapter.protocols.conversation_cache import Conversation
from adapter.protocols.template_messages import prepare_template_messages
from adapter.protocols.tool_definitions import parse_tool_set
from benchmarks.conversations import CONVERSATIONS, TOKENS, is_held_out, must_show

Fill: TypeAlias = Callable[[list[JsonObject], list[JsonObject]], str | None]
"""Renders a prompt from messages and tools, or returns None if the template rejects them."""


def here(source: str) -> Fill:
    template = ChatTemplate(source, TOKENS)

    def fill(messages: list[JsonObject], tools: list[JsonObject]) -> str | None:
        try:
            return render_chat_template(template, messages, tools)
        except ChatTemplateError:
            return None

    return fill


def traits_by(fill: Fill) -> TemplateCapabilities | None:
    trials = probe_template()
    trial: ProbeConversation = next(trials)
    while True:
        try:
            trial = trials.send(fill([dict(each) for each in trial.messages], list(trial.tools)))
        except StopIteration as stop:
            found: TemplateCapabilities | None = stop.value
            return found


def ours(fill: Fill, traits: TemplateCapabilities, source: str, name: str) -> str | None:
    """Return the prompt for a client's request, or None."""
    messages, tools = CONVERSATIONS[name]
    format = get_format(guess_format(None, source) or "hermes")
    return fill(
        prepare_template_messages(Conversation(messages), traits, format, parse_tool_set(tools)).messages, tools
    )


def verdict(prompt: str | None, reference: dict[str, Any], name: str) -> str:
    """Return ``=`` (equal), ``+`` (complete, without a reference), ``-`` (rejected or incomplete) or the similarity."""
    expected = reference.get("prompt")
    if expected is None:
        plain = (prompt or "").replace('\\"', '"').replace("\\n", "\n").replace("\\u00e5", "å")
        return "+" if prompt and all(word in plain for word in must_show(name)) else "-"
    if prompt == expected:
        return "="
    if prompt is None:
        return "-"
    return f"{difflib.SequenceMatcher(None, prompt or '', expected, autojunk=False).ratio():.3f}"


def compare(folder: Path, reference: JsonObject, details: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        fill = here(source)
        traits = traits_by(fill)
        prompts = {name: ours(fill, traits, source, name) if traits else None for name in CONVERSATIONS}
        expected = reference["templates"][path.name]
        found[path.name] = [verdict(prompts[name], expected[name], name) for name in CONVERSATIONS if traits]
        if details:
            _show(path.name, prompts, expected)
    return found


def _show(template: str, prompts: dict[str, str | None], expected: JsonObject) -> None:
    for name, prompt in prompts.items():
        wanted = expected[name].get("prompt")
        if wanted is not None and prompt != wanted:
            lines = difflib.unified_diff(wanted.split("\n"), (prompt or "").split("\n"), "reference", "ours", n=1)
            print(f"--- {template}: {name}\n" + "\n".join(lines))


def table(found: dict[str, list[str]]) -> str:
    rows = ["| template | " + " | ".join(CONVERSATIONS) + " |", "|---|" + "--|" * len(CONVERSATIONS)]
    for template, verdicts in found.items():
        mark = " *" if is_held_out(template) else ""
        cells = verdicts or ["" for _ in CONVERSATIONS]
        rows.append(f"| {template.removesuffix('.jinja')}{mark} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--details", action="store_true", help="show what differs")
    parser.add_argument("--held-out", action="store_true", help="only the templates that were not looked at")
    parser.add_argument("--seen", action="store_true", help="only the others")
    options = parser.parse_args()
    reference = json.loads(options.reference.read_text(encoding="utf-8"))
    with TemporaryDirectory() as chosen:
        for path in options.folder.glob("*.jinja"):
            if not (options.seen and is_held_out(path.name)) and not (options.held_out and not is_held_out(path.name)):
                (Path(chosen) / path.name).symlink_to(path.absolute())
        found = compare(Path(chosen), reference, options.details)
    print(table(found))
    knowing = {template: verdicts for template, verdicts in found.items() if verdicts}
    counted = [each for verdicts in knowing.values() for each in verdicts]
    equal = counted.count("=")
    none = sum("prompt" not in reference["templates"][name][each] for name in knowing for each in CONVERSATIONS)
    print(f"{len(knowing)} of {len(found)} templates know tools")
    print(f"{equal} of {len(counted) - none} prompts are equal")


if __name__ == "__main__":
    main()
