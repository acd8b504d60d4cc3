"""Each guardrail finds its fault, says it in words a model can act on, and leaves clean answers alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, call_history_of, looks_like_error
from adapter.conversation.guardrails.engine import NO_STEPS, Accept, Guardrails, Retry, Stop
from adapter.conversation.guardrails.registry import BY_STEPS, DEFAULT, GUARDRAILS, parse_guardrails
from adapter.conversation.guardrails.required_steps import parse_steps
from adapter.conversation.guardrails.response_checks import CandidateAnswer
from adapter.core.errors import UsageError
from adapter.core.turn import Turn
from adapter.parsing.parser import parse
from adapter.tools.tool import ToolSet

ANSWERS = Path(__file__).parent / "answers"


def definition(name: str, **properties: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "parameters": {**parameters, "required": list(properties)[:1]}}


TOOLS = ToolSet(
    [
        definition("read_file", path="string", line="integer"),
        definition("delete_file", path="string"),
        definition("web_search", query="string"),
        definition("run_command", command="string"),
        definition("get_weather", city="string"),
        definition("check_status", job="string"),
        definition("submit", text="string"),
    ]
)
SEARCH = PastCall("web_search", {"query": "x"}, "1 hit", changes=True)
READ = PastCall("read_file", {"path": "a"}, "text")
OTHER = PastCall("read_file", {"path": "b"}, "other")


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def turn(text: str) -> Turn:
    return parse(text, TOOLS, finish_reason="stop")


def judged(text: str, *made: PastCall, on: str = "on", steps: Any = NO_STEPS, request: str = "") -> Any:
    guardrails = Guardrails(TOOLS, on=parse_guardrails(on), steps=steps)
    return guardrails.check_response(CallHistory(request, made), CandidateAnswer.of(turn(text)))


def lines(name: str) -> list[tuple[str, str]]:
    """(request, answer) of a file with one answer a line, ``request => answer`` where the request matters."""
    found = (line.rpartition(" => ") for line in (ANSWERS / name).read_text(encoding="utf-8").splitlines())
    return [(request, answer.replace("\\n", "\n")) for request, _, answer in found]


@pytest.mark.parametrize("name", ["clean.txt", "held_out_clean.txt", "held_out_clean_2.txt", "held_out_clean_3.txt"])
@pytest.mark.parametrize("made", [(), (READ,)], ids=["at once", "after a result"])
def test_a_clean_answer_is_accepted(name, made):
    """Many kinds, several languages: answers, offers, questions, conditions, right refusals, code, texts that were
    asked for. None is asked again."""
    answers = lines(name)
    assert len(answers) > 20
    on = "on" if made else "on,-unfounded_success"  # some of them say that something was done
    alarms = [answer for request, answer in answers if judged(answer, *made, on=on, request=request) != Accept()]
    assert alarms == []


@pytest.mark.parametrize(("name", "least"), [("announced.txt", 1.0), ("held_out_announced.txt", 0.95)])
def test_an_announcement_without_its_call_is_asked_again(name, least):
    """In the languages that models are asked in."""
    answers = [answer for _, answer in lines(name)]
    found = [answer for answer in answers if getattr(judged(answer), "guardrail", "") == "announced_call"]
    assert len(found) >= least * len(answers), set(answers) - set(found)


HOLLOW = """\
I apologize, but I am not able to perform this task.
Sorry, but I can't do that.
I'm sorry, I don't have access to that information.
As a large language model, I cannot access external systems.
I'm afraid I can't do that.
Unfortunately, I do not have access to this data. Please check manually.
I'm just an AI, so I can't do this.
I regret that I am unable to complete this request.
I'm sorry, but I'm unable to assist with that.
I am not able to process your request at this time.
Task completed successfully.
I've completed the task.
All done! Let me know if you need anything else.
Your request has been processed.
The operation was successful.
I have successfully completed your request.
The requested action has been performed.
Great, that's done!
Success!
Checking now...
Now calling get_weather.
Hold on, I'm looking it up.
Let me look into this for you. One moment please.
Give me a second.
Next step: get_weather."""


@pytest.mark.parametrize("answer", HOLLOW.splitlines())
def test_an_answer_that_holds_nothing_is_asked_again_after_results_too(answer):
    """Refusals without a reason, successes without a result, and words that bid the user wait."""
    assert isinstance(judged(answer, READ, request="Which parcel is it?"), Retry)


def test_a_call_that_was_cut_off_is_shown_as_its_own_tool_is_called():
    """Not as the first of the request's."""
    again = judged('<tool_call>\n{"name": "run_command", "arguments": {"command": "ls -la read_file')
    assert isinstance(again, Retry)
    assert '"name": "run_command"' in again.message
    assert again.held_to == ("run_command",)


