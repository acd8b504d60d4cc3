"""A loopback model server that renders a chat template in the ways of llama.cpp, Ollama, vLLM and KoboldCpp."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from adapter.prompting.chat_template import ChatTemplate, ChatTemplateError, render_chat_template
from tests.loopback import LoopbackServer, QuietHandler

CHATML = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.role != 'system' or not loop.first %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""A template like Qwen's, which accepts everything."""

TOOLLESS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"


class TemplateServer(LoopbackServer):
    """A server of completions that renders a chat template.

    Args:
        kind: The server to imitate.
        source: The chat template.
        says: The answers in turn. The last one is repeated.
        hides: Do not render templates for clients.
        special: A control token of its model.
        parameters: Number of parameters that it reports for its model.
        classifies: The kind that it answers when a very small model classifies a request; these are in
            ``classifications`` instead of ``bodies``.

    ``finish`` is the finish reason of its answers, ``prompts`` the answered prompts, and ``bodies`` the POST requests
    with their paths. GET requests may come at any time.
    """

    def __init__(
        self,
        kind: str,
        source: str,
        *says: str,
        hides: bool = False,
        special: str = "",
        parameters: int = 0,
        classifies: str = "unknown",
    ) -> None:
        self.kind, self.hides, self.special, self.parameters = kind, hides, special, parameters
        self.template = ChatTemplate(source, {"bos_token": "<s>", "eos_token": "</s>"})
        self.finish = "stop"
        self.prompts: list[str] = []
        self.bodies: list[tuple[str, Any]] = []
        self.classifies = classifies
        self.classifications: list[Any] = []
        self._says = deque(says or ["Hello."])
        super().__init__(_handler(self))

    def answer_with(self, text: str, finish: str = "stop") -> None:
        """Always answer this from now on."""
        self._says, self.finish = deque([text]), finish

    def say(self) -> str:
        return self._says.popleft() if len(self._says) > 1 else self._says[0]


def _props(server: TemplateServer, _body: Any) -> Any:
    return {"chat_template": server.template.source, "default_generation_settings": {"n_ctx": 4096}}


def _filled(server: TemplateServer, body: Any) -> str:
    return render_chat_template(server.template, body["messages"], body.get("tools"))


def _apply(server: TemplateServer, body: Any) -> Any:
    return None if server.hides else {"prompt": _filled(server, body)}


def _completion(server: TemplateServer, body: Any) -> Any:
    server.prompts.append(body["prompt"])
    text = server.say()
    end = {
        "content": "", "tokens": [], "id_slot": 0, "stop": True, "model": "m", "tokens_predicted": 3,
        "tokens_evaluated": 9, "has_new_line": False, "truncated": False, "stopping_word": "", "tokens_cached": 11,
        "stop_type": "limit" if server.finish == "length" else "eos",
        "timings": {"cache_n": 4, "prompt_n": 5, "prompt_ms": 2.5, "predicted_n": 3, "predicted_ms": 4.5},
    }  # fmt: skip
    if not body.get("stream"):
        return {**end, "index": 0, "content": text}
    middle = len(text) // 2
    pieces = [{"index": 0, "content": each, "tokens": [1], "stop": False, "id_slot": 0, "tokens_predicted": 1,
               "tokens_evaluated": 9} for each in (text[:middle], text[middle:])]  # fmt: skip
    return _sse([*pieces, end])


def _text_completion(server: TemplateServer, body: Any) -> Any:
    server.prompts.append(body["prompt"])
    text = server.say()
    if not body.get("stream"):
        return {"model": "m", "choices": [{"index": 0, "text": text, "finish_reason": server.finish}]}
    return _sse([{"choices": [{"index": 0, "text": text, "finish_reason": None}]},
                 {"choices": [{"index": 0, "text": "", "finish_reason": server.finish}]}])  # fmt: skip


def _ollama_chat(server: TemplateServer, body: Any) -> Any:
    if body.get("_debug_render_only") and not server.hides:
        return {"model": "m", "_debug_info": {"rendered_template": _filled(server, body)}}
    head = {"model": "m", "created_at": "2026-11-21T09:56:35.46478767Z"}
    end = {**head, "done": True, "done_reason": server.finish, "total_duration": 9, "load_duration": 1,
           "prompt_eval_count": 5, "prompt_eval_duration": 2, "eval_count": 3, "eval_duration": 4}  # fmt: skip
    message = {"role": "assistant", "content": server.say()}
    if not body.get("stream", True):
        return {**end, "message": message}
    lines = [{**head, "message": message, "done": False}, {**end, "message": {"role": "assistant", "content": ""}}]
    return "application/x-ndjson", "".join(json.dumps(line) + "\n" for line in lines)


