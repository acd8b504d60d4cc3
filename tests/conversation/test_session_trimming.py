"""A conversation that is too long is cut rarely, permanently, and with a note."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from adapter.conversation.message_rendering import HistoryEntry
from adapter.conversation.session import Session
from adapter.conversation.session_steps import AskModel, RunTools, SessionLimits
from adapter.conversation.session_trimming import trim_to_context
from adapter.conversation.token_estimate import compute_usable_tokens
from adapter.core.events import ToolResult
from adapter.parsing.formats import get_format
from adapter.parsing.parser import parse
from adapter.tools.tool import Tool
from adapter.tools.tool_set import ToolSet

ENCODE = get_format("hermes").encode_result
TOOLS = ToolSet([Tool("read_file", effect="read")])
LINES = "\n".join(f"{number}: some line of a file" for number in range(60))


def call(number: int) -> str:
    return f'<tool_call>\n{{"name": "read_file", "arguments": {{"path": "{number}.py"}}}}\n</tool_call>'


def conversation(turns: int, context: int | None, share: float = 1.0, content: str = LINES) -> list[AskModel]:
    """Return the queries of a session in which a model reads one file per turn; the server counts ``share`` of our
    estimate.
    """
    session = Session("system", get_format("hermes"), TOOLS, SessionLimits(turns=turns + 1, context_tokens=context))
    queries = [session.start("Read everything.")]
    for number in range(turns):
        step = session.on_answer(parse(call(number)), int(tokens(queries[-1]) * share))
        assert isinstance(step, RunTools)
        step = session.on_tool_results([ToolResult("read_file", True, content, call_id=each.id) for each in step.calls])
        assert isinstance(step, AskModel)
        queries.append(step)
    return queries


def tokens(query: AskModel) -> int:
    return sum(HistoryEntry(str(message["role"]), str(message["content"])).tokens for message in query.messages)


def test_long_conversation_stays_within_the_context():
    """Every query fits; the roles still take turns; the system prompt and the last result are whole."""
    for query in conversation(40, 4_000):
        assert tokens(query) <= compute_usable_tokens(4_000)
        assert [message["role"] for message in query.messages[:2]] == ["system", "user"]
        assert all(one["role"] != other["role"] for one, other in pairwise(query.messages))
        assert query.messages[0]["content"] == "system"
    assert LINES in query.messages[-1]["content"]


def test_cuts_are_rare_and_permanent():
    """Between two cuts each query begins with the one before it, so that a server reuses what it has read."""
    queries = conversation(40, 4_000)
    grown = [later.messages[: len(query.messages)] == query.messages for query, later in pairwise(queries)]
    assert 2 <= grown.count(False) == sum(bool(query.note) for query in queries) <= len(queries) / 3


def test_cuts_are_reported_to_model_and_user():
    """The model sees a note in place of the text, the user in the step."""
    queries = conversation(40, 4_000)
    first = next(query for query in queries if query.note)
    assert "older results were shortened" in first.note
    told = f'[shortened: read_file(path="0.py") returned {len(LINES)} characters in 60 lines; call it again'
    assert told in first.messages[3]["content"]
    assert "turns after this message were left out" in queries[-1].messages[1]["content"]
    assert queries[-1].messages[1]["content"].startswith("Read everything.")
    assert str(queries[-1].messages[1]["content"]).count("left out") == 1


def test_shortened_result_has_whole_lines():
    """The start of a file and the end of a command's output matter most."""

    def shown(name: str) -> list[str]:
        result = (name, LINES, "c")
        entries = [
            HistoryEntry("system", "s"),
            HistoryEntry("user", "t"),
            HistoryEntry("assistant", "call"),
            HistoryEntry("user", LINES, (result,)),
        ]
        fitted = trim_to_context([*entries, HistoryEntry("assistant", "last")], 300, ENCODE)
        return str(fitted.entries[3].content).splitlines()

    for name in ("read_file", "run_command"):
        lines = [line for line in shown(name) if line[0] not in "[<"]
        assert set(lines) <= set(LINES.splitlines())
        assert (lines.index("59: some line of a file") > len(lines) / 2) is True
    first = [
        sum(line.startswith(tuple("0123456789")) and int(line.split(":")[0]) < 30 for line in shown(name))
        for name in ("read_file", "run_command")
    ]
    assert first[0] > first[1] > 0


def test_structured_messages_are_shortened():
    """With structured calls and results, each call keeps its result."""
    limits = SessionLimits(turns=41, context_tokens=4_000)
    session = Session("system", get_format("hermes"), TOOLS, limits, shows_calls=True)
    query = session.start("Read everything.")
    for number in range(40):
        step = session.on_answer(parse(call(number)))
        assert isinstance(step, RunTools)
        then = session.on_tool_results([ToolResult("read_file", True, LINES, call_id=each.id) for each in step.calls])
        assert isinstance(then, AskModel)
        query = then
        assert tokens(query) <= compute_usable_tokens(4_000)
        called = [each["id"] for message in query.messages for each in message.get("tool_calls") or ()]
        assert called == [message["tool_call_id"] for message in query.messages if message["role"] == "tool"]


def test_token_count_of_the_server_corrects_the_estimate():
    """A server that counts twice as many tokens as we do has half as many messages."""
    assert all(
        2 * tokens(query) <= compute_usable_tokens(4_000) + 200 for query in conversation(30, 4_000, share=2.0)[1:]
    )


def test_single_large_result_is_shortened():
    """Also the last one; its start and end are kept."""
    query = conversation(1, 2_000, content=f"first\n{LINES * 20}\nlast")[-1]
    assert tokens(query) <= compute_usable_tokens(2_000)
    shown = str(query.messages[-1]["content"])
    assert shown.startswith("<tool_response>\nfirst\n")
    assert "\nlast\n</tool_response>" in shown


def test_unknown_context_disables_cuts():
    """The server then reports longer prompts."""
    assert not any(query.note for query in conversation(10, None))
    assert tokens(conversation(10, None)[-1]) > 4_000


def test_tools_too_large_for_the_context_are_reported_at_once():
    """Nothing can be shortened in the first query; the user is informed before the answer."""
    session = Session(LINES * 10, get_format("hermes"), TOOLS, SessionLimits(context_tokens=2_000))
    assert "the tools and the task alone take about" in session.start("Go.").note


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 2)), max_size=12),
    st.integers(50, 3_000),
)
def test_trimmed_history_has_whole_turns(sizes, limit):
    """The rest begins with system and task, continues with an answer, and fits unless these alone do not."""
    entries = [HistoryEntry("system", "s"), HistoryEntry("user", "task")]
    for size, results in sizes:
        content = "word " * size
        made = tuple(("read_file", content, str(number)) for number in range(results))
        entries += [
            HistoryEntry("assistant", "call"),
            HistoryEntry("user", "\n".join(ENCODE(*each) for each in made), made),
        ]
    fitted = trim_to_context(entries, limit, ENCODE)
    left = fitted.entries
    assert left[:2] == entries[:2]
    assert [entry.role for entry in left[2:]] == ["assistant", "user"] * ((len(left) - 2) // 2)
    assert len(entries) - len(left) == 2 * fitted.dropped
    if sum(entry.tokens for entry in entries) <= limit:
        assert left == entries
    elif limit > 900:
        assert sum(entry.tokens for entry in left) <= limit