FAULTS: list[tuple[str, str, tuple[PastCall, ...], str]] = [
    (
        "unreadable_call",
        '<tool_call>\n{"name": "read_file", "arguments": {"path": \n</tool_call>',
        (),
        "could not be read",
    ),
    ("unknown_tool", call("reed_file", path="a"), (), "'read_file'"),
    ("wrong_arguments", call("read_file", line="soon"), (), "'path' is missing (string)"),
    ("made_already", call("read_file", path="a"), (READ,), "already, right before, and its result is there: text"),
    ("repeated_call", call("read_file", path="a"), (READ, READ, READ, OTHER), "3 times"),
    (
        "cycle",
        call("read_file", path="a"),
        (READ, SEARCH) * 2,
        "read_file -> web_search",
    ),
    ("empty_answer", "", (), "Your answer is empty"),
    ("empty_answer", "<think>Hm.</think>", (), "You only thought"),
    ("invented_result", "<tool_response>\nsunny\n</tool_response>\nIt is sunny.", (), "Only the tool gives results"),
    ("wrong_markup", '```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```\nI wait.', (), "read_file"),
    ("announced_call", "Let me read the file:", (), "did not do it"),
    ("refusal", "I'm sorry, but I don't have access to your files.", (), "read_file is yours to call"),
    ("refusal", "I cannot browse the internet.", (), "web_search"),
    (
        "refusal",
        "I'm sorry, but as a language model I have no access to this.",
        (READ,),
        "use the results that you have",
    ),
    ("refusal", "Unfortunately, I'm unable to look this up. Please check it yourself.", (), "You can do more"),
    ("refusal", "I'm sorry, I can't assist with that request.", (READ,), "or why not"),
    (
        "invented_turn",
        "It is done.\n\nUser: Thanks. And b?\nAssistant: Of course.\n" + call("delete_file", path="b"),
        (READ,),
        "You wrote the user's words",
    ),
    ("unfounded_success", "I've taken care of it.", (), "Nothing was done yet"),
    ("unfounded_success", "Everything is done as you asked.", (), "Nothing was done yet"),
    (
        "ignored_result",
        "All files are deleted.",
        (PastCall("delete_file", {}, "error: denied", ok=False),),
        "error: denied",
    ),
    ("other_speaker", "Hello!\nUser: hi\nAssistant: Hello!", (), "your own answer"),
]


@pytest.mark.parametrize(("name", "text", "made", "told"), FAULTS, ids=[each[0] for each in FAULTS])
def test_each_fault_has_its_name_and_its_message(name, text, made, told):
    """Found where all are on; not where this one is off."""
    verdict = judged(text, *made, on="all")
    assert isinstance(verdict, Retry)
    assert verdict.guardrail == name
    assert told in verdict.message
    assert len(verdict.message) < 400
    assert getattr(judged(text, *made, on=f"all,-{name}"), "guardrail", "") != name


@pytest.mark.parametrize("text", ["\n***" * 50_000, "\n" * 200_000, "\nUser: x" * 50_000, " \t" * 100_000 + "next "])
def test_hostile_answers_take_no_time_and_break_nothing(text):
    """Each is looked at by every guardrail; what is quadratic in its length would take minutes."""
    guardrails = Guardrails(TOOLS, on=parse_guardrails("all"))
    for said in (CandidateAnswer(text), CandidateAnswer(text, turn(call("read_file", path="a")).calls)):
        guardrails.check_response(CallHistory("What is it?"), said)


def test_the_table_of_faults_is_whole():
    """Every guardrail has a case here or among the steps."""
    assert {each[0] for each in FAULTS} | BY_STEPS == set(GUARDRAILS)


def test_a_message_shows_the_right_call_with_what_was_right_of_the_wrong():
    """The nearest valid call, not just any."""
    verdict = judged(call("read_file", path="a.py", line="soon"))
    assert '{"name": "read_file", "arguments": {"path": "a.py"}}' in verdict.message
    assert "'line' is \"soon\": expected integer" in verdict.message or "line is" in verdict.message


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (call("read_file", path="b"), (READ,) * 3),
        (call("read_file", path="a"), (READ, READ, PastCall("read_file", {"path": "a"}, "changed"))),
        (call("read_file", path="a"), (READ, SEARCH, READ, SEARCH)),
        (call("check_status", job="7"), (PastCall("check_status", {"job": "7"}, "pending"),) * 9),
        (call("read_file", path="a"), (OTHER, READ, SEARCH)),
        (call("read_file", path="a"), (PastCall("read_file", {"path": "a"}, "error: busy", ok=False),)),
        (call("run_command", command="make"), (PastCall("run_command", {"command": "make"}, "still running"),)),
        ("Sorry, I can't help with that.", ()),
        ("I'm unable to look this up.", (PastCall("web_search", {}, "error: offline", ok=False),)),
        ("I don't have access to your files.", (READ,)),
        ("I don't have access to your mailbox.", ()),
        ("<tool_response>\ntext\n</tool_response>\nThat is the file.", (READ,)),
        ("To call it, write `<tool_call>` and `read_file`.", ()),
        ("It failed: denied.", (PastCall("delete_file", {}, "error: denied", ok=False),)),
    ],
)
def test_what_only_looks_like_a_fault_is_accepted(text: str, made: tuple[PastCall, ...]) -> None:
    """Another argument, another result, a tool to be polled, a refusal that is right, a copied result."""

    assert judged(text, *made, on="all,-cycle") == Accept()


