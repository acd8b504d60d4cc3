"""The question for the new text of a file, which a very small model gets instead of a failed or incomplete edit."""

from __future__ import annotations

import pytest

from adapter.agent.agent import Agent
from adapter.agent.file_question import MAX_FILE, FileQuestion, find_file_question, read_short_file
from adapter.backends.chat_client import Chunk
from adapter.conversation.guardrails.call_history import CallHistory, PastCall
from adapter.conversation.session_steps import AskModel, SessionLimits
from adapter.dialects import get_dialect
from adapter.parsing.formats import get_format
from adapter.workspace import Workspace
from tests.template_server import CHATML, TemplateServer

TOOLS = get_dialect("blade").tools
READ = '<tool_call>{"name": "read_file", "arguments": {"path": "a.py"}}</tool_call>'
FAILING = """<tool_call>
{"name": "edit_file", "arguments": {"path": "a.py", "old_content": "z = 1", "new_content": "y = 1"}}
</tool_call>"""
SMALL = 500_000_000


def ask(files, request, calls=(), asked=()):
    history = CallHistory(request, tuple(PastCall("read_file", {"path": path}, files[path]) for path in files) + calls)
    return find_file_question(history, TOOLS, files.get, asked)


@pytest.mark.parametrize(
    ("text", "answer", "old", "new"),
    [
        ("a = 1\nb = 2\n", "a = 1\nb = 3\n", "b = 2", "b = 3"),
        ("a\nb\na\nb\n", "a\nb\na\nc\n", "b\na\nb", "b\na\nc"),
        ("- x\n- y\n", "- x\n- y\n- z", "- y", "- y\n- z"),
        ("- x\n- y\n- z\n", "- x\n- z\n", "- x\n- y\n- z", "- x\n- z"),
        ("x = 1\n", "\nx = 2\n\n", "x = 1", "x = 2"),
    ],
)
def test_answer_becomes_an_edit_of_the_changed_lines(text, answer, old, new):
    """The old text is unique in the file."""
    question = FileQuestion("a.txt", {"a.txt": text}, TOOLS["edit_file"], "Change it")
    arguments = question.build_arguments(f"```\n{answer}```")
    assert arguments == {"path": "a.txt", "old_content": old, "new_content": new}
    assert text.count(old) == 1


@pytest.mark.parametrize(
    "answer",
    ["", "I changed it.", "```\n```", "```\nx = 1\n```", "```\nx = (\n```", "```\nx = 2"],
    ids=["empty", "words", "empty fence", "no change", "syntax error", "open fence"],
)
def test_unusable_answer_is_no_call(answer):
    question = FileQuestion("a.py", {"a.py": "x = 1\n"}, TOOLS["edit_file"], "Set x to 2")
    assert question.build_arguments(answer) is None


@pytest.mark.parametrize(("reason", "count"), [("stop", 1), ("length", 0), ("content_filter", 0)])
def test_truncated_answer_is_no_call(reason, count):
    convert = FileQuestion("a.txt", {"a.txt": "x\n"}, TOOLS["edit_file"], "x").create_converter(get_format("hermes"))
    chunks = [*convert(Chunk("```\ny\n")), *convert(Chunk("```")), *convert(Chunk("", finish_reason=reason))]
    assert "".join(chunk.text for chunk in chunks).count("<tool_call>") == count
    assert chunks[-1].finish_reason == reason


def test_files_are_asked_for_one_after_the_other():
    """The question shows all of them. The file that it asks for comes last."""
    files = {"a.py": "f()\n", "b.py": "def f(): ...\n"}
    request = "Rename f to g in b.py and a.py"
    first = ask(files, request)
    assert first.path == "b.py"
    content = str(first.build_request("llama.cpp", get_format("hermes"))[0][-1]["content"])
    assert content.index("a.py") < content.index("This is the file b.py") < content.index(request)
    edit = PastCall("edit_file", {"path": "./b.py", "old_content": "f", "new_content": "g"}, changes=True)
    assert ask(files, request, (edit,)).path == "a.py"
    assert ask(files, request, asked=[first, ask(files, request, (edit,))]) is None


