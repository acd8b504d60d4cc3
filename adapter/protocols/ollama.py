"""Translate Ollama's API (``/api/chat``) to OpenAI's and back.

Source: https://github.com/ollama/ollama/blob/main/docs/api.md and recorded exchanges. Differences: sampling parameters
are in ``options``, arguments are objects, results name their tool, and images are separate from the text. Streams are
JSON lines, and answers are streamed by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapter.conversation.message_content import build_image_part, get_image_url
from adapter.core.events import Json, JsonObject
from adapter.protocols.answer_parts import AnswerPart, AnswerParts, Step
from adapter.protocols.custom_and_legacy_tools import read_object
from adapter.protocols.dropped_fields import FieldHandling, build_field_table, list_dropped_fields, list_unknown_fields
from adapter.protocols.exchange_guardrails import EXTENSION
from adapter.protocols.openai_errors import get_error_text, is_error
from adapter.protocols.request_errors import RequestError, require_objects, require_type
from adapter.protocols.sse import encode_json
from adapter.protocols.usage import Usage

_SAME = (
    "temperature top_p top_k min_p seed stop presence_penalty frequency_penalty repeat_penalty repeat_last_n typical_p "
    "mirostat mirostat_tau mirostat_eta"
)
OPTIONS = {**{name: name for name in _SAME.split()}, "num_predict": "max_tokens", "num_keep": "n_keep"}
"""OpenAI's name for each of Ollama's sampling parameters."""

FIELDS = build_field_table(
    {
        "passed": "model",
        "mapped": "messages tools options format think",
        "taken": f"stream tool_choice {EXTENSION}",
        "left out": "keep_alive logprobs top_logprobs truncate shift",
    }
)
"""Handling of each field of ``/api/chat`` if the model server is not Ollama. Fields that are not listed are dropped."""

GENERATE_FIELDS: Mapping[str, FieldHandling] = {
    **{name: FIELDS[name] for name in FIELDS if name not in ("messages", "tools", "tool_choice", EXTENSION)},
    **build_field_table(
        {"mapped": "prompt system images", "refused": "raw suffix context template", "left out": "width height steps"}
    ),
}
"""Handling of each field of ``/api/generate``."""

EMBED_FIELDS = build_field_table(
    {"passed": "model input dimensions", "mapped": "prompt", "left out": "truncate options keep_alive"}
)
"""Handling of each field of ``/api/embed`` and ``/api/embeddings``."""

NATIVE = (
    "model", "stream", "options", "format", "keep_alive", "think", "logprobs", "top_logprobs", "truncate", "shift",
)  # fmt: skip
"""Fields that are forwarded unchanged if the model server is Ollama."""


def convert_to_openai(body: JsonObject, dropped: list[str] | None = None) -> JsonObject:
    """Return the OpenAI chat request, and append the names of dropped fields to ``dropped``.

    Raises RequestError if the request is invalid.
    """
    messages = require_objects(body.get("messages"), "messages")
    options = require_type(dict, body.get("options"), "options")
    if dropped is not None:
        dropped += list_unknown_fields(body, FIELDS)
        dropped += [f"options.{name}" for name in list_dropped_fields(options, options.keys() - OPTIONS.keys())]
    request: JsonObject = {
        "model": body.get("model"),
        "messages": _bind_results([_convert_message(message, index) for index, message in enumerate(messages)]),
        "stream": True if body.get("stream") is None else require_type(bool, body["stream"], "stream"),
        **{name: options[own] for own, name in OPTIONS.items() if options.get(own) is not None},
    }
    if isinstance(limit := request.get("max_tokens"), int) and limit < 0:  # Ollama's value for no limit
        del request["max_tokens"]
    if request["stream"]:
        request["stream_options"] = {"include_usage": True}
    if body.get("tools"):
        tools = require_objects(body["tools"], "tools")
        request["tools"] = [{**tool, "type": "function"} for tool in tools]  # the only type of tools
    if body.get("format") == "json":
        request["response_format"] = {"type": "json_object"}
    elif isinstance(body.get("format"), dict):
        schema = {"name": "answer", "schema": body["format"]}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif body.get("format"):
        raise RequestError(f"'format' must be \"json\" or a JSON schema, got {str(body['format'])[:80]!r}", "format")
    extension = {name: body[name] for name in ("tool_choice", EXTENSION) if name in body}
    return request | extension | _convert_thinking(body.get("think"))


def _convert_thinking(think: Json) -> JsonObject:
    """Convert Ollama's ``think`` to the fields that other servers understand."""
    if isinstance(think, bool):
        return {"chat_template_kwargs": {"enable_thinking": think}}
    return {"reasoning_effort": think} if isinstance(think, str) and think else {}


