"""Derive the format of a chat template in a worker process with a time limit, and cache the result."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from adapter.backends.template_files import TemplateWorker, load_chat_template
from adapter.core.argument_checks import format_value
from adapter.core.errors import UsageError
from adapter.core.events import Json, JsonObject
from adapter.parsing.bodies.format_compiler import compile_format
from adapter.parsing.format import Format
from adapter.parsing.formats import register_format
from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError
from adapter.prompting.deriving.derive_format import DerivationResult, build_derived_name, derive_format
from adapter.prompting.deriving.format_detection import DetectedFormat, match_known_format
from adapter.prompting.deriving.known_call_locations import CannotLearnError
from adapter.prompting.deriving.learn_from_response_template import learn_response_template
from adapter.prompting.deriving.probe_conversations import BOS, EOS, TOOLS

TIME_LIMIT_S = 5.0
"""Maximum total processor time for one template, in seconds. A typical template takes a tenth of a second."""
MAX_PROMPT = 300_000
"""Maximum length of a rendered prompt, in characters. Real prompts have a few thousand."""
MAX_VARIABLES = 4
"""Maximum number of a template's undefined variables that are set. Their value is the list of tools as a JSON string,
which templates can concatenate with text."""
MAX_CACHED = 64
"""Maximum number of templates in the cache."""
_Tokens: TypeAlias = tuple[tuple[str, str], ...]
_UNDEFINED = re.compile(r"'(\w+)' is undefined")


def derive(template: str | Path | ChatTemplate) -> Format:
    """Derive a model's format from its chat template, for `adapter.Parser` and other uses of formats.

    ``template`` is the text of the template (str), or the path of a file as for ``--template`` (Path). The returned
    format has been tested: it parses the template's output correctly, including values that often break parsers.
    `adapter derive FILE` shows the details. Raises UsageError with the reason if no format can be derived; a `Parser`
    without a format then detects all known formats.
    """
    if isinstance(template, Path):
        template = load_chat_template(template)
    elif isinstance(template, str):
        template = ChatTemplate(template)
    elif not isinstance(template, ChatTemplate):
        raise UsageError(f"expected the text or the path of a chat template, got {format_value(template)}")
    found = examine_template(template)
    if found.format is None:
        raise UsageError(f"no format can be derived from the template: {found.why}; name a format, or omit it")
    return found.format


def examine_template(template: ChatTemplate) -> DerivationResult:
    """Derive the format of a template, or learn it from the template's description of answers (response template), and
    register it. Results are cached."""
    found = _examine(*_build_key(template))
    if found.format is not None:
        register_format(found.format)
    return found


def hash_template(template: ChatTemplate) -> str:
    """Return the SHA-256 of the template's text."""
    return hashlib.sha256(template.source.encode("utf-8", "surrogatepass")).hexdigest()


def detect_format(template: str | ChatTemplate, model: str | None = None) -> DetectedFormat:
    """Detect a model's format from its chat template. A derived format is registered for `get_format`."""
    if isinstance(template, str):
        template = ChatTemplate(template)
    examine_template(template)
    return _detect(*_build_key(template), model)


def _build_key(template: ChatTemplate) -> tuple[str, _Tokens, str | None]:
    """Return the template's source, its tokens, and its response template as JSON."""
    response = template.response_template
    return template.source, tuple(sorted(template.tokens.items())), json.dumps(response) if response else None


@lru_cache(maxsize=MAX_CACHED)
def _detect(source: str, tokens: _Tokens, response: str | None, model: str | None) -> DetectedFormat:
    return match_known_format(_examine(source, tokens, response), source, model)


@lru_cache(maxsize=MAX_CACHED)
def _examine(source: str, tokens: _Tokens, response: str | None) -> DerivationResult:
    found = _derive(source, tokens) if source else DerivationResult(None, "there is no chat template")
    return found if found.format is not None or response is None else _learn(response, found)


def _learn(response: str, found: DerivationResult) -> DerivationResult:
    """Learn the format from the response template. If that fails, return ``found`` with an additional reason."""
    try:
        learned = learn_response_template(json.loads(response), build_derived_name(response, {}))
    except CannotLearnError as error:
        return replace(found, why=f"{found.why}; and its response template cannot be used: {error}")
    if learned.spec is None:
        reasons = "; ".join(dict.fromkeys(learned.refusals.values()))
        why = f"{found.why}; and no format reads the calls of its response template: {reasons}"
        return replace(found, why=why, known=learned.known)
    return DerivationResult(compile_format(learned.spec), "", learned.spec, known=learned.known)


def _derive(source: str, tokens: _Tokens) -> DerivationResult:
    name = build_derived_name(source, dict(tokens))
    start_s = time.thread_time()
    faults: list[str] = []
    variables: dict[str, Json] = {}

    with TemplateWorker(
        ChatTemplate(source, {"bos_token": BOS, "eos_token": EOS, **dict(tokens)}), TIME_LIMIT_S
    ) as process:

        def fill(messages: Sequence[JsonObject], tools: Sequence[Json], opened: bool) -> str | None:
            if time.thread_time() - start_s + process.spent_s > TIME_LIMIT_S:
                raise _TooLongError
            while True:
                try:
                    prompt = process.render(messages, tools, variables, add_generation_prompt=opened)
                    break
                except ChatTemplateError as fault:
                    faults.append(str(fault))
                    missing = _UNDEFINED.fullmatch(str(fault))
                    if missing is None or missing[1] in variables or len(variables) == MAX_VARIABLES:
                        return None
                    variables[missing[1]] = json.dumps(TOOLS)
            if len(prompt) > MAX_PROMPT:
                raise _TooLongError
            return prompt

        try:
            found = derive_format(fill, name)
        except RecursionError:
            return DerivationResult(None, "the template's output is nested too deeply")
        except OSError as error:
            return DerivationResult(None, f"cannot start a process to render the template: {error.strerror}")
        except _TooLongError:
            return DerivationResult(
                None, f"the template takes more than {TIME_LIMIT_S:g} s, or writes more than {MAX_PROMPT:,} characters"
            )
    if found.format is None and found.frame is None and faults:
        return DerivationResult(None, f"{found.why} ({faults[-1]})")
    return found


class _TooLongError(Exception):
    """Raised if rendering the template exceeds `TIME_LIMIT_S` or `MAX_PROMPT`."""