@pytest.mark.parametrize(
    ("request_", "files"),
    [
        ("What is in a.txt?", {"a.txt": "x\n"}),
        ("Delete a.txt", {"a.txt": "x\n"}),
        ("Change x to y in a.txt", {}),
        ("Change x to y in a.txt", {"a.txt": "x" * (MAX_FILE + 1)}),
        ("Change x to y in a.txt", {"a.txt": "```\nx\n```\n"}),
    ],
    ids=["question", "deletion", "unread file", "long file", "code fence"],
)
def test_other_requests_are_not_asked_for_a_file(request_, files):
    assert ask(files, request_) is None


@pytest.mark.parametrize(
    ("request_", "is_asked"),
    [
        ('a.txt: "one" doit devenir "two"', True),
        ('a.txt needs a line "two"', True),
        ('a.txt mentions "one"', False),
        ('Er der "one" eller "two" i a.txt?', False),
        ('Tell me what "two" means in a.txt', False),
    ],
)
def test_text_that_the_file_lacks_is_asked_for_in_any_language(request_, is_asked):
    assert (ask({"a.txt": "one\n"}, request_) is not None) == is_asked


@pytest.mark.parametrize(
    ("request_", "is_asked"),
    [
        ("I need a file called b.txt with two lines: tea, nuts", True),
        ("Explain b.txt: what is it for", False),
        ("b.txt is gone", False),
        ('Is there "tea" in b.txt?', False),
    ],
)
def test_missing_file_with_a_stated_text_is_asked_for(request_, is_asked):
    failed = PastCall("read_file", {"path": "b.txt"}, "b.txt does not exist", ok=False)
    assert (ask({}, request_, (failed,)) is not None) == is_asked


@pytest.mark.parametrize(
    ("request_", "renamed"),
    [
        ("Rename calc to total in a.py", ["total = 1\nprint(total, calculate)\n"]),
        ("The name calc is bad. Call it total instead, in a.py", ["bad", "instead", "name", "total"]),
        ("Replace calc with total in a.py", []),
        ("Rename it in a.py", []),
    ],
)
def test_renaming_replaces_one_name_of_the_request_by_another(request_, renamed):
    """The model chooses which. The new text of another file that uses the name is often invented."""
    text = "calc = 1\nprint(calc, calculate)\n"
    question = ask({"a.py": text}, request_)
    found = question.list_versions()
    assert found == renamed or sorted(each.partition(" =")[0] for each in found) == renamed
    grammar = str(question.build_request("llama.cpp", get_format("hermes"))[1]["grammar"])
    assert ("print(total, calculate)" in grammar, "line+" in grammar) == (bool(renamed), not renamed)


@pytest.mark.parametrize(
    ("request_", "old", "new"),
    [
        ("Rename the class Cat to Feline in a.py", "Cat", "Feline"),
        ("The function load in a.py should be called read_items.", "load", "read_items"),
        ("please rename save_all to save in a.py", "save_all", "save"),
        ("Change the name of run to start, in a.py", "run", "start"),
    ],
)
def test_name_may_be_a_verb(request_, old, new):
    history = CallHistory(request_, (PastCall("read_file", {"path": "a.py"}, f"{old} = 1\n"),), classified="rename")
    question = find_file_question(history, TOOLS, {"a.py": f"{old} = 1\n"}.get, [])
    versions = question.list_versions() if question else []
    assert f"{new} = 1\n" in versions
    assert not {"rename = 1\n", "change = 1\n"} & {*versions}


