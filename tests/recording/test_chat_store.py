"""Stored chats: found, listed, limited, written by one program at a time, and readable after a crash."""

import os

import pytest

from adapter.core.errors import UsageError
from adapter.recording.chat_store import MAX_CHATS, ChatStore, OpenChat
from adapter.recording.restore_chat import REFUSED, restore_chat
from adapter.recording.transcript import Transcript, dump_line
from adapter.recording.transcript_lines import (
    CallLine,
    ChunkLine,
    EndLine,
    Header,
    NoteLine,
    RequestLine,
    ResultLine,
    UserMessageLine,
)
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

HEADER = Header(task="First", system="s", dialect="blade", format="hermes", tools=("read_file",))
TOOLS = ToolSet([Tool("read_file", effect="read")])
REQUEST = RequestLine(number=1, messages=())
CALL = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'


def fails(reason):
    raise AssertionError(reason)


def begun(talks, *lines):
    with talks.begin() as talk:
        write = talk.create_writer(fails)
        for line in (HEADER, *lines):
            write(dump_line(line))
    return talk


def test_a_chat_is_found_by_its_beginning_or_as_the_last_one(tmp_path):
    """An ambiguous id is an error with the nearest ids."""
    talks = ChatStore(tmp_path)
    with pytest.raises(UsageError, match="start one with `adapter chat`"):
        talks.find(None)
    first, second = begun(talks), begun(talks, UserMessageLine(text="and"))
    for number, talk in enumerate((second, first)):
        os.utime(talk.path, (number, number))
    assert first.id != second.id
    assert talks.find(None).path == first.path
    assert talks.find(second.id).messages == 2
    assert [kept.first for kept in talks.list_chats()] == ["First", "First"]
    with pytest.raises(UsageError, match="the ids of 2 chats begin with '2'"):
        talks.find("2")
    with pytest.raises(UsageError, match=r"this folder has no saved chat '1999'; did you mean \d+-"):
        talks.find("1999")


def test_the_oldest_are_forgotten(tmp_path):
    """When a new chat begins. Files that are not chats are not listed."""
    for number in range(MAX_CHATS + 5):
        (tmp_path / f"{number:03}.jsonl").write_text(dump_line(HEADER) if number else "nonsense")
        os.utime(tmp_path / f"{number:03}.jsonl", (number, number))
    talk = begun(ChatStore(tmp_path))
    assert len(list(tmp_path.glob("*.jsonl"))) == MAX_CHATS
    assert talk.path.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "005.jsonl").exists()
    assert (tmp_path / "006.jsonl").exists()


def test_one_program_writes_and_a_crash_costs_the_line_that_it_cut(tmp_path):
    """The second program is informed. Text written after the cut line is complete."""
    talk = begun(ChatStore(tmp_path), UserMessageLine(text="kept"))
    talk.path.write_text(talk.path.read_text() + '{"kind": "said", "te')
    with OpenChat(talk.path) as opened:
        with pytest.raises(UsageError, match="open in another program"):
            OpenChat(talk.path)
        assert [line.kind for line in opened.read_transcript().lines] == ["said"]
        opened.create_writer(fails)(dump_line(UserMessageLine(text="more")))
        assert len(opened.read_transcript().lines) == 2


def test_a_full_disk_is_reported_once(tmp_path):
    """And the chat continues."""
    said: list[str] = []
    with OpenChat(tmp_path / "x.jsonl", os.O_CREAT) as talk:
        os.dup2(os.open("/dev/full", os.O_WRONLY), talk._file.fileno())
        write = talk.create_writer(said.append)
        write("one\n")
        write("two\n")
    assert said == ["the rest of this chat is not saved: No space left on device"]


def test_restore_chat_returns_messages_and_notes():
    """Without rejected answers. A call without a result was refused or stopped. Notes come with the next message."""
    call, result = CallLine(id="1", name="read_file", arguments={"path": "a"}), ResultLine
    given = result(call_id="1", name="read_file", ok=True, content="text")
    transcript = Transcript(
        HEADER,
        (
            *(REQUEST, ChunkLine(text="I will."), REQUEST, ChunkLine(text=f"I read. {CALL}"), call, given),
            *(REQUEST, ChunkLine(text=CALL), call, REQUEST, ChunkLine(text="It is text."), EndLine(reason="answered")),
            *(
                NoteLine(text="[undone]"),
                UserMessageLine(text="Again"),
                REQUEST,
                ChunkLine(text="Once"),
                ChunkLine(text=" up"),
            ),
            *(
                EndLine(reason="interrupted"),
                UserMessageLine(text="Go on"),
                REQUEST,
                EndLine(reason="failed", content="down"),
            ),
            NoteLine(text="[redone]"),
        ),
    )
    past = restore_chat(transcript, TOOLS)
    assert [message.text for message in past.messages] == [
        "First",
        "[undone]\n\nAgain",
        "[The user stopped your last answer before its end.]\n\nGo on",
    ]
    first, second, third = (message.answers for message in past.messages)
    assert [turn.content.strip() for turn, _ in first] == ["I read.", "", "It is text."]
    assert [[each.content for each in results] for _, results in first] == [["text"], [REFUSED], []]
    assert [turn.content for turn, _ in second] == ["Once up"]
    assert third == []
    assert past.notes == ["[redone]"]
