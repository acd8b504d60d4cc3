"""Transcripts are lines that can be read back; an error names the invalid line."""

import json

import pytest

from adapter.core.errors import UsageError
from adapter.recording.transcript import Transcript
from adapter.recording.transcript_lines import ChunkLine, Header, RequestLine, StoredFile

HEADER = Header(task="t", system="s", dialect="blade", format="hermes", tools=("read_file",), files={})


def test_transcript_round_trips_through_text():
    """With surrogates, line breaks and all other text."""
    lines = (RequestLine(number=1, messages=({"role": "user", "content": "é\n\u2028"},)), ChunkLine(text="a\x00b"))
    transcript = Transcript(HEADER.model_copy(update={"files": {"x": StoredFile(text="1")}}), lines)
    assert Transcript.from_text(transcript.to_text()) == transcript


def test_chunks_keep_their_boundaries():
    request = RequestLine(number=1, messages=())
    lines = (request, ChunkLine(text="<to"), ChunkLine(text="ol_call>"), request, ChunkLine(text="x"), request)
    answers = Transcript(HEADER, lines).answers
    assert [[chunk.text for chunk in answer] for answer in answers] == [["<to", "ol_call>"], ["x"], []]


def test_a_transcript_without_answers_has_none():
    """``if transcript.answers`` is then false."""
    assert not Transcript(HEADER, ()).answers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header that `adapter run --record` writes is missing"),
        ('{"kind": "chunk"}\n', "header that `adapter run --record` writes is missing"),
        ("not json\n", "line 1"),
        (HEADER.model_dump_json() + '\n{"kind": "sneeze"}\n', "line 2"),
        (json.dumps(HEADER.model_dump(mode="json") | {"version": 99}) + "\n", "version 99"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(text, message):
    """With the file, the line and the reason."""
    with pytest.raises(UsageError, match=message):
        Transcript.from_text(text, "talk.jsonl")
