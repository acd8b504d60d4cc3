"""Render a chat template like Hugging Face's ``apply_chat_template``, in a sandbox.

A template comes with a model, so it is untrusted code. It runs in Jinja's sandbox and sees only JSON values. The
operating system limits its time and memory: this file is also a program that reads requests as lines of JSON, which
`adapter.backends.template_files` runs in a worker process. Therefore, it imports no other module of this package.

Source: transformers 5.23, ``utils/chat_template_utils.py`` and ``tokenization_utils_base.py``.
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

if sys.platform != "win32":  # missing on Windows, where only the wall-clock limit ends a template
    import resource

Json = Any

REASONING_KEYS = ("reasoning_content", "thinking", "reasoning")
"""Keys for a message's reasoning. Templates read only the first two."""

MAX_CHARACTERS = 32_000_000
"""Maximum length of a prompt, in characters. No model supports longer prompts."""


class ChatTemplateError(Exception):
    """The template raised an error or cannot be rendered."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A chat template, with its tokenizer's tokens."""

    source: str
    tokens: Mapping[str, str] = field(default_factory=dict)
    """Values of the template's variables ``bos_token``, ``eos_token`` and similar."""
    control_tokens: tuple[str, ...] = ()
    """Control tokens of the tokenizer."""
    response_template: Mapping[str, Json] | None = None
    """A description of the model's answers, which some models include."""


def render_chat_template(
    template: ChatTemplate,
    messages: Sequence[Mapping[str, Json]],
    tools: Sequence[Json] | None = None,
    *,
    add_generation_prompt: bool = True,
    variables: Mapping[str, Json] | None = None,
) -> str:
    """Render a prompt. Raises ChatTemplateError if the template fails or writes more than `MAX_CHARACTERS`."""
    context = {
        **template.tokens,
        **(variables or {}),
        "messages": [_prepare_message(message) for message in messages],
        "tools": list(tools) if tools else None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
    }
    pieces, size = [], 0
    try:
        for piece in _compile(template.source).generate(context):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_CHARACTERS:
                raise ChatTemplateError(f"the output of the template exceeds {MAX_CHARACTERS:,} characters")
    except TemplateSyntaxError as error:
        raise ChatTemplateError(f"line {error.lineno} of the template is invalid: {error.message}") from error
    except TemplateError as error:
        raise ChatTemplateError(str(error)) from error
    except RecursionError as error:
        raise ChatTemplateError("the template calls itself endlessly") from error
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        # Errors raised by Python, for example because the template adds a string to an object.
        raise ChatTemplateError(f"the template fails with {type(error).__name__}: {error}") from error
    return "".join(pieces)


def _prepare_message(message: Mapping[str, Json]) -> dict[str, Json]:
    """Prepare a message as transformers does: drop null values, and store reasoning under both common keys."""
    fields = {key: value for key, value in message.items() if value is not None}
    reasoning = next((fields[key] for key in REASONING_KEYS if key in fields), None)
    return fields if reasoning is None else {"thinking": reasoning, **fields, "reasoning_content": reasoning}


@lru_cache(maxsize=32)
def _compile(source: str) -> Any:
    return _create_environment().from_string(source)


@lru_cache(maxsize=1)
def _create_environment() -> ImmutableSandboxedEnvironment:
    sandbox = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    sandbox.filters["tojson"] = _to_json
    sandbox.globals.update(
        raise_exception=_raise,
        strftime_now=lambda format: datetime.now().strftime(format),
        namespace=_PlainNamespace,
        dict=lambda *args, **kwargs: dict(*args, **kwargs),  # the class itself has attributes, such as `mro`
        cycler=None,
        joiner=None,
    )
    return sandbox


class _Generation(Extension):
    """Supports ``{% generation %}``, which marks the model's text for training. Only its content is rendered."""

    tags = {"generation"}  # noqa: RUF012  # like Jinja's own extensions

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _PlainNamespace(Namespace):
    """A namespace that rejects names with a leading underscore, which could give access to Python's internals."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # same name as in Jinja, so that `namespace(self=...)` works
        self, values = args[0], dict(*args[1:], **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(self, values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        Namespace.__setitem__(self, name, value)


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"namespace attributes must not begin with an underscore: {name!r}")


def _to_json(
    value: Json,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Convert ``value`` to JSON without escaping HTML, unlike Jinja's filter, because models were not trained on
    escaped text."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


# ------------------------------------------------------------------ as a program


def answer_request(line: str) -> str:
    """Render the prompt for ``line``, a request in JSON, and return the answer as a line of JSON. The answer has the
    key ``prompt`` or ``fault``, and ``spent_s``: the processor time that the process has used, in seconds."""
    return json.dumps({**_render(json.loads(line)), "spent_s": time.process_time()})


def _render(request: Mapping[str, Json]) -> dict[str, Json]:
    try:
        prompt = render_chat_template(
            ChatTemplate(request["source"], request["tokens"]),
            request["messages"],
            request["tools"],
            add_generation_prompt=request["add_generation_prompt"],
            variables=request["variables"],
        )
    except ChatTemplateError as fault:
        return {"fault": str(fault)}
    except MemoryError:
        return {"fault": "the template needs too much memory"}
    return {"prompt": prompt}


def main() -> None:
    """Answer requests from standard input. Arguments: memory limit in MB, and processor seconds per prompt."""
    if sys.platform != "win32":
        memory = int(sys.argv[1]) * 1_000_000
        with suppress(ValueError, OSError):  # macOS rejects this limit
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for line in sys.stdin:
        if sys.platform != "win32":
            until_s = math.ceil(time.process_time() + float(sys.argv[2]))
            with suppress(ValueError):  # the user's limit is lower
                resource.setrlimit(resource.RLIMIT_CPU, (until_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        print(answer_request(line), flush=True)


if __name__ == "__main__":
    main()
