"""Translate chat requests with tools for models that only write text, and translate their answers back. No I/O.

::

    request = translate_chat_request(body, TranslationOptions())    an OpenAI request with tools -> one without
    answer = StreamedCompletion(request)                            the model's text -> OpenAI's answer with tool_calls
    answer.feed(chunk), answer.close()                              a streamed answer
    BufferedCompletion(request).feed(completion)                    a buffered answer

`adapter.server` uses it in an HTTP server, and `adapter.integrations.openai_client.wrap` in an OpenAI client. A request
passes through these modules:

- `anthropic_request`, `openai_responses_request` or `ollama` convert it from the client's API to an OpenAI chat.
- `chat_request_translation` builds a `translated_request`, with the settings of `translation_options`. `request_tools`
  selects the tools and the format, `token_budgets` shortens long conversations, and `request_prompt` and
  `request_constraint` add the prompt and the constraint.
- `template_prompt` determines the requests that are sent to the model server.
- `answer_translation` converts the bytes of the answer to chunks, and `openai_chat_response` the chunks to choices.
- `choice_stream` parses the text of a choice. `followed_choice` requests more text, `choice_deltas` writes deltas,
  `pending_answer` records the answer, and `tool_call_deltas` numbers calls. `truncated_calls` recognizes calls that
  were cut off.
- `anthropic_response`, `ollama` or `openai_responses_stream` write the answer in the client's API. They encode the
  parts that `answer_parts` collects.
"""

__all__ = [
    "answer_translation", "anthropic_request", "anthropic_response", "chat_request_translation", "choice_stream",
    "conversation_cache", "dropped_fields", "exchange_guardrails", "grounding_constraint", "llama_cpp_completion",
    "media_parts", "model_descriptions", "ollama", "openai_chat_response", "openai_errors", "openai_responses_items",
    "openai_responses_request", "openai_responses_stream", "openai_responses_tools", "reasoning_budget",
    "recorded_exchange", "request_body_parsing", "request_errors", "request_list_cache", "request_stats", "sse",
    "template_messages", "template_prompt", "token_budgets", "tool_call_deltas", "translated_request",
    "translation_options", "upstream_failures", "usage",
]  # fmt: skip
