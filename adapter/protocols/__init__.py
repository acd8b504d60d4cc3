"""Translate chat requests with tools for models that only write text, and translate their answers back. No I/O.

::

    request = translate_chat_request(body, TranslationOptions())    an OpenAI request with tools -> one without
    answer = StreamedCompletion(request)                            the model's text -> OpenAI's answer with tool_calls
    answer.feed(chunk), answer.close()                              a streamed answer
    BufferedCompletion(request).feed(completion)                    a buffered answer

`adapter.server` uses it in an HTTP server, and `adapter.integrations.openai_client.wrap` in an OpenAI client. A request
passes through these modules: `anthropic_request`, `openai_responses_request` or `ollama` (from the client's API to a
chat), `translation_options`, `tool_request` (tools and format), `translate`, with `budgets` (long conversations),
`request_prompt` and `request_constraint`, `translated_request` (the result), `template_prompt` (how it is sent),
`exchange` (bytes to chunks and back), `openai_chat_response` (chunks to choices), `openai_choice` (text to events, with
`choice_follow_ups` asking for more, `choice_output` writing deltas, `held_answer` recording the answer,
`tool_call_deltas` numbering calls, `cut_calls` and `native_calls`; `prefill` lets the model go on with its text),
and the writer of the client's API (`anthropic_response`, `ollama`, `openai_responses_stream`), which encodes the parts
of the answer (`answer_parts`).
"""

__all__ = [
    "anthropic_request",
    "anthropic_response",
    "budgets",
    "conversation_cache",
    "dropped_fields",
    "exchange",
    "grounding",
    "guarded_exchange",
    "llama_cpp",
    "media_parts",
    "model_descriptions",
    "native_calls",
    "ollama",
    "openai_chat_response",
    "openai_choice",
    "openai_errors",
    "openai_responses_items",
    "openai_responses_request",
    "openai_responses_stream",
    "openai_responses_tools",
    "reasoning_budget",
    "recorded_exchange",
    "request_body_parsing",
    "request_stats",
    "sse",
    "template_messages",
    "template_prompt",
    "translate",
    "translated_request",
    "translation_options",
    "upstream_failures",
    "usage",
]
