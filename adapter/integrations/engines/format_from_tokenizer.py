"""Detect a model's format, generation prompt and reasoning markers from its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

from adapter.core.events import JsonObject
from adapter.parsing.format import Format
from adapter.parsing.formats import FORMATS, get_format, guess_format
from adapter.parsing.marker_tables import END_OF_TURN, NEXT_TURN

PROMPT_TAIL = 64
"""Number of tokens at the end of a prompt that are decoded to find the generation prompt. It is always shorter."""
OUTPUT_TAIL = 32
"""Number of tokens at the end of the output that are decoded to find a closing marker of several tokens."""


class Tokenizer(Protocol):
    """The methods that an engine's tokenizer must have, as in Hugging Face's tokenizers."""

    def get_vocab(self) -> dict[str, int]: ...

    def decode(self, token_ids: Any, *, skip_special_tokens: bool) -> str: ...


def detect_engine_format(tokenizer: object) -> Format | None:
    """Return the model's format, detected from its chat template and name, or None."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("tool_use", template.get("default"))
    return _detect_format(template if isinstance(template, str) else None, getattr(tokenizer, "name_or_path", None))


@lru_cache(maxsize=16)
def _detect_format(template: str | None, model: str | None) -> Format | None:
    from adapter.backends.format_derivation import detect_format

    name = detect_format(template, model).format if template else guess_format(model)
    return None if name is None else get_format(name)


def find_generation_prompt(tokenizer: object, arguments: JsonObject) -> str | None:
    """Return the generation prompt that the chat template renders with ``arguments``, such as ``enable_thinking``, or
    None if it cannot be rendered."""
    try:
        return _find_generation_prompt(tokenizer, json.dumps(arguments, sort_keys=True))
    except TypeError:  # arguments that are not JSON, or an unhashable tokenizer
        return None


@lru_cache(maxsize=64)
def _find_generation_prompt(tokenizer: object, arguments: str) -> str | None:
    import jinja2

    render = getattr(tokenizer, "apply_chat_template", None)
    if render is None or not getattr(tokenizer, "chat_template", None):
        return None
    arguments_of_template = {**json.loads(arguments), "tokenize": False}
    messages = [{"role": "user", "content": "-"}]
    try:
        without_prompt, with_prompt = (
            render(messages, **(arguments_of_template | {"add_generation_prompt": is_added}))
            for is_added in (False, True)
        )
    except (jinja2.TemplateError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return (
        with_prompt[len(without_prompt) :]
        if isinstance(with_prompt, str) and with_prompt.startswith(without_prompt)
        else None
    )


class ReasoningMarkers:
    """Finds the reasoning markers of ``format``, or of all formats if it is None, in token ids."""

    def __init__(self, tokenizer: Tokenizer, format: Format | None) -> None:
        self._tokenizer = tokenizer
        formats = self._formats = FORMATS.all if format is None else (format,)
        self._pairs = {
            opening: closing for format_entry in formats for opening, closing in format_entry.reasoning.items()
        }
        self._turn_markers = {
            *NEXT_TURN,
            *END_OF_TURN,
            *(
                marker
                for format_entry in formats
                for marker in (*format_entry.other_role_markers, *format_entry.end_tokens, *format_entry.stop_sequences)
            ),
        }

    @cached_property
    def _markers(self) -> frozenset[str]:
        calls = (opener.marker.strip() for format_entry in self._formats for opener in format_entry.openers)
        return frozenset((*self._pairs, *self._pairs.values(), *calls))

    def contains(self, text: str) -> bool:
        return text in self._markers

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return self._tokenizer.get_vocab()

    @cached_property
    def _opening(self) -> frozenset[int]:
        return self._find_tokens(self._pairs)

    @cached_property
    def _closing(self) -> frozenset[int]:
        return self._find_tokens(self._pairs.values())

    def _find_tokens(self, markers: Iterable[str]) -> frozenset[int]:
        return frozenset(self._vocabulary[marker] for marker in markers if marker in self._vocabulary)

    @cached_property
    def _can_mark_reasoning(self) -> bool:
        """True if the model has a closing marker for reasoning in its vocabulary or its template."""
        template = str(getattr(self._tokenizer, "chat_template", None) or "")
        return bool(self._closing) or any(closing.strip() in template for closing in self._pairs.values())

    def is_reasoning_closed(self, token_ids: Sequence[int]) -> bool:
        """Return whether reasoning has ended in ``token_ids``: a prompt, perhaps with the response so far."""
        ids = list(token_ids)
        closed = max((_find_last_index(ids, token) for token in self._closing), default=-1)
        is_added = max((_find_last_index(ids, token) for token in self._opening), default=-1)
        if closed < 0 and is_added < 0:
            text = self._decode_text(ids[-PROMPT_TAIL:])
            closed = max((text.rfind(closing) for closing in self._pairs.values()), default=-1)
            is_added = max((text.rfind(opening) for opening in self._pairs), default=-1)
        return closed > is_added if closed >= 0 or is_added >= 0 else not self._can_mark_reasoning

    def closes_reasoning(self, token_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Return whether ``delta_ids``, the last tokens of ``token_ids``, close reasoning."""
        if self._closing:
            return not self._closing.isdisjoint(delta_ids)
        text = self._decode_text(list(token_ids[-OUTPUT_TAIL:]))
        return any(closing in text for closing in self._pairs.values()) or not self._can_mark_reasoning

    def are_special_tokens(self, special: Iterable[int]) -> bool:
        """Return whether a reasoning marker is one of the ``special`` tokens, which the response text lacks."""
        return not (self._opening | self._closing).isdisjoint(special)

    def select_tokens_after_reasoning(self, token_ids: Sequence[int]) -> list[int]:
        """Return the tokens after reasoning, or all tokens if reasoning is not closed."""
        ids = list(token_ids)
        return ids[max((_find_last_index(ids, token) for token in self._closing), default=-1) + 1 :]

    def count_reasoning_tokens(self, token_ids: Sequence[int], *, is_open: bool) -> int:
        """Return the number of response tokens inside reasoning. ``is_open`` is True if the prompt opens reasoning."""
        count_inside = 0
        for token in token_ids:
            if token in self._closing:
                is_open = False
            elif token in self._opening:
                is_open = True
            else:
                count_inside += is_open
        return count_inside

    def find_generation_prompt(self, prompt_ids: Sequence[int]) -> str:
        """Return the end of a prompt, after its last turn marker."""
        text = self._decode_text(list(prompt_ids[-PROMPT_TAIL:]))
        return text[
            max((at + len(marker) for marker in self._turn_markers if (at := text.rfind(marker)) >= 0), default=0) :
        ]

    def _decode_text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)


@lru_cache(maxsize=16)
def find_reasoning_markers(tokenizer: Tokenizer, format: Format | None) -> ReasoningMarkers:
    """Return the `ReasoningMarkers` of a tokenizer. They are cached, because vocabularies are large and engines create
    a parser for each response."""
    return ReasoningMarkers(tokenizer, format)


def _find_last_index(ids: list[int], token: int) -> int:
    """Return the last index of ``token``, or -1 if it does not occur."""
    return len(ids) - 1 - ids[::-1].index(token) if token in ids else -1
