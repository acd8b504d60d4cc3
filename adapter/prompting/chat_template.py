"""Fills a chat template as Hugging Face's ``apply_chat_template`` does, in a sandbox.

A template comes with a model from wherever that was downloaded, so it is a stranger's program. Here it gets JSON
values and nothing else, in Jinja's sandbox. How long it runs and how much it makes are bounded from outside: this file
is also a program, which reads requests as lines of JSON and answers each with a line, and which
`adapter.backends.template_files` starts, with limits of the operating system, and ends. So it imports none of ours.

Facts: transformers 5.23, ``utils/chat_template_utils.py`` and ``tokenization_utils_base.py``.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

if sys.platform != "win32":  # where the clock alone ends a template
    import resource

Json = Any

REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")
"""Under which a message may hold its reasoning; templates read the first two."""

MAX_CHARACTERS = 32_000_000
"""Of a prompt: more fits no model."""


class ChatTemplateError(Exception):
    """``str(fault)``: the template's own words, or what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """``tokens``: what the template may call ``bos_token``, ``eos_token`` and the like. ``control_tokens``: what the
    tokenizer beside it takes for such."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)
    control_tokens: tuple[str, ...] = ()


def render_chat_template(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Json]],
    tools: Sequence[Json] | None = None,
    *,
    add_generation_prompt: bool = True,
    variables: Mapping[str, Json] | None = None,
) -> str:
    """The prompt. Raises TemplateFault where the template refuses the messages, is none, or makes too much."""
    given = {
        **template.tokens,
        **(variables or {}),
        "messages": [_message(message) for message in messages],
        "tools": list(tools) if tools else None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
    }
    pieces, size = [], 0
    try:
        for piece in _compiled(template.source).generate(given):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_CHARACTERS:
                raise ChatTemplateError(f"the template makes more than {MAX_CHARACTERS:,} characters")
    except TemplateSyntaxError as error:
        raise ChatTemplateError(f"line {error.lineno} of the template: {error.message}") from error
    except TemplateError as error:
        raise ChatTemplateError(str(error)) from error
    except RecursionError as error:
        raise ChatTemplateError("the template calls itself without end") from error
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        # What Python says of a template that adds a text to an object, or the like.
        raise ChatTemplateError(f"{type(error).__name__}: {error}") from error
    return "".join(pieces)


def _message(message: Mapping[str, Json]) -> dict[str, Json]:
    """As transformers hands it on: what is null is left out, and reasoning stands under both names in use."""
    made = {key: value for key, value in message.items() if value is not None}
    reasoning = next((made[key] for key in REASONING_KEYS if key in made), None)
    return made if reasoning is None else {"thinking": reasoning, **made, "reasoning_content": reasoning}


@lru_cache(maxsize=32)
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    made.filters["tojson"] = _to_json
    made.globals.update(
        raise_exception=_raise,
        strftime_now=_now,
        namespace=_PlainNamespace,
        dict=_PlainDict(),
        cycler=None,
        joiner=None,
    )
    return made


class _Generation(Extension):
    """``{% generation %}`` marks what the model wrote, for training: here it is its content."""

    tags = {"generation"}  # noqa: RUF012  # as Jinja's own extensions have it

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _PlainNamespace(Namespace):
    """Without attributes that begin with an underscore, by which a template could get at Python's own."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # as Jinja's, so that `namespace(self=...)` works
        self, given = args[0], dict(*args[1:], **kwargs)
        for name in given:
            _check_name(name)
        Namespace.__init__(self, given)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace takes no attribute that begins with an underscore: {name!r}")


class _PlainDict:
    """``dict`` as a function: the class has attributes that lead further."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)


def _to_json(
    value: Json,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own escapes what HTML would act on, which no model was trained on."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(format: str) -> str:
    return datetime.now().strftime(format)


# ------------------------------------------------------------------ as a program


def answer(line: str) -> str:
    """The answer to one request, both in JSON: ``{"prompt": ...}`` or ``{"fault": ...}``.

    Either says in ``spent_s`` how many seconds of the processor the process has had since it began.
    """
    return json.dumps({**_answered(json.loads(line)), "spent_s": time.process_time()})


def _answered(asked: Mapping[str, Json]) -> dict[str, Json]:
    try:
        prompt = render_chat_template(
            ChatTemplate(asked["source"], asked["tokens"]),
            asked["messages"],
            asked["tools"],
            add_generation_prompt=asked["add_generation_prompt"],
            variables=asked["variables"],
        )
    except ChatTemplateError as fault:
        return {"fault": str(fault)}
    except MemoryError:
        return {"fault": "the template takes too much memory"}
    return {"prompt": prompt}


def main() -> None:
    """``MEGABYTES`` of memory, ``SECONDS`` of the processor for each prompt, then requests on standard input."""
    if sys.platform != "win32":
        memory = int(sys.argv[1]) * 1_000_000
        with suppress(ValueError, OSError):  # macOS refuses
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for line in sys.stdin:
        if sys.platform != "win32":
            until_s = math.ceil(time.process_time() + float(sys.argv[2]))
            with suppress(ValueError):  # the user's own limit is below
                resource.setrlimit(resource.RLIMIT_CPU, (until_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        print(answer(line), flush=True)


if __name__ == "__main__":
    main()
