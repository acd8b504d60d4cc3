"""Run the chat serving code of the installed vLLM with an engine that outputs a given text.

`OpenAIServingChat` is created without its constructor, which needs a model; this module supplies the attributes that it
uses. The two methods that build a response from an engine's outputs are called as in its request handler.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Message = dict[str, Any]


class Serving:
    """Returns the answers of one parser pair. ``tool_parser``, ``reasoning_parser``: their registered names."""

    def __init__(self, tool_parser: str, reasoning_parser: str | None) -> None:
        self.has_parser_manager = _has("vllm.parser.parser_manager", "ParserManager")
        module = _first("vllm.entrypoints.openai.chat_completion.serving", "vllm.entrypoints.openai.serving_chat")
        managers = _first("vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")
        reasoning = import_module("vllm.reasoning")
        self.protocol = _first("vllm.entrypoints.openai.chat_completion.protocol", "vllm.entrypoints.openai.protocol")
        tool_cls = managers.ToolParserManager.get_tool_parser(tool_parser)
        reasoning_cls = None
        if reasoning_parser is not None:
            reasoning_cls = reasoning.ReasoningParserManager.get_reasoning_parser(reasoning_parser)
        self.tool_cls, self.reasoning_cls = tool_cls, reasoning_cls
        self._takes_tools = "tools" in inspect.signature(tool_cls.__mro__[-2].__init__).parameters
        self.parser_cls = None
        if self.has_parser_manager:
            manager = import_module("vllm.parser.parser_manager").ParserManager
            self.parser_cls = manager.get_parser(
                tool_parser_name=tool_parser, reasoning_parser_name=reasoning_parser, enable_auto_tools=True
            )
        self._chat = _without_model(module.OpenAIServingChat)(
            enable_auto_tools=True,
            tool_parser=tool_cls,
            reasoning_parser=reasoning_cls,
            reasoning_parser_cls=reasoning_cls,
            parser_cls=self.parser_cls,
            response_role="assistant",
            use_harmony=False,
            tool_call_id_type="random",
            models=SimpleNamespace(model_name=lambda *_: "model"),
            model_config=SimpleNamespace(
                hf_config=SimpleNamespace(model_type="none"), hf_text_config=SimpleNamespace(model_type="none")
            ),
        )

    def request(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = "auto",
        parallel_tool_calls: bool = True,
        stream: bool,
        tokenizer: Any,
    ) -> Any:
        """Return a request as adjusted by the server's parsers."""
        fields: dict[str, Any] = {"tools": list(tools), "tool_choice": tool_choice} if tools else {}
        if not parallel_tool_calls:
            fields["parallel_tool_calls"] = False
        request = self.protocol.ChatCompletionRequest(
            model="model", messages=[{"role": "user", "content": "-"}], stream=stream, **fields
        )
        both = [each for each in getattr(self.parser_cls, "__mro__", ()) if each.__name__ == "DelegatingParser"]
        if both and "adjust_request" in vars(both[0]):
            return self._new_parser(tokenizer, request).adjust_request(request)
        if tool_choice == "none" or not tools:
            return request
        return self.new_tool_parser(tokenizer, request).adjust_request(request=request)

    def _new_parser(self, tokenizer: Any, request: Any) -> Any:
        """Return a combined parser, for releases that have one. The first such release passes it no tools."""
        assert self.parser_cls is not None
        takes_tools = "tools" in inspect.signature(self.parser_cls.__init__).parameters
        return self.parser_cls(tokenizer, request.tools) if takes_tools else self.parser_cls(tokenizer)

    def new_tool_parser(self, tokenizer: Any, request: Any) -> Any:
        """Return a tool parser for one answer."""
        return self.tool_cls(tokenizer, request.tools) if self._takes_tools else self.tool_cls(tokenizer)

    def answer(
        self,
        tokenizer: Any,
        request: Any,
        outputs: Sequence[tuple[str, list[int]]],
        *,
        prompt_ids: list[int],
        finish_reason: str,
    ) -> tuple[Message, str]:
        return asyncio.run(self._answer(tokenizer, request, outputs, prompt_ids, finish_reason))

    async def _answer(
        self,
        tokenizer: Any,
        request: Any,
        outputs: Sequence[tuple[str, list[int]]],
        prompt_ids: list[int],
        finish_reason: str,
    ) -> tuple[Message, str]:
        if not request.stream:
            outputs = [("".join(text for text, _ in outputs), [token for _, ids in outputs for token in ids])]
        given: dict[str, Any] = {
            "request": request,
            "result_generator": _engine(outputs, prompt_ids, finish_reason),
            "request_id": "request",
            "model_name": "model",
            "conversation": [],
            "tokenizer": tokenizer,
            "request_metadata": SimpleNamespace(request_id="request", final_usage_info=None),
            "enable_force_include_usage": False,
        }
        chat = self._chat
        method = chat.chat_completion_stream_generator if request.stream else chat.chat_completion_full_generator
        takes = inspect.signature(method).parameters
        if "reasoning_parser" in takes and self.reasoning_cls is not None:
            given["reasoning_parser"] = self.reasoning_cls(tokenizer)
            if prompt_ids:
                given["reasoning_parser"].is_reasoning_end(prompt_ids)
        if "parser" in takes and self.parser_cls is not None:
            given["parser"] = self._new_parser(tokenizer, request)
            if prompt_ids and hasattr(given["parser"], "set_prompt_token_ids"):
                given["parser"].set_prompt_token_ids(prompt_ids)
        given = {name: value for name, value in given.items() if name in takes}
        if request.stream:
            return await _streamed(method(**given))
        response = await method(**given)
        choice = response.choices[0]
        return choice.message.model_dump(), choice.finish_reason


