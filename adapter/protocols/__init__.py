"""Chat requests with tools for models that only write text, without I/O.

::

    request = translate(body, Options())               an OpenAI request with tools -> one without
    answer = StreamedCompletion(request)               the model's text -> OpenAI's answer with tool_calls
    answer.feed(chunk), answer.close()                 as it streams
    BufferedCompletion(request).feed(completion)       in one piece

`adapter.server` puts this behind HTTP, `adapter.integrations.openai_client.wrap` inside an OpenAI client. The way of a request, module
by module: `anthropic`, `responses` or `ollama` (from the client's protocol to a chat), `options`, `asked` (its tools
and format), `request` (prompt and constraint), `translated` (the result), `own_prompt` (sending it), `exchange` (bytes
to chunks and back), `answer` (chunks to choices), `choice` (one answer's text to deltas, with `attempt` recording it
and `told_calls` numbering calls), and a writer of the client's protocol.
"""

__all__ = [
    "anthropic_request",
    "anthropic_response",
    "dropped_fields",
    "exchange",
    "guarded_exchange",
    "llama_cpp",
    "ollama",
    "openai_chat_response",
    "openai_choice",
    "openai_errors",
    "openai_responses_items",
    "openai_responses_request",
    "openai_responses_stream",
    "openai_responses_tools",
    "recorded_exchange",
    "request_limits",
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