@pytest.mark.parametrize(
    ("request_", "answer", "is_asked"),
    [
        ("How many lines has a?", "Everything is done as you asked.", True),
        ("Read a and tell me its last word.", "Done! Is there anything else?", True),
        ("How many lines has a?", "Done! It has 14.", False),
        ("Delete a, and tell me when it is done.", "Done!", False),
        ("Could you delete a?", "Done!", False),
    ],
)
def test_done_is_no_answer_where_something_was_to_be_told(request_, answer, is_asked):
    """After a call, too."""
    verdict = judged(answer, READ, request=request_)
    assert getattr(verdict, "guardrail", "") == ("unfounded_success" if is_asked else "")


def test_a_call_may_be_meant_to_be_made_again():
    """A model that insists is believed, and a request that says so is not doubted."""
    guardrails = Guardrails(TOOLS)
    past, again = CallHistory("Read it.", (READ,)), CandidateAnswer.of(turn(call("read_file", path="a")))
    assert isinstance(guardrails.check_response(past, again), Retry)
    assert guardrails.check_response(past, again) == Accept()
    assert judged(call("read_file", path="a"), READ, request="Read it twice.") == Accept()


@pytest.mark.parametrize(
    ("answer", "tail"),
    [
        ("It is done.\n\nUser: And b?\nAssistant: Yes.\n", False),
        ("### Response\nIt is done.\n### User\nAnd b?\n### Assistant\n", False),
        ("The entry is\nUser: bob\nState: on\n", True),
    ],
)
def test_a_call_in_an_invented_turn_is_none_of_the_answer(answer, tail):
    """It is cut off with all that follows; the answer before it stands. Not where dialogues were asked for."""
    read = turn(answer + call("delete_file", path="b") + "\nDeleted.")
    own = Guardrails(TOOLS).enabled_faults(CallHistory("Do it."), read)
    assert bool(own.calls) is tail
    assert own.content.startswith(answer[:10])
    assert Guardrails(TOOLS).enabled_faults(CallHistory("Write a dialogue into b."), read) == read
    assert (
        Guardrails(TOOLS, on=parse_guardrails("on,-invented_turn")).enabled_faults(CallHistory("Do it."), read) == read
    )


def test_the_same_words_are_never_said_a_third_time():
    """A few wordings, then the answer counts, or the loop is told to stop."""
    guardrails = Guardrails(TOOLS, retries=9)
    *said, last = [guardrails.check([], turn("Let me read the file:")) for _ in range(4)]
    assert len({each.message for each in said if isinstance(each, Retry)}) == 3
    assert last == Accept()
    endings = [guardrails.check([], turn("")) for _ in range(4)]
    assert isinstance(endings[-1], Stop)
    assert "nothing" in endings[-1].reason


def test_tries_are_bounded_together_and_counted_anew_after_a_good_answer():
    """``retries`` answers in a row, whatever the faults."""
    guardrails = Guardrails(TOOLS, retries=2)
    assert isinstance(guardrails.check([], turn("")), Retry)
    assert isinstance(guardrails.check([], turn("Let me check the file.")), Retry)
    assert guardrails.asked_again == ("empty_answer", "announced_call")
    assert guardrails.check([], turn(call("reed_file"))) == Accept()
    assert isinstance(guardrails.check([], turn("")), Retry)


def test_what_was_cut_off_is_not_asked_again():
    """A longer answer would be cut again."""
    assert Guardrails(TOOLS).check([], turn("Let me read the file:"), "length") == Accept()


def test_a_call_that_is_asked_again_may_be_held_to_its_tool():
    """The server can then enforce a right one; an announcement stays free."""
    assert judged(call("read_file")).held_to == ("read_file",)
    assert judged("Let me read the file:").held_to == ()


