"""A tokenizer for any model's output, in which each byte and each marker is a token.

It is a Hugging Face tokenizer, so that engines and their parsers can use it like a model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from adapter.parsing.formats import FORMATS

END = "<|end_of_answer|>"
_MARKER = re.compile(r"[\"'](<[^\"'\s\\{}]{1,40}>|\[/?[A-Z_]+\]|[◁<]/?[a-z_]+[▷>])[\"']")
_WORD = re.compile(r"\s?\w+|\s+|[^\w\s]")


def markers(sources: Iterable[Path]) -> list[str]:
    found = {"<think>", "</think>", "<tool_call>", "</tool_call>", "[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"}
    for format in FORMATS.all:
        named = (*format.special_tokens, *format.end_tokens, *format.stop_sequences, *format.other_role_markers)
        found |= {mark.strip() for mark in (*named, *format.reasoning, *format.reasoning.values())}
        found |= {opener.marker.strip() for opener in format.openers}
    for source in sources:
        found |= set(_MARKER.findall(source.read_text(encoding="utf-8")))
    return sorted(mark for mark in found if re.fullmatch(r"[<\[◁]\S+[>\]▷]", mark))


def tokenizer(marks: Sequence[str], *, generation_prompt: str | None, name: str, special: bool = False) -> Any:
    from tokenizers import (  # type: ignore[import-not-found]
        AddedToken,
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
    )
    from transformers import PreTrainedTokenizerFast  # type: ignore[import-not-found]

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    base = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(alphabet)}, merges=[]))
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    base.decoder = decoders.ByteLevel()
    added = [AddedToken(mark, special=special, normalized=False) for mark in marks if mark != END]
    (base.add_special_tokens if special else base.add_tokens)(added)
    base.add_special_tokens([AddedToken(END, special=True, normalized=False)])
    made = PreTrainedTokenizerFast(tokenizer_object=base, eos_token=END, clean_up_tokenization_spaces=False)
    if special:
        made.add_special_tokens({"additional_special_tokens": [mark for mark in marks if mark != END]})
    made.name_or_path = name
    if generation_prompt is not None:
        made.chat_template = (
            "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}{{ " + _quoted(generation_prompt) + " }}{% endif %}"
        )
    return made


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def steps(made: Any, marks: Sequence[str], text: str) -> list[tuple[str, list[int]]]:
    """Split ``text`` as an engine streams it, into markers, words and single characters, each with its tokens."""
    splits = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))))
    pieces: list[str] = []
    at = 0
    for found in splits.finditer(text):
        pieces += _WORD.findall(text[at : found.start()])
        pieces.append(found[0])
        at = found.end()
    pieces += _WORD.findall(text[at:])
    assert "".join(pieces) == text
    return [(piece, made.encode(piece, add_special_tokens=False)) for piece in pieces]