async def _engine(
    outputs: Sequence[tuple[str, list[int]]], prompt_ids: list[int], finish_reason: str
) -> AsyncIterator[Any]:
    results = import_module("vllm.outputs")
    for at, (text, token_ids) in enumerate(outputs):
        ends = at == len(outputs) - 1
        output = results.CompletionOutput(
            index=0,
            text=text,
            token_ids=token_ids,
            cumulative_logprob=None,
            logprobs=None,
            finish_reason=finish_reason if ends else None,
        )
        yield results.RequestOutput(
            request_id="request",
            prompt="-",
            prompt_token_ids=prompt_ids,
            prompt_logprobs=None,
            outputs=[output],
            finished=ends,
        )


async def _streamed(events: AsyncIterator[str]) -> tuple[Message, str]:
    """Return the message that results from the events of a stream, as OpenAI's clients combine them."""
    message: Message = {"content": "", "reasoning": "", "tool_calls": []}
    finish_reason = ""
    async for event in events:
        data = event.removeprefix("data: ").strip()
        if data == "[DONE]":
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            raise RuntimeError(chunk["error"])
        for choice in chunk["choices"]:
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message["reasoning"] += delta.get("reasoning") or delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls") or ():
                while len(message["tool_calls"]) <= call["index"]:
                    message["tool_calls"].append({"id": None, "function": {"name": "", "arguments": ""}})
                own = message["tool_calls"][call["index"]]
                own["id"] = own["id"] or call.get("id")
                function = call.get("function") or {}
                own["function"]["name"] += function.get("name") or ""
                own["function"]["arguments"] += function.get("arguments") or ""
            finish_reason = choice.get("finish_reason") or finish_reason
    return message, finish_reason


def sources() -> list[Path]:
    root = Path(str(import_module("vllm").__file__)).parent
    folders = ("tool_parsers", "entrypoints/openai/tool_parsers", "reasoning", "parser")
    return [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]


def _without_model(serving: type[Any]) -> Any:
    class WithoutModel(serving):  # type: ignore[misc]
        def __init__(self, **given: Any) -> None:
            self.__dict__.update(given)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return None

    return WithoutModel


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ModuleNotFoundError:
        return False


def _first(*modules: str) -> Any:
    for module in modules[:-1]:
        try:
            return import_module(module)
        except ModuleNotFoundError:
            continue
    return import_module(modules[-1])
