"""Detect text that a model copied in place of a real value: placeholders, error messages and guardrail messages."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.core.events import ERROR_LABEL, Json, JsonObject
from adapter.prompting.intent.text_values import find_paths
from adapter.tools.argument_synonyms import CONTENT, DESTINATION, NEW_TEXT, PATH, SOURCE
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

MAX_PLACEHOLDER = 80
"""Maximum length of a placeholder, in characters."""
MAX_KNOWN = 5
"""Maximum number of known values that a message to the model lists."""
WORDS = 4
"""Number of consecutive words that a text must share with a message to count as a copy."""
BEGINNING = 200
"""Number of characters at the start of an error message that are compared with the start of an argument."""
SHORT = 120
"""Maximum length of a file text that is compared completely instead of only at its start, in characters."""
MIN_SHARE = 0.3
"""Share of an answer's words that must be copied for the answer to count as a copy."""

_BRACKETED = re.compile(r"(?:<|\{\{?|\[|\$\{|__|%)\s*([a-z][\w .'’-]*?)\s*(?:>|\}\}?|\]|__|%)", re.IGNORECASE)
_YOURS = re.compile(
    r"(?:(?:insert|enter|put|use|replace[ _-]with)[ _-])?(?:(?P<your>your)|the)[ _-](?P<what>.+)", re.IGNORECASE
)
_GENERIC_WORDS = """
address api argument command content data date email entity file filename folder host id input key message name
number org owner param parameter password path placeholder project query repo string text title token url
user username value
"""
_GENERIC = frozenset(_GENERIC_WORDS.split())
"""Words of placeholders, in addition to the name of the parameter."""
_WRITTEN = frozenset({*CONTENT, *NEW_TEXT})
"""Names of arguments with a text for a file."""
_FILLER_WORDS = """
a an any example for goes here is my new of old sample some the this your
"""
_FILLER = frozenset(_FILLER_WORDS.split())
_TEXTS_WORDS = """
body code comment content description message pattern query text
"""
_TEXTS = frozenset(_TEXTS_WORDS.split())
"""Words in the names of parameters for text. The value "..." may be intentional in such a parameter."""
_PROPOSALS = ("enum", "const", "default", "examples", "description")
"""Schema keywords that may contain values."""
_INVENTED = re.compile(
    r"""(?:^|[/\\])path[/\\]to[/\\]\S*|^(?:(?:file|dir|folder|project)?path|filename(?:\.\w{1,5})?)$
    |^y{4}[-/]m{2}[-/]d{2}.*|(?<![^\W_])your[-_][a-z]\w*|^(?:https?://(?:www\.)?|\S+@)(?P<host>example\.(?:com|net|org))\b\S*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Matches paths, names and addresses that are typical of examples."""
_INSTRUCTION = re.compile(r"(?m)^[A-Z][a-z]+(?: [\w,]+){3,}\.$")
"""Matches a line of an error that tells the model what to do."""
_NUMBERED = re.compile(r"(?m)^\s*\d+: .*$")
"""Matches a line of a file in an error."""
_SENTENCE_END = re.compile(r"(?<=[.:])\s+")
_ELIDED = re.compile(r"(?:\.{3,}|…|\?{2,}|x{3,}|(?:todo|tbd|placeholder)\.?)", re.IGNORECASE)


def find_placeholder(tool: Tool, arguments: JsonObject, history: CallHistory) -> str:
    """Return the name of the first argument whose value is a placeholder, or "" if there is none. A value that occurs
    in the conversation or in the tool's schema is not a placeholder.
    """
    return next(_find_placeholders(tool, arguments, history), "")


def remove_placeholders(tool: Tool, arguments: JsonObject, history: CallHistory) -> JsonObject:
    """Return ``arguments`` without placeholder values."""
    placeholders = {*_find_placeholders(tool, arguments, history)}
    return {name: value for name, value in arguments.items() if name not in placeholders}


def _find_placeholders(tool: Tool, arguments: JsonObject, history: CallHistory) -> Iterator[str]:
    for name, value in arguments.items():
        if isinstance(value, str) and _is_placeholder(name, value.strip(), tool, history.request):
            schema = tool.properties.get(name) or {}
            proposed = [schema[key] for key in _PROPOSALS if key in schema] if isinstance(schema, dict) else []
            known = f"{history.given_text}\n{json.dumps(proposed, ensure_ascii=False)}".lower()
            if not any(each.lower() in known for each in (value.strip(), *_list_invented(value))):
                yield name


def list_known_values(argument: str, history: CallHistory) -> list[str]:
    """Return values from the conversation that ``argument`` may have: paths, or the values of fields with this name."""
    if not _split_words(argument).isdisjoint(("file", "path")):
        return find_paths(history.given_text)[:MAX_KNOWN]
    values = re.findall(rf'"{re.escape(argument)}"\s*:\s*"([^"]{{1,80}})"', history.given_text)
    return list(dict.fromkeys(values))[:MAX_KNOWN]


def _is_placeholder(name: str, value: str, tool: Tool, request: str) -> bool:
    if not 0 < len(value) <= MAX_PLACEHOLDER:
        return False
    is_path = name in (*PATH, *SOURCE, *DESTINATION)
    if (
        (_repeats_name(name, value) and not _split_words(value) <= _split_words(request) | _FILLER)
        or (not _takes_text(name) and any(each not in request for each in _list_invented(value)))
        or (value in tool.properties and ("_" in value or is_path))
        or (_counts_up(value) and value not in request)
    ):
        return True
    if _ELIDED.fullmatch(value):
        return name in tool.required and not _takes_text(name)
    about = _GENERIC.union(_split_words(name))
    if bracketed := _BRACKETED.fullmatch(value):
        words = _split_words(bracketed[1])
        return (
            is_path
            or bool(words & _split_words(name))
            or (len(words) > 1 and bool(words & _GENERIC))
            or "your" in words
        )
    yours = _YOURS.fullmatch(re.sub(r"\.\w{1,5}$", "", value) if is_path else value)
    if yours is None:
        return False
    words = _split_words(yours["what"])
    return bool(words) and words <= about and (bool(yours["your"]) or _split_words(name) <= words)


def _repeats_name(name: str, value: str) -> bool:
    """Return whether a value consists only of generic words and the words of its parameter's name: "old_text_to_apply",
    "Old content", "This is the new file content."."""
    words, own = _split_words(value), _split_words(name)
    if len(words) < 2 or not re.fullmatch(r"[A-Za-z_ /]+[.!]?", value):
        return False
    if "_" in value:
        return len(own) > 1 and own <= words
    return bool(words & own) and words <= own | _GENERIC | _FILLER


def _list_invented(value: str) -> list[str]:
    """Return the parts of ``value`` that are typical of examples, such as "John Doe" or example.com."""
    return [match["host"] or match[0] for match in _INVENTED.finditer(value)]


def _counts_up(value: str) -> bool:
    """Return whether a number is an obvious dummy, because its digits count up: ``12345``, ``+1 (123) 456-7890``."""
    digits = re.sub(r"\D", "", value)
    return len(digits) > 4 and digits in "11234567890" and not re.search(r"[^\W\d_]", value)


def _takes_text(name: str) -> bool:
    return not _TEXTS.isdisjoint(_split_words(name))


def _split_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()))