def convert_generation_to_chat(body: JsonObject) -> JsonObject:
    """Convert a request to ``/api/generate`` to a request to ``/api/chat``. Raises RequestError for fields that chats
    do not have."""
    for field, handling in GENERATE_FIELDS.items():
        if handling == "refused" and body.get(field):
            raise RequestError(f"{field!r} requires Ollama as the model server; omit it, or use /api/chat", field)
    prompt = {"role": "user", "content": require_type(str, body.get("prompt"), "prompt"), "images": body.get("images")}
    rules = require_type(str, body.get("system"), "system")
    chat = {key: value for key, value in body.items() if key not in ("prompt", "system", "images")}
    return {**chat, "messages": [*([{"role": "system", "content": rules}] if rules else []), prompt]}


def build_embedding_request(body: JsonObject) -> JsonObject:
    """Convert a request to ``/api/embed``, or to the older ``/api/embeddings``, to OpenAI's API."""
    request: JsonObject = {"model": body.get("model"), "input": body.get("input", body.get("prompt"))}
    return request | ({"dimensions": body["dimensions"]} if body.get("dimensions") else {})


def build_embedding_response(answer: Mapping[str, Any], model: str, *, is_old: bool, elapsed_ns: int) -> JsonObject:
    """Convert OpenAI's embeddings to an Ollama response. ``is_old`` is True for the older route ``/api/embeddings``."""
    embeddings = [each.get("embedding") or [] for each in answer.get("data") or () if isinstance(each, dict)]
    if is_old:
        return {"embedding": next(iter(embeddings), [])}
    counted = (answer.get("usage") or {}).get("prompt_tokens") or 0
    stats = {"total_duration": elapsed_ns, "load_duration": 0, "prompt_eval_count": counted}
    return {"model": model, "embeddings": embeddings, **stats}


def _convert_message(message: JsonObject, index: int) -> JsonObject:
    converted: JsonObject = {key: message[key] for key in ("role", "content") if key in message}
    if message.get("thinking"):
        converted["reasoning_content"] = message["thinking"]
    if message.get("images"):
        images = require_type(list, message["images"], f"messages[{index}].images")
        texts = [require_type(str, each, f"messages[{index}].images[{number}]") for number, each in enumerate(images)]
        text = {"type": "text", "text": converted.get("content") or ""}
        converted["content"] = [text, *(build_image_part(f"data:{_detect_mime(each)};base64,{each}") for each in texts)]
    if message.get("tool_calls"):
        converted["tool_calls"] = [
            {"id": call.get("id") or f"call_{index}_{number}", "type": "function", **call}
            for number, call in enumerate(require_objects(message["tool_calls"], f"messages[{index}].tool_calls"))
        ]
    if message.get("role") == "tool":
        name = message.get("tool_name") or message.get("name")
        converted |= {"name": name, "tool_call_id": message.get("tool_call_id")}
    return converted


def _bind_results(messages: list[JsonObject]) -> list[JsonObject]:
    """Give each result without an id the id of the next call with its tool name, or else of the next call."""
    pending: list[JsonObject] = []
    for message in messages:
        if message.get("role") != "tool":
            pending = list(message.get("tool_calls", ()))
            continue
        call_id, name = message["tool_call_id"], message["name"]
        names = [(each.get("function") or {}).get("name") for each in pending]
        found = [call for call, own in zip(pending, names, strict=True) if own == name] if name else pending
        found = [each for each in pending if each["id"] == call_id] if call_id else found
        if found:
            message["tool_call_id"] = found[0]["id"]
            pending.remove(found[0])
    return messages


def _detect_mime(base64: str) -> str:
    """Detect an image's media type from its first bytes, because Ollama's API does not contain it."""
    return next((mime for start, mime in _IMAGES.items() if base64.startswith(start)), "image/png")


_IMAGES = {"/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp", "Qk": "image/bmp"}


EXTRA = "ollama"
"""Key of a translated request for the fields in `NATIVE`, which are sent if the model server is Ollama."""


def build_extra_fields(body: JsonObject) -> JsonObject:
    """Return an object to add to the chat request: the fields that only Ollama's API has, under the key `EXTRA`."""
    return {EXTRA: {key: body[key] for key in NATIVE if key in body}}


def convert_to_native(plain: JsonObject) -> JsonObject:
    """Convert the translated request ``plain`` to a request to ``/api/chat``. Its messages and constraint are used, and
    all other fields are as the client sent them."""
    native: JsonObject = dict(plain[EXTRA])
    if "format" not in native and plain.get("response_format", {}).get("type") == "json_schema":
        native["format"] = plain["response_format"]["json_schema"]["schema"]
    native["messages"] = [_convert_native_message(message) for message in plain["messages"]]
    if plain.get("stop"):
        native["options"] = {**(native.get("options") or {}), "stop": plain["stop"]}
    return native