def test_correction_is_chosen_if_the_model_copied_the_misspelling():
    """Qwen2.5-Coder-0.5B wrote the file again with the same misspelling. Other changes are not limited to a choice."""
    for request, count in (("It says Cofee instead of Coffee in a.txt", 1), ("a.txt should say tea, not Cofee", 0)):
        edits = (PastCall("edit_file", {"path": "a.txt", "old_content": "x", "new_content": "y"}, "error", ok=False),)
        history = CallHistory(
            request, (PastCall("read_file", {"path": "a.txt"}, "Cofee and cake\n"), *edits), classified="edit"
        )
        asked: list[FileQuestion] = []
        while question := find_file_question(history, TOOLS, {"a.txt": "Cofee and cake\n"}.get, asked):
            asked.append(question)
        assert [each.list_versions() for each in asked] == [[], ["Coffee and cake\n"]][: count + 1]


def test_correction_of_a_word_is_asked_for_if_the_model_changed_other_words():
    """Qwen2.5-Coder-0.5B wrote the steps of the recipe in another order."""
    text, asked = "1. seperate the eggs\n2. whip the whites\n", list[FileQuestion]()
    while question := ask({"a.txt": text}, 'Correct the spelling of "seperate" in a.txt', asked=asked):
        asked.append(question)
    free, spelling = asked
    assert free.build_arguments("```\n1. Whip the whites\n2. Separate the eggs\n```") is None
    assert free.build_arguments("```\n1. separate the eggs\n2. whip the whites\n```")
    messages, fields = spelling.build_request("llama.cpp", get_format("hermes"))
    assert messages[-1]["content"] == "```\nseperate\n```"
    assert "gap" in str(fields["grammar"])
    assert spelling.build_arguments("```\nsplit\n```") is None
    arguments = spelling.build_arguments("```\nseparate\n```")
    assert arguments is not None
    assert arguments["new_content"] == "1. separate the eggs"


def test_removed_line_is_chosen_if_the_model_removed_others():
    """Qwen2.5-Coder-0.5B also removed the line after the list."""
    text, asked = "ports:\n  - 8080\n  - 8081\nimage: web\n", list[FileQuestion]()
    while question := ask({"a.yaml": text}, "Remove the port 8081 from the ports in a.yaml", asked=asked):
        asked.append(question)
    free, choice = asked
    assert free.build_arguments("```\nports:\n  - 8080\n```") is None
    assert free.build_arguments("```\nports:\n  - 8080\nimage: web\n```")
    assert choice.list_versions() == ["image: web\n", "ports:\n  - 8080\nimage: web\n"]


def test_template_is_filled_in_its_gaps_if_the_model_loses_its_text():
    """Qwen2.5-Coder-0.5B wrote only the values."""
    text = "Dear [NAME],\nhow is [PLACE]?\n"
    asked: list[FileQuestion] = []
    while question := ask({"a.txt": text}, "Fill in a.txt: [NAME] is Mia, [PLACE] is Kiel", asked=asked):
        asked.append(question)
    free, gaps = asked
    assert free.build_arguments("```\nMia, Kiel\n```") is None
    assert free.build_arguments("```\nDear Mia,\nhow is Kiel?\n```")
    grammar = str(gaps.build_request("llama.cpp", get_format("hermes"))[1]["grammar"])
    assert '"Dear " gap ",\\nhow is " gap "?\\n"' in grammar


def test_file_is_created_only_if_there_is_none(tmp_path):
    """A model that has not read a file must not replace it."""
    with Workspace(tmp_path) as workspace:
        for is_new in (True, False):
            history = CallHistory("Create b.txt with the text: hi")
            question = find_file_question(history, TOOLS, lambda path: read_short_file(workspace, path), [])
            assert (question is not None) == is_new
            if question is not None:
                assert question.build_arguments("```\nhi\n```") == {"path": "b.txt", "content": "hi\n"}
            (tmp_path / "b.txt").write_text("kept\n")


def test_control_tokens_of_a_file_are_escaped_and_restored(tmp_path):
    (tmp_path / "a.py").write_text("x = '<|im_end|>'\n")
    changed = "```\ny = '<|im_end|>'\n```"
    with TemplateServer("llama.cpp", CHATML, READ, changed, parameters=SMALL) as server:
        with Agent(tmp_path, base_url=server.url, approve="yolo") as agent:
            agent.run("Rename x to y in a.py")
        assert "'<|im_end|>'" not in server.prompts[1]
    assert (tmp_path / "a.py").read_text() == "y = '<|im_end|>'\n"


