"""Derives the format of a chat template, filled in a process of its own: checked, bounded in time, and remembered."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from adapter.backends.template_files import TemplateWorker, load_chat_template
from adapter.core.arguments import shown
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import register_format
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError
from adapter.prompting.deriving.detect import DetectedFormat, match_known_format
from adapter.prompting.deriving.probes import BOS, EOS, TOOLS
from adapter.prompting.deriving.result import DerivationResult, derive_format, derived_format_name

TIME_LIMIT_S = 5.0
"""Of the processor, for all of it; a usual template takes a tenth of a second."""

MAX_PROMPT = 300_000
"""Characters of one prompt that is looked at: those of real templates have some thousand."""

MAX_VARIABLES = 4
"""Of a template's own, which some join to a text without asking: they get the tools as JSON, whatever they are."""

_UNDEFINED = re.compile(r"'(\w+)' is undefined")

MAX_KEPT = 64
"""Templates of which is remembered what they say."""

_kept: dict[str, DerivationResult] = {}
_told: dict[tuple[str, str | None], DetectedFormat] = {}
_lock = threading.Lock()


def derive(template: str | Path | ChatTemplate) -> Format:
    """The format that a chat template writes, derived from the template alone, for `adapter.Parser` and the rest.

    ``template``: its text, or the path of a file as ``--template`` takes it. The format reads back what the template
    writes, hostile values too; `adapter derive FILE` shows what was found. Raises UsageError where none can be derived,
    and says why; a `Parser` without a format then recognises all that are known.
    """
    if isinstance(template, Path):
        template = load_chat_template(template)
    elif isinstance(template, str):
        template = ChatTemplate(template)
    elif not isinstance(template, ChatTemplate):
        raise UsageError(f"expected a chat template as text or its path, got {shown(template)}")
    found = examine_template(template)
    if found.format is None:
        raise UsageError(f"no format can be derived from the template: {found.why}. Leave out the format, or name one")
    return found.format


def examine_template(template: ChatTemplate) -> DerivationResult:
    """What the template says, with the reasons. The second time it is remembered, by the template's text."""
    name = derived_format_name(template.source, template.tokens)
    with _lock:
        found = _kept.get(name)
    if found is None:
        found = _examined(template, name)
    with _lock:
        _kept[name] = found
        while len(_kept) > MAX_KEPT:
            del _kept[next(iter(_kept))]
        if found.format is not None:
            register_format(found.format)
    return found


def template_digest(template: ChatTemplate) -> str:
    """SHA-256 of the template's text."""
    return hashlib.sha256(template.source.encode("utf-8", "surrogatepass")).hexdigest()


def detect_format(template: str | ChatTemplate, model: str | None = None) -> DetectedFormat:
    """Which format a model with this template writes, and why; a derived one is known to `get_format` by its name."""
    if isinstance(template, str):
        template = ChatTemplate(template)
    key = (derived_format_name(template.source, template.tokens), model)
    found = examine_template(template)
    with _lock:
        told = _told.get(key)
    if told is None:
        told = match_known_format(found, template.source, model)
        with _lock:
            _told[key] = told
            while len(_told) > MAX_KEPT:
                del _told[next(iter(_told))]
    return told


def _examined(template: ChatTemplate, name: str) -> DerivationResult:
    tokens = {"bos_token": BOS, "eos_token": EOS, **template.tokens}
    began = time.thread_time()
    faults: list[str] = []
    variables: dict[str, Json] = {}

    with TemplateWorker(ChatTemplate(template.source, tokens), TIME_LIMIT_S) as process:

        def fill(messages: Sequence[JsonObject], tools: Sequence[Json], opened: bool) -> str | None:
            if time.thread_time() - began + process.spent_s > TIME_LIMIT_S:
                raise _TooLongError
            while True:
                try:
                    prompt = process.render(messages, tools, variables, add_generation_prompt=opened)
                    break
                except ChatTemplateError as fault:
                    faults.append(str(fault))
                    wanted = _UNDEFINED.fullmatch(str(fault))
                    if wanted is None or wanted[1] in variables or len(variables) == MAX_VARIABLES:
                        return None
                    variables[wanted[1]] = json.dumps(TOOLS)
            if len(prompt) > MAX_PROMPT:
                raise _TooLongError
            return prompt

        try:
            found = derive_format(fill, name)
        except RecursionError:
            return DerivationResult(None, "what the template writes is nested too deeply")
        except OSError as error:
            return DerivationResult(None, f"no process could be started to fill the template: {error.strerror}")
        except _TooLongError:
            return DerivationResult(
                None, f"the template takes more than {TIME_LIMIT_S:g} s, or writes more than {MAX_PROMPT:,} characters"
            )
    if found.format is None and found.frame is None and faults:
        return DerivationResult(None, f"{found.why} ({faults[-1]})")
    return found


class _TooLongError(Exception):
    """The template takes too long, or writes too much."""
