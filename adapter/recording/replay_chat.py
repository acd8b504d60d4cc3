"""A chat client that replays recorded answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapter.backends.stream_chunks import Chunk
from adapter.conversation.message_rendering import Message
from adapter.core.errors import TransportError
from adapter.protocols.usage import Usage
from adapter.recording.transcript import Transcript
from adapter.recording.transcript_lines import EndLine


class ReplayChat:
    """A chat that streams the recorded chunks, and ends or fails as the recorded conversation did."""

    def __init__(self, transcript: Transcript) -> None:
        self._answers = list(transcript.answers)
        self._end = next((line for line in transcript.lines if isinstance(line, EndLine)), None)

    def stream(self, messages: Sequence[Message], *, stop: Sequence[str] = ()) -> Iterator[Chunk]:  # noqa: ARG002
        if not self._answers:
            raise TransportError("the conversation requests more responses than were recorded")
        for line in self._answers.pop(0):
            usage = None if line.prompt_tokens is None else Usage(line.prompt_tokens, line.written_tokens or 0)
            yield Chunk(line.text, line.reasoning, line.finish_reason, usage=usage)
        if self._end is not None and not self._answers:
            if self._end.reason == "interrupted":
                raise KeyboardInterrupt
            if self._end.reason == "failed":
                raise TransportError(self._end.content)