def build_render_request(body: JsonObject) -> JsonObject:
    """Return the request to ``/api/chat`` that only renders the chat template, without generating an answer."""
    messages = [_with_calls(message) for message in body["messages"]]
    native = {key: value for key, value in (body.get(EXTRA) or {}).items() if key in ("think", "options", "keep_alive")}
    tools = {"tools": body["tools"]} if body.get("tools") else {}
    rendering = {"stream": False, "truncate": False, "_debug_render_only": True}
    return {"model": body.get("model"), "messages": messages, **tools, **native, **rendering}


def build_generate_request(body: JsonObject, prompt: str) -> JsonObject:
    """Return the request to ``/api/generate`` that continues ``prompt`` verbatim."""
    native = {key: value for key, value in (body.get(EXTRA) or {}).items() if key in ("keep_alive", "format")}
    sampling = {own: body[name] for own, name in OPTIONS.items() if body.get(name) is not None}
    limit = body.get("max_completion_tokens")
    ollama_options = (body.get(EXTRA) or {}).get("options") or {}
    options = {**ollama_options, **sampling, **({"num_predict": limit} if limit else {})}
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    match body.get("response_format"):
        case {"type": "json_schema", "json_schema": {"schema": schema}}:
            native["format"] = schema
        case {"type": "json_object"}:
            native["format"] = "json"
    stream = body.get("stream") is True
    return {"model": body.get("model"), "prompt": prompt, "raw": True, "stream": stream, "options": options, **native}


def _with_calls(message: JsonObject) -> JsonObject:
    """Convert a message from OpenAI's format, including its calls."""
    converted = _convert_native_message({**message, "content": message.get("content") or ""})
    if message.get("reasoning_content"):
        converted["thinking"] = message["reasoning_content"]
    if message.get("tool_calls"):
        converted["tool_calls"] = [
            {"id": call["id"], "function": {"index": number, **call["function"]}}
            for number, call in enumerate(message["tool_calls"])
        ]
    if message["role"] == "tool":
        converted |= {"tool_name": message.get("name"), "tool_call_id": message.get("tool_call_id")}
    return converted


def _convert_native_message(message: JsonObject) -> JsonObject:
    content = message["content"]
    if isinstance(content, str):
        return {"role": message["role"], "content": content}
    texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    urls = [url for part in content if (url := get_image_url(part)) is not None]
    images = [url.partition("base64,")[2] for url in urls if "base64," in url]
    texts += [f"(an image at {url}, which Ollama does not fetch)" for url in urls if "base64," not in url]
    return {"role": message["role"], "content": "\n".join(text for text in texts if text), "images": images}


def to_chat(answer: JsonObject) -> JsonObject:
    """Convert Ollama's response, or a line of its stream, to OpenAI's chat format. Return other values unchanged."""
    message = answer.get("message")
    if isinstance(answer.get("response"), str):  # from /api/generate
        message = {"content": answer["response"], "thinking": answer.get("thinking")}
    if not isinstance(message, dict):
        return answer
    delta = {"content": message.get("content"), "reasoning_content": message.get("thinking")}
    reason = (answer.get("done_reason") or "stop") if answer.get("done") else None
    choice = {"index": 0, "delta": delta, "message": delta, "finish_reason": reason}
    chunk: JsonObject = {"model": answer.get("model"), "choices": [choice]}
    if answer.get("done"):
        prompt, written = answer.get("prompt_eval_count") or 0, answer.get("eval_count") or 0
        chunk["usage"] = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        chunk["durations"] = {key: value for key, value in answer.items() if key.endswith("_duration")}
    return chunk


