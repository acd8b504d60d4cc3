"""Chat completions with tools, carried by a model that reads and writes plain text. No I/O.

::

    request = translate(body, Options())     an OpenAI request with tools -> one without
    answer = Answer(request)                 the model's text -> OpenAI's answer with tool_calls
    answer.feed(chunk), answer.close()       as it streams
    Whole(request).feed(completion)          in one piece

`adapter.server` puts this behind HTTP, `adapter.server.wrapped` inside an OpenAI client.
"""