@dataclass(slots=True)
class SentMessages:
    """Remembers the guardrail messages sent to a model, to recognize copies of them in its answers and arguments."""

    _runs: set[tuple[str, ...]] = field(default_factory=set)
    _sentences: set[str] = field(default_factory=set)

    def add(self, message: str, history: CallHistory, answer: str, tools: ToolSet) -> None:
        """Add a message. Text that the message quotes from the conversation, from ``answer`` or from the definitions of
        ``tools`` does not count as a copy later."""
        definitions, runs = _read_definitions(tools)
        quotable = f"{history.text}\n{answer}"
        self._runs |= set(_find_runs(message)) - set(_find_runs(quotable)) - runs
        quotable += definitions
        self._sentences |= {sentence for sentence in _SENTENCE_END.split(message) if sentence not in quotable}

    def find_in_arguments(self, arguments: Json) -> str:
        """Return the first string in ``arguments`` that contains text of a message, or "" if there is none."""
        return next((text for text in list_strings(arguments) if not self._runs.isdisjoint(_find_runs(text))), "")

    def is_mostly_copied(self, content: str) -> bool:
        """Return whether a large part of ``content`` is copied, or one of its lines begins like a tool's error."""
        if any(line.lstrip(" \t.*`").startswith(ERROR_LABEL) for line in content.splitlines()):
            return True
        if any(
            sentence == content.strip() or (sentence in content and sentence.count(" ") >= WORDS)
            for sentence in self._sentences
        ):
            return True
        copied = sum(run in self._runs for run in _find_runs(content))
        return copied > 0 and copied + WORDS - 1 >= MIN_SHARE * len(re.findall(r"\w+", content))


@lru_cache(2)  # 6 ms for 60 tools, at each retry
def _read_definitions(tools: ToolSet) -> tuple[str, frozenset[tuple[str, ...]]]:
    """Return the tools' definitions as text, and all runs of words in that text."""
    definitions = "\n".join(json.dumps(tool.to_openai(), ensure_ascii=False) for tool in tools.values())
    return definitions, frozenset(_find_runs(definitions))


def copies_error(call: PastCall, history: CallHistory) -> bool:
    """Return whether an argument was probably copied from the error message of an earlier call.

    An argument is a copy if it begins like the message or contains its instructions. A short text for a file is a copy
    if it contains any part of the message. The earlier call must have the same tool, or an argument in common with
    ``call``, because a model may search for the errors of other calls.
    """
    texts = [*list_strings(call.arguments)]
    failed = [other.result for other in history.recent if not other.ok and other.name == call.name]
    advice = {part for error in failed for part in _INSTRUCTION.findall(error)}
    if any(part in text for part in advice for text in texts) and not any(
        each in history.given_text for each in advice
    ):
        return True
    written_texts = (value for key, value in call.arguments.items() if key in _WRITTEN and isinstance(value, str))
    short_texts = [text for text in written_texts if len(text) <= SHORT]
    beginnings = {run for text in texts for run in itertools.islice(_find_runs(text), 1)}
    beginnings |= {run for text in short_texts for run in _find_runs(text)}
    errors = (
        _find_runs(_NUMBERED.sub("", other.result[:BEGINNING]))
        for other in history.recent
        if not other.ok and (other.name == call.name or not {*texts}.isdisjoint(list_strings(other.arguments)))
    )
    compared = None if short_texts else WORDS
    copied = beginnings.intersection(run for error in errors for run in itertools.islice(error, compared))
    if not copied:
        return False  # the usual case, which avoids searching the conversation (15 ms if it is long)
    written = (text for other in history.recent for text in list_strings(other.arguments))
    return not copied <= {*_find_runs("\n".join([history.given_text, *written]))}


def _find_runs(text: str) -> Iterator[tuple[str, ...]]:
    """Yield each run of `WORDS` consecutive words."""
    words = re.findall(r"\w+", text.lower())
    return zip(*(words[start:] for start in range(WORDS)), strict=False)


def list_strings(value: Json) -> Iterator[str]:
    """Yield all strings in a JSON value, except the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from list_strings(each)
