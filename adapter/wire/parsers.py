"""What reads a model's answer to a request: a reply in a shape that was enforced, or text in a format."""

from __future__ import annotations

from adapter.constraints.replies import ReplyParser
from adapter.formats import told_format
from adapter.formats.parser import Parser
from adapter.wire.translated import Request


def parser_of(
    request: Request, index: int, generation_prompt: str | None, *, is_whole: bool = False
) -> Parser | ReplyParser:
    """For the answer with this ``index``, whose text goes on after ``generation_prompt``. ``is_whole``: nobody is told
    of it before its end."""
    format, turn = told_format(request.format), f"{request.turn}{index or ''}"
    streams = request.stream_arguments and not is_whole
    if request.reply is not None:
        return ReplyParser(request.tools, request.reply, turn=turn, stream_arguments=streams, format=format)
    return Parser(
        format,
        tools=request.tools,
        generation_prompt=generation_prompt,
        turn=turn,
        policy=request.policy,
        stream_arguments=streams,
    )
