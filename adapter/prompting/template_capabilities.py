"""What a chat template takes, found by having it filled with short conversations and looking at what comes out.

Templates refuse what they were not made for (a second system message, a call's id that is no nine characters), or
leave it out without a word. Neither is written down anywhere, so it is tried: `examine` asks whoever can make them for
a handful of prompts, and says how a conversation must be put so that all of it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from adapter.core.events import Json, JsonObject

MARK = "zq"
"""Begins every word of the conversations that are tried: none of them stands in a template."""

_NAME, _OTHER, _KEY, _VALUE = "zqread", "zqlist", "zqkey", "zqvalue"
_SYSTEM, _LATER, _ASKED, _MORE, _SAID, _TEXT = "zqsystem", "zqlater", "zqasked", "zqmore", "zqsaid", "zqtext"
_RESULTS = ("zqfirst", "zqsecond")

TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "zqdescription",
            "parameters": {
                "type": "object",
                "properties": {_KEY: {"type": "string", "description": "zqdescribed"}},
                "required": [_KEY],
            },
        },
    }
    for name in ("zqtool", _OTHER)
]

Arguments: TypeAlias = Literal["object", "text"]
Ids: TypeAlias = Literal["any", "nine", "named"]
System: TypeAlias = Literal["anywhere", "first", "none"]


@dataclass(frozen=True, slots=True)
class TemplateCapabilities:
    """``arguments``: of past calls, as an object or as its JSON. ``silence``: the content of an answer that only
    calls. ``ids``: any, of nine letters or digits, or ``functions.NAME:NUMBER``. ``several``: calls in one answer.
    ``system``: where messages of the system may stand. ``users``: two messages of the user may follow one another.
    ``between``: what the model must seem to say between a result and a message of the user; None where nothing.
    ``as_text``: a past call may be put as the content of its answer, and nothing else changes; ``only_text``: it must
    be, for the template leaves out calls (Granite 3, LFM2).
    ``closers``: the tags that end a result. ``generation_prompt``: what follows the conversation; the model's answer
    follows that."""

    arguments: Arguments = "object"
    empty_content: Literal[""] | None = None
    ids: Ids = "any"
    parallel_calls: bool = True
    system: System = "anywhere"
    users: bool = True
    between: str | None = None
    as_text: bool = False
    only_text: bool = False
    generation_prompt: str | None = None
    closers: tuple[str, ...] = ()


CAREFUL = TemplateCapabilities(empty_content="", parallel_calls=True, system="first", users=False)
"""For a template that nobody can look into: what all take."""


@dataclass(frozen=True, slots=True)
class ProbeConversation:
    """A conversation to be filled into the template. The answer is the prompt, or None where it is refused."""

    messages: Sequence[JsonObject]
    tools: Sequence[Json] = ()


Trials: TypeAlias = Generator[ProbeConversation, str | None, TemplateCapabilities | None]


def probe_template() -> Trials:
    """The template's traits; None where it has no place for tools and their results."""
    shown = yield ProbeConversation([_user(_ASKED)], TOOLS)
    if shown is None or not _holds(shown, _OTHER, _KEY, "zqdescription"):
        return None
    generation_prompt = shown.rpartition(_ASKED)[2] if _ASKED in shown else None
    basis = yield from _basis()
    only_text = basis is None
    arguments, silence, ids = basis or ("object", "", "any")
    made = TemplateCapabilities(arguments, silence, ids, generation_prompt=generation_prompt)
    said: JsonObject = {"role": "assistant", "content": _TEXT}
    answers = (said, said) if only_text else (_answer(made, _NAME), _answer(made, _NAME, _NAME))
    one = [_user(_ASKED), answers[0], _result(made, 0)]
    two = [_user(_ASKED), answers[1], _result(made, 0), _result(made, 1)]
    ended = (yield ProbeConversation(one, TOOLS)) or ""
    if only_text and not _holds(ended, _TEXT, _RESULTS[0]):
        return None
    closers = tuple(dict.fromkeys(_CLOSERS.findall(ended.rpartition(_RESULTS[0])[2])))
    values = () if only_text else (f"{_VALUE}0", f"{_VALUE}1")
    several = _holds((yield ProbeConversation(two, TOOLS)), *values, *_RESULTS)
    as_text = only_text or (yield from _takes_text(one))
    system = yield from _system()
    users = _holds((yield ProbeConversation([_user(_ASKED), _user(_MORE)], TOOLS)), _ASKED, _MORE)
    between = yield from _between(one)
    return TemplateCapabilities(
        arguments=arguments,
        empty_content=silence,
        ids=ids,
        parallel_calls=several,
        system=system,
        users=users,
        between=between,
        as_text=as_text,
        only_text=only_text,
        closers=closers,
        generation_prompt=generation_prompt,
    )