def _generate(server: TemplateServer, body: Any) -> Any:
    assert body["raw"] is True
    server.prompts.append(body["prompt"])
    text = server.say()
    end = {"model": "m", "response": "", "done": True, "done_reason": server.finish, "prompt_eval_count": 5,
           "eval_count": 3}  # fmt: skip
    if not body.get("stream"):
        return {**end, "response": text}
    lines = [{"model": "m", "response": text, "done": False}, end]
    return "application/x-ndjson", "".join(json.dumps(line) + "\n" for line in lines)


def _is_classification(body: Any) -> bool:
    return '"rename"' in body.get("grammar", "")


def _chat(server: TemplateServer, body: Any) -> Any:
    tools = None if server.hides and body.get("tool_choice") == "none" else body.get("tools")
    prompt = render_chat_template(server.template, body["messages"], tools)
    is_classification = _is_classification(body)
    server.prompts += [] if is_classification else [prompt]
    text = server.classifies if is_classification else server.say()
    usage = {"prompt_tokens": len(prompt), "completion_tokens": 3, "total_tokens": len(prompt) + 3}
    head: dict[str, Any] = {"id": "chatcmpl-1", "created": 1_795_255_059, "model": "m"}
    nulls: dict[str, Any] = {}
    if server.kind == "vllm":  # sends null for each field that it does not use
        head |= dict.fromkeys(("service_tier", "system_fingerprint", "prompt_logprobs", "kv_transfer_params"))
        nulls = dict.fromkeys(("logprobs", "stop_reason", "token_ids"))
    if not body.get("stream"):
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if nulls:
            message |= dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning")) | {
                "tool_calls": []
            }
        choice = {"index": 0, "message": message, "finish_reason": server.finish, **nulls}
        return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
    chunk = {**head, "object": "chat.completion.chunk"}
    events = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": reason, **nulls}]}
              for delta, reason in (({"role": "assistant", "content": text}, None), ({}, server.finish))]  # fmt: skip
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append({**chunk, "choices": [], "usage": usage})
    return _sse(events)


def _tokenize(server: TemplateServer, body: Any) -> Any:
    return {"tokens": list(map(ord, _filled(server, body)))}


def _pieces(server: TemplateServer, body: Any) -> Any:
    is_whole = server.special and body["parse_special"]
    texts = re.split(f"({re.escape(server.special)})", body["content"]) if is_whole else body["content"]
    return {"tokens": [{"id": 1, "piece": text} for text in texts]}


def _detokenize(_server: TemplateServer, body: Any) -> Any:
    return {"prompt": "".join(map(chr, body["tokens"]))}


def _sse(events: list[Any]) -> tuple[str, str]:
    return "text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def _models(server: TemplateServer, _body: Any) -> Any:
    return {"data": [{"id": "m"} | ({"meta": {"n_params": server.parameters}} if server.parameters else {})]}


_MODELS: dict[str, Callable[[TemplateServer, Any], Any]] = {"/v1/models": _models}
_PATHS: dict[str, dict[str, Callable[[TemplateServer, Any], Any]]] = {
    "llama.cpp": {"/props": _props, "/apply-template": _apply, "/completion": _completion,
                  "/v1/chat/completions": _chat, "/tokenize": _pieces},
    "ollama": {"/api/version": lambda *_: {"version": "0.33.2"}, "/api/chat": _ollama_chat, "/api/generate": _generate,
               "/v1/chat/completions": _chat},
    "vllm": {"/version": lambda *_: {"version": "0.12"}, "/v1/chat/completions": _chat, "/tokenize": _tokenize,
             "/detokenize": _detokenize},
    "koboldcpp": {"/api/extra/version": lambda *_: {"result": "KoboldCpp"}, "/v1/completions": _text_completion,
                  "/v1/chat/completions": _chat},
}  # fmt: skip


def _handler(server: TemplateServer) -> type[QuietHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if _is_classification(body):
                server.classifications.append(body)
            else:
                server.bodies.append((self.path, body))
            self._answer(body)

        def _answer(self, body: Any) -> None:
            find = (_PATHS[server.kind] | _MODELS).get(self.path)
            status, kind = 200, "application/json"
            try:
                said = find(server, body) if find else None
            except ChatTemplateError as fault:
                status, said = 400, {"error": {"message": str(fault), "type": "invalid_request_error", "code": 400}}
            if said is None:
                status, said = 404, {"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}
            if isinstance(said, tuple):
                kind, content = said
            else:
                content = json.dumps(said)
            self.send_response_only(status)
            self.send_header("Server", server.kind if server.kind == "llama.cpp" else "test")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content.encode())))
            self.end_headers()
            self.wfile.write(content.encode())

    return Handler