class OllamaWriter:
    """Encodes chunks as Ollama's JSON lines, and a buffered completion as an answer.

    ``created_at`` is the time of the request in RFC 3339 format, and ``elapsed_ns`` returns the nanoseconds since then.
    ``is_generating`` is True for requests to ``/api/generate``, whose answers have text instead of a message.
    """

    content_type = "application/x-ndjson"

    def __init__(
        self, model: str, created_at: str, elapsed_ns: Callable[[], int] = int, *, is_generating: bool = False
    ) -> None:
        self._model, self._created_at, self._elapsed_ns = model, created_at, elapsed_ns
        self._is_generating = is_generating
        self._answer = AnswerParts()
        self._calls = 0
        self._first_ns: int | None = None
        self._measured: JsonObject = {}
        self.ping = self._encode_line(_build_message())

    def build_response(self, completion: JsonObject) -> JsonObject:
        """Convert a complete OpenAI completion to an Ollama response."""
        self._answer, self._measured, self._first_ns = AnswerParts.from_completion(completion), completion, 0
        calls = [self._build_call(part) for part in self._answer.parts if part.kind == "call"]
        message = _build_message(self._answer.get_text("text"), self._answer.get_text("reasoning"), calls)
        return self._wrap(message) | self._build_ending()

    def build_load_response(self, body: JsonObject) -> JsonObject:
        """Return the response to a request without a prompt, which only loads or unloads the model."""
        reason = "unload" if body.get("keep_alive") in (0, "0", "0s") else "load"
        return {**self._wrap(_build_message()), "done": True, "done_reason": reason}

    def write(self, chunks: list[JsonObject]) -> bytes:
        return b"".join(map(self._encode, chunks))

    def encode_end(self) -> bytes:
        closing = b"".join(map(self._encode_step, self._answer.close()))
        return closing + _encode_json_line(self._wrap(_build_message()) | self._build_ending())

    def _encode(self, chunk: JsonObject) -> bytes:
        if is_error(chunk):
            return _encode_json_line(to_error(chunk))
        self._first_ns = self._elapsed_ns() if self._first_ns is None else self._first_ns
        self._measured |= {key: chunk[key] for key in ("durations", "timings") if chunk.get(key)}
        return b"".join(map(self._encode_step, self._answer.feed(chunk)))

    def _encode_step(self, step: Step) -> bytes:
        match step:
            case "add", AnswerPart(kind="text"), text:
                return self._encode_line(_build_message(text))
            case "add", AnswerPart(kind="reasoning"), text:
                return self._encode_line(_build_message(reasoning=text))
            case "close", AnswerPart(kind="call") as part, _:
                return self._encode_line(_build_message(calls=[self._build_call(part)]))
        return b""

    def _build_call(self, part: AnswerPart) -> JsonObject:
        self._calls += 1
        function = {"index": self._calls - 1, "name": part.name, "arguments": read_object(part.text)}
        return {"id": part.call_id, "function": function}

    def _encode_line(self, message: JsonObject) -> bytes:
        return _encode_json_line({**self._wrap(message), "done": False})

    def _wrap(self, message: JsonObject) -> JsonObject:
        head: JsonObject = {"model": self._model, "created_at": self._created_at}
        if not self._is_generating:
            return {**head, "message": message}
        thinking = {"thinking": message["thinking"]} if "thinking" in message else {}
        return {**head, "response": message["content"], **thinking}

    def _build_ending(self) -> JsonObject:
        """Return the fields of a stream's last line. If the server does not report how long it processed the prompt,
        the time until the answer began is used."""
        elapsed_ns, first_ns = self._elapsed_ns(), self._first_ns or 0
        usage = self._answer.usage or Usage(0)
        return {
            "done": True,
            "done_reason": "length" if self._answer.finish_reason == "length" else "stop",
            "total_duration": elapsed_ns,
            "load_duration": 0,
            "prompt_eval_duration": _get_timing_ns(self._measured, "prompt_ms", first_ns),
            "eval_duration": _get_timing_ns(self._measured, "predicted_ms", elapsed_ns - first_ns),
            **(self._measured.get("durations") or {}),
            "prompt_eval_count": usage.prompt,
            "eval_count": usage.written,
            **self._answer.notice,
        }


def _build_message(text: str = "", reasoning: str = "", calls: Sequence[JsonObject] = ()) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": text}
    message |= {"thinking": reasoning} if reasoning else {}
    return message | ({"tool_calls": list(calls)} if calls else {})


def to_error(error: JsonObject, _status: int = 500) -> JsonObject:
    """Convert an error to Ollama's format, which contains only the message."""
    return {"error": get_error_text(error)}


def _get_timing_ns(last: Mapping[str, Any], name: str, default: int) -> int:
    """Return a duration that llama.cpp measured, in nanoseconds, or ``default`` if it is missing."""
    timings = last.get("timings")
    milliseconds = timings.get(name) if isinstance(timings, dict) else None
    if isinstance(milliseconds, int | float) and 0 <= milliseconds < 1e12:
        return int(milliseconds * 1e6)
    return default


_LINE_ENDS = "\x85\u2028\u2029"
"""Characters that end a line for the ollama SDK, but not in JSON Lines. They are escaped."""


def _encode_json_line(value: Json) -> bytes:
    encoded = encode_json(value)
    if not encoded.isascii():
        for character in _LINE_ENDS:
            encoded = encoded.replace(character.encode(), f"\\u{ord(character):04x}".encode())
    return encoded + b"\n"