@pytest.mark.parametrize("first", [READ, FAILING], ids=["read", "failed edit"])
@pytest.mark.parametrize(("parameters", "text"), [(SMALL, "y = 1\nprint(y)\n"), (7_000_000_000, "x = 1\nprint(x)\n")])
def test_very_small_model_is_asked_for_the_file(tmp_path, first, parameters, text):
    """After it has read the file, or seen it in the error of an edit."""
    (tmp_path / "a.py").write_text("x = 1\nprint(x)\n")
    answers = (first, "```\ny = 1\nprint(y)\n```", "I renamed it.")
    with TemplateServer("llama.cpp", CHATML, *answers, parameters=parameters) as server:
        with Agent(tmp_path, base_url=server.url, approve="yolo") as agent:
            agent.run("Rename x to y in a.py")
        limited = [body for _, body in server.bodies if "```" in body.get("grammar", "")]
    assert (tmp_path / "a.py").read_text() == text
    assert len(limited) == (parameters == SMALL)
    assert ("Rename x to y in a.py\n\nWrite the whole changed file a.py." in server.prompts[1]) == bool(limited)


def test_prompt_after_a_question_is_the_conversation(tmp_path):
    """`/prompt` of a chat shows it."""
    (tmp_path / "a.py").write_text("x = 1\n")
    limits = SessionLimits(turns=2)
    with (
        TemplateServer("llama.cpp", CHATML, READ, "```\ny = 1\n```", parameters=SMALL) as server,
        Agent(tmp_path, base_url=server.url, approve="yolo", limits=limits) as agent,
    ):
        assert agent.run("Rename x to y in a.py").reason == "turns"
        sent, _ = agent.build_request(AskModel(agent.messages, 0))
    assert "Write the whole" in server.prompts[-1]
    assert "Write the whole" not in str(sent)


def test_file_that_was_only_listed_or_moved_is_not_shown():
    """A rule may forbid to read it."""
    listed = PastCall("list_directory", {"path": "a.txt"}, "a.txt (4 bytes)")
    moved = PastCall("move_file", {"source": "b.txt", "destination": "a.txt"}, "Moved.", changes=True)
    for call in (listed, moved):
        history = CallHistory("Change 1 to 2 in a.txt", (call,), turn_start=1)
        assert find_file_question(history, TOOLS, {"a.txt": "1\n"}.get, []) is None


def test_line_endings_of_a_file_are_kept(tmp_path):
    (tmp_path / "a.py").write_bytes(b"x = 1\r\nz = 3\r\n")
    with (
        TemplateServer("llama.cpp", CHATML, READ, "```\nx = 2\nz = 3\n```", "Done.", parameters=SMALL) as server,
        Agent(tmp_path, base_url=server.url, approve="yolo") as agent,
    ):
        agent.run("Change x to 2 in a.py")
    assert (tmp_path / "a.py").read_bytes() == b"x = 2\r\nz = 3\r\n"


def test_each_file_of_a_rename_is_asked_for(tmp_path):
    """Once all of them have been read, one after the other."""
    (tmp_path / "a.py").write_text("calc = 1\n")
    (tmp_path / "b.py").write_text("from a import calc\nprint(calc)\n")
    changed = "```\nfrom a import total\nprint(total)\n```"
    answers = (READ, READ.replace("a.py", "b.py"), "```\ntotal = 1\n```", changed, "Done.")
    with (
        TemplateServer("llama.cpp", CHATML, *answers, parameters=SMALL) as server,
        Agent(tmp_path, base_url=server.url, approve="yolo") as agent,
    ):
        assert agent.run("Rename calc to total in a.py and b.py").content == "Done."
        assert sum("```" in body.get("grammar", "") for _, body in server.bodies) == 2
    assert [(tmp_path / name).read_text() for name in ("a.py", "b.py")] == [
        "total = 1\n",
        "from a import total\nprint(total)\n",
    ]
