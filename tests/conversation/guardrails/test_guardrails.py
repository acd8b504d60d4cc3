"""Each guardrail detects its fault, with a useful message, and accepts good answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapter.conversation.guardrails.call_history import CallHistory, PastCall, looks_like_error, read_call_history
from adapter.conversation.guardrails.candidate_answer import CandidateAnswer
from adapter.conversation.guardrails.guardrails import NO_STEPS, Guardrails
from adapter.conversation.guardrails.loop_detection import asks_for_repetition
from adapter.conversation.guardrails.registry import BY_STEPS, DEFAULT, GUARDRAILS, WITHIN_ANSWER, parse_guardrails
from adapter.conversation.guardrails.required_steps import parse_steps
from adapter.conversation.guardrails.verdicts import Accept, Retry, Stop
from adapter.core.errors import UsageError
from adapter.core.turn import Turn
from adapter.dialects import get_dialect
from adapter.parsing.parser import parse
from adapter.tools.tool_set import ToolSet
from tests.model_text import call

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


def turn(text: str) -> Turn:
    return parse(text, TOOLS, finish_reason="stop")


def judged(text: str, *made: PastCall, on: str = "on", steps: Any = NO_STEPS, request: str = "") -> Any:
    guardrails = Guardrails(TOOLS, on=parse_guardrails(on), steps=steps)
    return guardrails.check_response(CallHistory(request, made), CandidateAnswer.from_turn(turn(text)))


def lines(name: str) -> list[tuple[str, str]]:
    """Return (request, answer) for each line of a file: ``request => answer``, or only an answer."""
    found = (line.rpartition(" => ") for line in (ANSWERS / name).read_text(encoding="utf-8").splitlines())
    return [(request, answer.replace("\\n", "\n")) for request, _, answer in found]


@pytest.mark.parametrize("name", ["clean.txt", "held_out_clean.txt", "held_out_clean_2.txt", "held_out_clean_3.txt"])
@pytest.mark.parametrize("made", [(), (READ,)], ids=["at once", "after a result"])
def test_good_answer_is_accepted(name, made):
    """Answers, offers, questions, conditions, justified refusals, code and requested texts, in several languages. A
    result has a word of the answer."""
    answers = lines(name)
    assert len(answers) > 20
    on = "on" if made else "on,-unfounded_success"  # some of them say that something was done
    on += ",-unmade_change"  # likewise of a change
    alarms = []
    for request, answer in answers:
        results = [replace(call, result=f"{call.result} {max(answer.split(), key=len)}") for call in made]
        if judged(answer, *results, on=on, request=request) != Accept():
            alarms.append(answer)
    assert alarms == []


@pytest.mark.parametrize(("name", "least"), [("announced.txt", 1.0), ("held_out_announced.txt", 0.95)])
def test_announcement_without_call_is_retried(name, least):
    """In several languages."""
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
def test_empty_claim_is_retried_after_results(answer):
    """Refusals without a reason, success without a result, and requests to wait."""
    assert isinstance(judged(answer, READ, request="Which parcel is it?"), Retry)


def test_truncated_call_message_shows_the_parameters_of_its_tool():
    """Not of the first tool."""
    again = judged('<tool_call>\n{"name": "run_command", "arguments": {"command": "ls -la read_file')
    assert isinstance(again, Retry)
    assert again.message.endswith("Parameters of run_command: command.")
    assert again.held_to == ("run_command",)


@pytest.mark.parametrize(
    ("request_", "held_to"),
    [("Run the test in t.py and explain why it fails.", ("run_command",)), ("List the directory", ())],
)
def test_answer_after_instructions_to_run_a_file_is_the_command(request_, held_to):
    """After other requests, the model may explain first why it needs no tool."""
    guardrails = Guardrails(get_dialect("blade").tools)
    answer = CandidateAnswer.from_turn(turn("You can do it like this."))
    verdict = guardrails.check_response(CallHistory(request_, ()), answer)
    assert isinstance(verdict, Retry)
    assert (verdict.guardrail, verdict.held_to) == ("unused_tool", held_to)


def test_message_about_a_kept_file_names_the_other_one():
    verdict = judged(call("delete_file", path="b.log"), request="Delete a.log but keep b.log", on="on")
    assert verdict.message == "The user wants to keep b.log. Call delete_file for a.log instead."


NO_FILE = PastCall("read_file", {"path": "a"}, "error: no such file", ok=False)
FAULTS: list[tuple[str, str, tuple[PastCall, ...], str]] = [
    (
        "unreadable_call",
        '<tool_call>\n{"name": "read_file", "arguments": {"path": \n</tool_call>',
        (),
        "could not be read",
    ),
    ("unknown_tool", call("reed_file", path="a"), (), "'read_file'"),
    ("wrong_arguments", call("read_file", line="soon"), (), "'path' is missing (string)"),
    (
        "placeholder",
        call("read_file", path="/path/to/file.txt"),
        (READ,),
        "read_file needs a real path. If",
    ),
    ("call_as_answer", '{"name": "Read The File", "arguments": {"file": "a"}}', (), "call of an unknown tool"),
    (
        "made_already",
        call("read_file", path="a"),
        (READ,),
        "already made this call of read_file. Answer from its result",
    ),
    ("repeated_call", call("read_file", path="a"), (READ, READ, READ, OTHER), "3 times"),
    ("failed_already", call("read_file", path="a"), (NO_FILE,), "This call of read_file has failed"),
    ("empty_answer", "", (), "Your answer is empty"),
    ("empty_answer", "```json\nnull\n```", (), "Your answer is empty"),
    ("empty_answer", "<think>Hm.</think>", (), "only reasoning"),
    ("invented_result", "<tool_response>\nsunny\n</tool_response>\nIt is sunny.", (), "Only the tool returns results"),
    ("wrong_markup", '```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```\nI wait.', (), "read_file"),
    ("announced_call", "Let me read the file:", (), "without doing it"),
    ("refusal", "I'm sorry, but I don't have access to your files.", (), "with the tool read_file"),
    ("refusal", "I cannot browse the internet.", (), "web_search"),
    ("refusal", "I'm sorry, but as a language model I have no access to this, so I can't help with it.", (), "do more"),
    (
        "refusal",
        "I'm sorry, but as a language model I have no access to this.",
        (READ,),
        "use the results you have",
    ),
    ("refusal", "Unfortunately, I'm unable to look this up. Please check it yourself.", (), "You can do more"),
    ("refusal", "I'm sorry, I can't assist with that request.", (READ,), "or the reason"),
    (
        "invented_turn",
        "It is done.\n\nUser: Thanks. And b?\nAssistant: Of course.\n" + call("delete_file", path="b"),
        (READ,),
        "You wrote the user's part",
    ),
    ("unfounded_success", "I've taken care of it.", (), "Nothing is done yet"),
    ("unfounded_success", "Everything is done as you asked.", (), "Nothing is done yet"),
]


@pytest.mark.parametrize(("name", "text", "made", "told"), FAULTS, ids=[each[0] for each in FAULTS])
def test_each_fault_has_a_guardrail_and_message(name, text, made, told):
    """It is found with all guardrails, but not with this one disabled."""
    verdict = judged(text, *made, on="on")
    assert isinstance(verdict, Retry)
    assert verdict.guardrail == name
    assert told in verdict.message
    assert len(verdict.message) < 400
    assert getattr(judged(text, *made, on=f"on,-{name}"), "guardrail", "") != name


@pytest.mark.parametrize("text", ["\n***" * 50_000, "\n" * 200_000, "\nUser: x" * 50_000, " \t" * 100_000 + "next "])
def test_hostile_answers_are_checked_in_linear_time(text):
    """Quadratic time would take minutes."""
    guardrails = Guardrails(TOOLS, on=parse_guardrails("on"))
    for said in (CandidateAnswer(text), CandidateAnswer(text, turn(call("read_file", path="a")).calls)):
        guardrails.check_response(CallHistory("What is it?"), said)


def test_every_guardrail_has_a_case():
    """Here, in the cases of steps, in `test_dropped_calls` or in `tests.server.test_tool_choice`."""
    elsewhere = {"unused_tool", "missing_call", "own_words", "unmade_change", "unread_file", "invented_text"}
    assert {each[0] for each in FAULTS} | BY_STEPS | WITHIN_ANSWER | elsewhere == set(GUARDRAILS)


def test_message_example_reuses_valid_arguments():
    """It is the nearest valid call."""
    verdict = judged(call("read_file", path="a.py", line="soon"))
    assert '{"name": "read_file", "arguments": {"path": "a.py"}}' in verdict.message
    assert "'line' is \"soon\": expected integer" in verdict.message or "line is" in verdict.message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("update_file", "The nearest is 'edit_file'."),
        ("store_file", "The nearest is 'write_file'."),
        ("delete_files", "The nearest is 'delete_file'."),
        ("delete_line", "Call read_file."),
        ("remove_files", "Call read_file."),
        ("run_report", "Call run_command."),
    ],
)
def test_proposed_tool_means_the_same_action(name, message):
    """`delete_file` is spelled like `update_file`, and `move_file` like `remove_files`. The file was not read yet."""
    guardrails = Guardrails(get_dialect("blade").tools)
    answer = CandidateAnswer.from_turn(turn(call(name, pattern="x")))
    verdict = guardrails.check_response(CallHistory("take requests out of a.txt"), answer)
    assert isinstance(verdict, Retry)
    assert message in verdict.message


def test_example_runs_a_command_in_the_current_folder():
    """Not in a file of the request."""
    answer = CandidateAnswer.from_turn(turn(call("run_command", command="python a.py")))
    verdict = Guardrails(get_dialect("blade").tools).check_response(CallHistory("Run a.py"), answer)
    assert isinstance(verdict, Retry)
    assert '{"command": "python a.py", "cwd": "."}' in verdict.message


def test_proposal_of_an_error_is_the_example_for_a_repeated_call():
    """Without arguments that the tool does not have."""
    error = "tool_error: env does not exist (did you mean '.env'?)"
    arguments = {"path": "env", "required": ["path"]}
    history = CallHistory(".env: PORT should be 5050", (PastCall("read_file", arguments, error, ok=False),))
    answer = CandidateAnswer.from_turn(turn(call("read_file", **arguments)))
    verdict = Guardrails(get_dialect("blade").tools).check_response(history, answer)
    assert isinstance(verdict, Retry)
    assert '{"name": "read_file", "arguments": {"path": ".env"}}' in verdict.message
    assert verdict.held_to == ("read_file",)


@pytest.mark.parametrize(
    ("read", "message"),
    [(("a.txt",), "Now call read_file for b.txt."), (("a.txt", "b.txt"), "Now call edit_file or apply_edit.")],
)
def test_message_about_a_repetition_does_not_ask_for_it(read, message):
    """It names the file that is left."""
    past = tuple(PastCall("read_file", {"path": path}, "one") for path in read)
    guardrails = Guardrails(get_dialect("blade").tools)
    answer = CandidateAnswer.from_turn(turn(call("read_file", path="a.txt")))
    verdict = guardrails.check_response(CallHistory("Fix the typo in a.txt and in b.txt", past), answer)
    assert isinstance(verdict, Retry)
    assert message in verdict.message


def test_unknown_tool_that_resembles_none_gets_a_list():
    """The request does not show which tool is meant."""
    assert "Available tools: read_file, " in judged(call("zzz", q="1")).message


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (call("read_file", path="b"), (READ,) * 3),
        (call("read_file", path="a"), (READ, READ, PastCall("read_file", {"path": "a"}, "changed"))),
        (
            call("read_file", path="a"),
            (READ, SEARCH, READ, PastCall("web_search", {"query": "x"}, "2 hits", changes=True)),
        ),
        (call("check_status", job="7"), (PastCall("check_status", {"job": "7"}, "pending"),) * 9),
        (call("read_file", path="a"), (OTHER, READ, SEARCH)),
        (call("read_file", path="a"), (PastCall("read_file", {"path": "a"}, "error: busy", ok=False),)),
        (call("run_command", command="make"), (PastCall("run_command", {"command": "make"}, "still running"),)),
        ("Sorry, I can't help with that.", ()),
        ("I'm unable to look this up.", (PastCall("web_search", {}, "error: offline", ok=False),)),
        ("I don't have access to your files.", (READ,)),
        ("I'm afraid I can't: the file is read-only.", ()),
        ("I don't have access to your mailbox.", ()),
        ("<tool_response>\ntext\n</tool_response>\nThat is the file.", (READ,)),
        ("To call it, write `<tool_call>` and `read_file`.", ()),
        ("It failed: denied.", (PastCall("delete_file", {}, "error: denied", ok=False),)),
    ],
)
def test_apparent_faults_are_accepted(text: str, made: tuple[PastCall, ...]) -> None:
    """Other arguments or results, polling, justified refusals, copied results."""

    assert judged(text, *made, on="on,-unfounded_success") == Accept()


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
def test_bare_success_is_retried_if_information_was_requested(request_, answer, is_asked):
    """Also after a call."""
    verdict = judged(answer, READ, request=request_)
    assert getattr(verdict, "guardrail", "") == ("unfounded_success" if is_asked else "")


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        ("Say done", "Done."),
        ("Antworte nur mit: fertig", "Fertig."),
        ("Say 'task completed successfully'", "Task completed successfully."),
        ("Translate 'done' to German", "Fertig."),
        ("Answer null if you understand.", "null"),
        ("Return nothing", "null"),
    ],
)
def test_answer_that_the_request_dictates_is_accepted(request_, answer):
    assert judged(answer, request=request_) == Accept()


def test_intended_repetition_is_accepted():
    """If the model repeats it after the message, or the request mentions repetition."""
    guardrails = Guardrails(TOOLS)
    past, again = CallHistory("Read it.", (READ,)), CandidateAnswer.from_turn(turn(call("read_file", path="a")))
    assert isinstance(guardrails.check_response(past, again), Retry)
    assert guardrails.check_response(past, again) == Accept()
    assert judged(call("read_file", path="a"), READ, request="Read it twice.") == Accept()


@pytest.mark.parametrize(
    ("answer", "tail"),
    [
        ("It is done.\n\nUser: And b?\nAssistant: Yes.\n", False),
        ("### Response\nIt is done.\n### User\nAnd b?\n### Assistant\n", False),
        ("The entry is\nUser: bob\nState: on\n", True),
        ("The new file:\n```yaml\ndb:\n  user: postgres\nbot:\n  image: x\n```\n", True),
    ],
)
def test_call_in_an_invented_turn_is_dropped(answer, tail):
    """The rest of the answer is dropped as well, unless the request is about dialogues."""
    read = turn(answer + call("delete_file", path="b") + "\nDeleted.")
    own = Guardrails(TOOLS).drop_calls_after_end(CallHistory("Do it."), read)
    assert bool(own.calls) is tail
    assert own.content.startswith(answer[:10])
    assert Guardrails(TOOLS).drop_calls_after_end(CallHistory("Write a dialogue into b."), read) == read
    assert (
        Guardrails(TOOLS, on=parse_guardrails("on,-invented_turn")).drop_calls_after_end(CallHistory("Do it."), read)
        == read
    )


def test_each_wording_is_used_once():
    """After the last wording the answer is accepted, or the loop stops."""
    guardrails = Guardrails(TOOLS, retries=9)
    *said, last = [guardrails.check([], turn("Let me read the file:")) for _ in range(4)]
    assert len({each.message for each in said if isinstance(each, Retry)}) == 3
    assert last == Accept()
    endings = [guardrails.check([], turn("")) for _ in range(4)]
    assert isinstance(endings[-1], Stop)
    assert "empty" in endings[-1].reason


def test_retries_have_a_common_limit_until_a_good_answer():
    """``retries`` applies to all faults together."""
    guardrails = Guardrails(TOOLS, retries=2)
    assert isinstance(guardrails.check([], turn("")), Retry)
    assert isinstance(guardrails.check([], turn("Let me check the file.")), Retry)
    assert guardrails.asked_again == ("empty_answer", "announced_call")
    assert guardrails.check([], turn(call("reed_file"))) == Accept()
    assert isinstance(guardrails.check([], turn("")), Retry)


def test_truncated_answer_is_not_retried():
    """A retry would be truncated again."""
    assert Guardrails(TOOLS).check([], turn("Let me read the file:"), "length") == Accept()


def test_retry_of_a_call_can_be_constrained_to_its_tool():
    """The server can then enforce a valid call; announcements are not constrained."""
    assert judged(call("read_file")).held_to == ("read_file",)
    assert judged("Let me read the file:").held_to == ()


def message_of(name: str) -> str:
    """Return the first message for the fault ``name``, on one line."""
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
        (call("submit", text="x"), (SEARCH, PastCall("submit", {"text": "x"}, "error: busy", ok=False)), ""),
    ],
)
def test_steps_are_enforced(text, made, guardrail):
    """Required tools, prerequisites, and no calls after the end."""
    assert getattr(judged(text, *made, steps=STEPS), "guardrail", "") == guardrail


def test_required_steps_restart_with_each_message():
    """``required`` applies to the task, ``before`` to the conversation."""
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
def test_invalid_steps_raise(given, told):
    with pytest.raises(UsageError, match=told):
        parse_steps(given)


def test_call_history_is_read_from_openai_messages():
    """Results are matched by id; invalid messages are skipped."""
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
    past = read_call_history(messages)
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
def test_looks_like_error_detects_failed_results(result, failed):
    assert looks_like_error(result) is failed


def test_guardrails_are_parsed_by_name():
    assert parse_guardrails("on") == DEFAULT
    assert parse_guardrails("off") == frozenset()
    assert parse_guardrails("on,-refusal") == DEFAULT - {"refusal"}
    assert parse_guardrails("off,refusal") == {"refusal"}
    assert parse_guardrails("all,-cycle") == parse_guardrails("on,other_speaker") == DEFAULT
    with pytest.raises(UsageError, match="unknown guardrail 'refusals'; expected on, off, or"):
        parse_guardrails("refusals")


@pytest.mark.parametrize("retries", [-1, 1.5, "2"])
def test_invalid_retries_raise(retries):
    with pytest.raises(UsageError, match=r"retries must be an integer of at least 0, got"):
        Guardrails(TOOLS, retries=retries)


REPETITIONS = """
again both each every keep per poll repeat repeatedly retry several thrice times twice until wait while two of three of
erneut mehrmals noch warte wieder wiederhole zweimal bis deux fois jusqu dos veces hasta volte vezes até fino another
раз пока снова дважды 两次 兩次 二次 三次 直到 再 回 まで 번 까지
"""
WORDS = REPETITIONS.replace(" of", "_of").split()


@pytest.mark.parametrize("word", [each.replace("_", "  ") for each in WORDS])
def test_every_word_for_a_repetition_is_found(word):
    assert asks_for_repetition(f"Look at it, {word}.")
    assert asks_for_repetition(word.upper())
    assert not word.isascii() or not asks_for_repetition(f"x{word}x")


def test_calls_are_equal_if_their_arguments_have_equal_json():
    assert PastCall("f", {"a": 1, "b": [2]}).equals(PastCall("f", {"b": [2], "a": 1}, "other result"))
    assert not PastCall("f", {"a": 1}).equals(PastCall("f", {"a": True}))
    assert not PastCall("f", {"a": 1}).equals(PastCall("g", {"a": 1}))


def test_marker_quoted_from_a_result_is_no_unparsed_call():
    answer = "The tag <invoke name='read_file'> calls read_file."
    found = PastCall("read_file", {"path": "a"}, "<p><invoke name='read_file'></p>")
    assert judged(answer, found, request="Which tag is in a?") == Accept()
    assert judged(answer, READ, request="Which tag is in a?").guardrail == "wrong_markup"


def test_failed_call_may_be_repeated_after_a_change():
    """The change may have removed the cause, such as a missing file."""
    made = PastCall("run_command", {"command": "touch a"}, "done", changes=True)
    again = call("read_file", path="a")
    assert judged(again, NO_FILE).guardrail == "failed_already"
    assert judged(again, NO_FILE, OTHER).guardrail == "failed_already"
    assert judged(again, NO_FILE, made) == Accept()