def message_of(name: str) -> str:
    """What is said first of the fault ``name``, in one line."""
    cases = [*((each, text, made) for each, text, made, _ in FAULTS), *FAULTS_BY_STEPS]
    _, text, made = next(case for case in reversed(cases) if case[0] == name)
    steps = STEPS if name in BY_STEPS else NO_STEPS
    verdict = judged(text, *made, on=f"off,{name}", steps=steps)
    assert isinstance(verdict, Retry), name
    return " ".join(verdict.message.replace("|", "").replace("<", "&lt;").split())


STEPS = {"required": ["web_search"], "before": {"delete_file": ["read_file(path)"]}, "ends_with": ["submit"]}


FAULTS_BY_STEPS: list[tuple[str, str, tuple[PastCall, ...]]] = [
    ("missing_prerequisite", call("delete_file", path="a"), (SEARCH,)),
    ("missing_steps", "It is done.", ()),
    ("after_the_end", call("web_search", query="z"), (SEARCH, PastCall("submit", {"text": "x"}, "ok"))),
]


@pytest.mark.parametrize(
    ("text", "made", "guardrail"),
    [
        ("It is done.", (), "missing_steps"),
        ("It is done.", (SEARCH,), "missing_steps"),  # not without what ends it
        (call("submit", text="x"), (), "missing_steps"),
        (call("submit", text="x"), (SEARCH,), ""),
        (call("web_search", query="y") + call("submit", text="x"), (), ""),
        (call("delete_file", path="a"), (SEARCH,), "missing_prerequisite"),
        (call("delete_file", path="b"), (READ,), "missing_prerequisite"),
        (call("delete_file", path="a"), (READ,), ""),
        ("It is done.", (SEARCH, PastCall("submit", {"text": "x"}, "ok")), ""),
        (call("web_search", query="z"), (SEARCH, PastCall("submit", {"text": "x"}, "ok")), "after_the_end"),
        (call("submit", text="x"), (SEARCH, PastCall("submit", {"text": "x"}, "error: no", ok=False)), ""),
    ],
)
def test_steps_are_kept(text, made, guardrail):
    """What is required comes before the end, what is needed before what needs it, and nothing after the end."""
    assert getattr(judged(text, *made, steps=STEPS), "guardrail", "") == guardrail


def test_steps_begin_anew_with_each_message_of_the_user_but_not_what_was_read():
    """``required`` is of the task, ``before`` of the conversation."""
    steps, past = parse_steps(STEPS), CallHistory("", (SEARCH, READ), turn_start=2)
    assert steps.pending(past) == ("web_search",)
    assert steps.missing_before(past, PastCall("delete_file", {"path": "a"})) == ()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"require": ["a"]}, "the key 'require'"),
        ({"required": 5}, "steps.required must be a list"),
        ({"before": ["a"]}, "steps.before must be"),
        ("read", "got 'read'"),
        ({"required": ["a b"]}, "steps.required"),
    ],
)
def test_wrong_steps_are_told(given, told):
    with pytest.raises(UsageError, match=told):
        parse_steps(given)


def test_a_conversation_is_read_from_openais_messages():
    """Calls with their results, by id; whatever is no message is passed over."""
    function = {"name": "read_file", "arguments": '{"path": "a"}'}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Read a"}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "function": function}, {"id": "c2", "function": function}, 5],
        },
        {"role": "tool", "tool_call_id": "c2", "content": "error: no such file"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "text"}]},
        None,
        "nonsense",
    ]
    past = call_history_of(messages)
    assert past.request == "Read a"
    assert [(made.name, made.result, made.ok) for made in past.calls] == [
        ("read_file", "text", True),
        ("read_file", "error: no such file", False),
    ]


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("error: no such file", True),
        ("Error: 404", True),
        ("tool_error: x", True),
        ('{"error": "not found"}', True),
        ('{"success": false}', True),
        ("Traceback (most recent call last):", True),
        ('{"error": null, "value": 3}', False),
        ("errors.py: 12 lines", False),
        ("No errors found", False),
        ("", False),
    ],
)
def test_a_result_says_whether_it_failed(result, failed):
    assert looks_like_error(result) is failed


def test_guardrails_are_chosen_by_name():
    assert parse_guardrails("on") == DEFAULT
    assert parse_guardrails("off") == frozenset()
    assert parse_guardrails("on,-refusal,other_speaker") == DEFAULT - {"refusal"} | {"other_speaker"}
    assert parse_guardrails("off,refusal") == {"refusal"}
    with pytest.raises(UsageError, match="unknown guardrail 'refusals'; expected on, off, all"):
        parse_guardrails("refusals")


@pytest.mark.parametrize("retries", [-1, 1.5, "2"])
def test_retries_are_a_count(retries):
    with pytest.raises(UsageError, match=r"retries cannot be .*; give a number from 0 on"):
        Guardrails(TOOLS, retries=retries)