_CLOSERS = re.compile(r"</[^\s<>]+>|\[/[A-Z_]+\]")


def _basis() -> Generator[ProbeConversation, str | None, tuple[Arguments, Literal[""] | None, Ids] | None]:
    """The first way of putting a call and its result in which both are shown."""
    for ids, silence, arguments in product(("any", "nine"), (None, ""), ("object", "text")):
        made = TemplateCapabilities(arguments, silence, ids)  # type: ignore[arg-type]
        result = _result(made, 0)
        shown = _talk((yield ProbeConversation([_user(_ASKED), _answer(made, _NAME), result], TOOLS)))
        if not _holds(shown, _KEY, _VALUE, _RESULTS[0]) or _is_mangled(shown or ""):
            continue
        if _holds(shown, f"functions.{_NAME}:0"):
            return made.arguments, made.empty_content, "named"  # its results refer to the calls by such ids
        if _holds(shown, _id(made, 0)):  # Kimi K2 has the name in the id, and nowhere else
            del result["name"]
            nameless = _talk((yield ProbeConversation([_user(_ASKED), _answer(made, _NAME), result], TOOLS)))
            if nameless is not None and _NAME not in nameless:
                return made.arguments, made.empty_content, "named"
        if _holds(shown, _NAME):
            return made.arguments, made.empty_content, made.ids
    return None


def _talk(shown: str | None) -> str | None:
    """What follows the first words of the user: not the tools, which have the same keys."""
    return shown.partition(_ASKED)[2] if shown and _ASKED in shown else shown


def _is_mangled(shown: str) -> bool:
    """Whether an object was put as Python shows it, or a text of JSON as one more JSON text."""
    return f"'{_KEY}'" in shown or f'\\"{_KEY}' in shown


def _takes_text(one: Sequence[JsonObject]) -> Generator[ProbeConversation, str | None, bool]:
    with_call = yield ProbeConversation(one, TOOLS)
    with_text = yield ProbeConversation([one[0], {"role": "assistant", "content": _TEXT}, one[2]], TOOLS)
    if with_call is None or with_text is None or with_text.count(_TEXT) != 1:
        return False
    before, _, after = with_text.partition(_TEXT)
    return with_call.startswith(before) and with_call.endswith(after)


def _system() -> Generator[ProbeConversation, str | None, System]:
    first: JsonObject = {"role": "system", "content": _SYSTEM}
    if not _holds((yield ProbeConversation([first, _user(_ASKED)], TOOLS)), _SYSTEM, _ASKED):
        return "none"
    later: JsonObject = {"role": "system", "content": _LATER}
    talk = [first, _user(_ASKED), {"role": "assistant", "content": _SAID}, later, _user(_MORE)]
    return "anywhere" if _holds((yield ProbeConversation(talk, TOOLS)), _SYSTEM, _LATER, _MORE) else "first"


def _between(one: Sequence[JsonObject]) -> Generator[ProbeConversation, str | None, str | None]:
    if _holds((yield ProbeConversation([*one, _user(_MORE)], TOOLS)), _MORE):
        return None
    silent = yield ProbeConversation([*one, {"role": "assistant", "content": ""}, _user(_MORE)], TOOLS)
    return "" if _holds(silent, _MORE) else "..."


def _holds(shown: str | None, *words: str) -> bool:
    return shown is not None and all(word in shown for word in words)


def _user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def _id(traits: TemplateCapabilities, number: int) -> str:
    return f"zqcalled{number}" if traits.ids == "nine" else f"zq_called_{number}"


def _answer(traits: TemplateCapabilities, *names: str) -> JsonObject:
    calls = []
    for number, name in enumerate(names):
        arguments: Json = {_KEY: f"{_VALUE}{number}"}
        written = json.dumps(arguments) if traits.arguments == "text" else arguments
        function = {"name": name, "arguments": written}
        calls.append({"id": _id(traits, number), "type": "function", "function": function})
    return {"role": "assistant", "content": traits.empty_content, "tool_calls": calls}


def _result(traits: TemplateCapabilities, number: int) -> JsonObject:
    return {"role": "tool", "tool_call_id": _id(traits, number), "name": _NAME, "content": _RESULTS[number]}


# ------------------------------------------------------------------ ids


_NINE = re.compile(r"[A-Za-z0-9]{9}")


def is_mistral_call_id(call_id: str) -> bool:
    return _NINE.fullmatch(call_id) is not None
