"""What a tokenizer tells of its model: the format that it writes, its generation prompt, its marks of reasoning."""

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
"""Tokens of a prompt's end in which its generation prompt is looked for."""

OUTPUT_TAIL = 32
"""Tokens that hold a closing marker which is no token of its own, whatever came with it."""


class Tokenizer(Protocol):
    """What is asked of an engine's tokenizer; those of Hugging Face have all of it."""

    def get_vocab(self) -> dict[str, int]: ...

    def decode(self, token_ids: Any, *, skip_special_tokens: bool) -> str: ...


def detect_engine_format(tokenizer: object) -> Format | None:
    """The format that the model writes, by its chat template and its name; None where neither tells."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("tool_use", template.get("default"))
    return _recognised(template if isinstance(template, str) else None, getattr(tokenizer, "name_or_path", None))


@lru_cache(maxsize=16)
def _recognised(template: str | None, model: str | None) -> Format | None:
    from adapter.backends.template_detection import detect_format

    found = detect_format(template, model).format if template else guess_format(model)
    return None if found is None else get_format(found)


def generation_prompt(tokenizer: object, arguments: JsonObject) -> str | None:
    """What the tokenizer's template puts before an answer, filled with ``arguments`` (``enable_thinking``, ...); None
    where there is no template that says so."""
    try:
        return _generation_prompt(tokenizer, json.dumps(arguments, sort_keys=True))
    except TypeError:  # arguments that are no JSON, a tokenizer that is not hashable
        return None


@lru_cache(maxsize=64)
def _generation_prompt(tokenizer: object, arguments: str) -> str | None:
    import jinja2

    fill = getattr(tokenizer, "apply_chat_template", None)
    if fill is None or not getattr(tokenizer, "chat_template", None):
        return None
    arguments_of_template = {**json.loads(arguments), "tokenize": False}
    messages = [{"role": "user", "content": "-"}]
    try:
        before, whole = (
            fill(messages, **(arguments_of_template | {"add_generation_prompt": opened})) for opened in (False, True)
        )
    except (jinja2.TemplateError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return whole[len(before) :] if isinstance(whole, str) and whole.startswith(before) else None


class ReasoningMarkers:
    """The markers of reasoning of one format, or of all (``format`` None), as the tokenizer has them."""

    def __init__(self, tokenizer: Tokenizer, format: Format | None) -> None:
        self._tokenizer = tokenizer
        formats = self._formats = FORMATS.all if format is None else (format,)
        self._pairs = {opening: closing for entry in formats for opening, closing in entry.reasoning.items()}
        self._turns = {
            *NEXT_TURN,
            *END_OF_TURN,
            *(
                mark
                for entry in formats
                for mark in (*entry.other_role_markers, *entry.end_tokens, *entry.stop_sequences)
            ),
        }

    @cached_property
    def _markers(self) -> frozenset[str]:
        """Those of reasoning, and of calls."""
        calls = (opener.marker.strip() for entry in self._formats for opener in entry.openers)
        return frozenset((*self._pairs, *self._pairs.values(), *calls))

    def have(self, text: str) -> bool:
        return text in self._markers

    @cached_property
    def _vocabulary(self) -> dict[str, int]:
        return self._tokenizer.get_vocab()

    @cached_property
    def _opening(self) -> frozenset[int]:
        return self._tokens(self._pairs)

    @cached_property
    def _closing(self) -> frozenset[int]:
        return self._tokens(self._pairs.values())

    def _tokens(self, markers: Iterable[str]) -> frozenset[int]:
        return frozenset(self._vocabulary[marker] for marker in markers if marker in self._vocabulary)

    @cached_property
    def _is_known(self) -> bool:
        """Whether the model can mark reasoning at all."""
        template = str(getattr(self._tokenizer, "chat_template", None) or "")
        return bool(self._closing) or any(closing.strip() in template for closing in self._pairs.values())

    def are_closed(self, token_ids: Sequence[int]) -> bool:
        """Whether reasoning is over by ``token_ids``, of a prompt or of a prompt with its answer so far."""
        ids = list(token_ids)
        closed = max((_last(ids, token) for token in self._closing), default=-1)
        opened = max((_last(ids, token) for token in self._opening), default=-1)
        if closed < 0 and opened < 0:
            text = self._text(ids[-PROMPT_TAIL:])
            closed = max((text.rfind(closing) for closing in self._pairs.values()), default=-1)
            opened = max((text.rfind(opening) for opening in self._pairs), default=-1)
        return closed > opened if closed >= 0 or opened >= 0 else not self._is_known

    def close_in(self, token_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Whether the last tokens, ``delta_ids``, of ``token_ids`` close reasoning."""
        if self._closing:
            return not self._closing.isdisjoint(delta_ids)
        text = self._text(list(token_ids[-OUTPUT_TAIL:]))
        return any(closing in text for closing in self._pairs.values()) or not self._is_known

    def are_special_tokens(self, special: Iterable[int]) -> bool:
        """Whether one of them would not stand in an answer's text: it is one of the tokens that are left out."""
        return not (self._opening | self._closing).isdisjoint(special)

    def after(self, token_ids: Sequence[int]) -> list[int]:
        """The tokens that follow reasoning; all where none of them closes it."""
        ids = list(token_ids)
        return ids[max((_last(ids, token) for token in self._closing), default=-1) + 1 :]

    def count(self, token_ids: Sequence[int], *, is_open: bool) -> int:
        """How many of an answer's tokens are within reasoning, which the prompt has opened where ``is_open``."""
        found = 0
        for token in token_ids:
            if token in self._closing:
                is_open = False
            elif token in self._opening:
                is_open = True
            else:
                found += is_open
        return found

    def generation_prompt(self, prompt_ids: Sequence[int]) -> str:
        """The end of a prompt: what follows the last mark of a turn in it."""
        text = self._text(list(prompt_ids[-PROMPT_TAIL:]))
        return text[max((at + len(mark) for mark in self._turns if (at := text.rfind(mark)) >= 0), default=0) :]

    def _text(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)


@lru_cache(maxsize=16)
def reasoning_markers_of(tokenizer: Tokenizer, format: Format | None) -> ReasoningMarkers:
    """Kept, because a tokenizer's vocabulary is large, and engines make a parser for each answer."""
    return ReasoningMarkers(tokenizer, format)


def _last(ids: list[int], token: int) -> int:
    """Where ``token`` stands last, -1 where it does not."""
    return len(ids) - 1 - ids[::-1].index(token) if token in ids else -1
