"""Every callback that a program can pass: its return values, whether it may be async, and its exceptions.

The table has each public parameter whose type is callable or a protocol; a test fails if one is missing.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import gc
import inspect
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import adapter
from adapter import Agent, ApprovalDecision, AsyncAgent, Guardrails, Host, Tool, UsageError, Workspace, tool
from adapter.agent.subagents import SubagentRunner
from adapter.backends.chat_client import Chunk
from adapter.conversation.session_steps import Finished
from adapter.core.errors import ToolError
from adapter.core.events import ToolResult
from adapter.evaluation.scenario import Scenario, find_next_step
from adapter.evaluation.scenario_runner import EvalRun, score_run
from adapter.protocols.chat_request_translation import translate_chat_request
from adapter.protocols.grounding_constraint import ground_conversation
from adapter.protocols.request_errors import RequestError
from adapter.protocols.translation_options import ConstraintSettings, PromptSettings, TranslationOptions
from adapter.protocols.translation_options import validate_options as checked_options
from adapter.recording.replay_workspace import CommandReplayPolicy
from adapter.tools.operations import AgentReport, EditorState, RunProgram, SetTodos
from adapter.tools.operations import Library as LibraryFound
from adapter.tools.operations.permissions import ApprovalRequest, ask_approver
from adapter.tools.tool_set import ToolSet
from tests.model_text import Script, call
from tests.test_layers import tree_at

ROOT = Path(adapter.__file__).parent


@dataclass(frozen=True)
class Use:
    """A callback, and how it is passed and called."""

    names: tuple[str, ...]
    """The parameters that take it."""

    use: Callable[[Any, Path], object]
    """Passes it and has it called."""

    decides: bool = True
    """True if None and "no" are refused as its result, unless ``accepts`` has them."""

    accepts: tuple[object, ...] = ()
    raises: type[Exception] = UsageError
    """The exception that the caller gets for its RuntimeError."""

    may_be_async: bool = False

    def __repr__(self) -> str:
        return self.names[0]


def write(workspace: Workspace) -> ToolResult:
    return workspace.run("write_file", {"path": "a.txt", "content": "changed\n"})


def in_workspace(folder: Path, name: str, arguments: dict[str, Any], **settings: Any) -> ToolResult:
    with Workspace(folder, settings.pop("dialect", "blade"), settings.pop("approve", "yolo"), **settings) as workspace:
        return workspace.run(name, arguments)


def with_host(name: str, arguments: dict[str, Any], dialect: str = "blade") -> Callable[[str, str], Any]:
    """Return a use of one method of one capability; all others work."""

    def of(capability: str, method: str) -> Callable[[Any, Path], object]:
        def use(callback: Any, folder: Path) -> object:
            given = type("Given", (CAPABILITIES[capability],), {method: staticmethod(callback)})()
            host = Host(**{capability: given})
            return in_workspace(folder, name, arguments, dialect=dialect, host=host)

        return use

    return of


class Person:
    def ask(self, questions: Any) -> Any:
        return [["yes"] for _ in questions]


class Cursor:
    def state(self) -> Any:
        return EditorState("a.txt", ("a.txt",), 0, 1, 1)

    def open(self, path: str, line: int | None = None) -> None: ...
    def goto(self, line: int, column: int = 1) -> None: ...
    def selection(self) -> Any:
        return None

    def changed(self, path: str, line: int, column: int) -> None: ...


class Runner:
    kinds = {"research": "looks"}  # noqa: RUF012

    def run(self, task: Any, workspace: Any) -> Any:
        return AgentReport("research", "", "", "found", 1.0)


class Web:
    def search(self, wanted: Any) -> Any:
        return []


class Library:
    def find(self, name: str) -> Any:
        return [LibraryFound("/org/x", "x")]

    def read(self, library_id: str, mode: Any, topic: Any, page: int) -> Any:
        return "docs"


CAPABILITIES = {"questions": Person, "editor": Cursor, "agents": Runner, "search": Web, "docs": Library}


class AsyncScript(Script):
    async def stream(self, messages: Any, *, stop: Any = ()) -> Any:
        await asyncio.sleep(0)
        yield Chunk(self.answers.pop(0), finish_reason="stop")


WRITE = call("write_file", path="a.txt", content="changed\n")


def with_agent(folder: Path, *answers: str, **settings: Any) -> Finished:
    with Agent(folder, Script(*answers), **settings) as agent:
        return agent.run("Work")


def with_chat(callback: Any, folder: Path) -> object:
    class Model:
        stream = staticmethod(callback)

    with Agent(folder, Model()) as agent:
        return agent.run("Work")


def with_async_chat(callback: Any, folder: Path) -> object:
    class Model:
        stream = staticmethod(callback)

    return asyncio.run(AsyncAgent(folder, Model()).run("Work"))


async def with_async_agent(folder: Path, *answers: str, **settings: Any) -> Finished:
    async with AsyncAgent(folder, AsyncScript(*answers), **settings) as agent:
        return await agent.run("Work")


def watched(watch: Any, folder: Path) -> object:
    with Workspace(folder, approve=lambda _approval: True) as workspace:
        workspace.wrap_approver(watch)
        return write(workspace)


def observed_later(callback: Any, folder: Path) -> object:
    with Agent(folder, Script("Hello.")) as agent:
        agent.set_observer(callback)
        return agent.run("Work")


def as_tool(callback: Any, folder: Path) -> object:
    made = tool({"name": "mine", "parameters": {"type": "object", "properties": {}}}, callback)
    result = in_workspace(folder, "mine", {}, tools=[made])
    if not result.ok:
        raise ToolError(result.content)
    return result


def validating(callback: Any, folder: Path) -> object:
    return in_workspace(folder, "mine", {}, tools=[Tool("mine", validate=callback, effect="read")])


def failing(callback: Any, folder: Path) -> object:
    def fail() -> None:
        raise ValueError("no")

    made = replace_tool(tool({"name": "mine", "parameters": {"type": "object", "properties": {}}}, fail), callback)
    return in_workspace(folder, "mine", {}, tools=[made])


def replace_tool(made: Tool, failure: Any) -> Tool:
    import dataclasses

    return dataclasses.replace(made, failure=failure)


def grounding(callback: Any, _folder: Path) -> object:
    checked_options(TranslationOptions(constraints=ConstraintSettings(ground=callback)))
    tools = ToolSet([Tool("find", parameters={"type": "object", "properties": {"city": {"type": "string"}}})])
    return ground_conversation(tools, [{"role": "user", "content": "Bern"}], callback)


def encoding(callback: Any, _folder: Path) -> object:
    rails = Guardrails([Tool("find")], encode=callback)
    return rails.check([{"role": "user", "content": "Hi"}], adapter.parse(call("fidn"), [Tool("fidn")], "hermes"))


def echoed(callback: Any, folder: Path) -> object:
    with Workspace(folder, approve="yolo", echo=callback) as workspace:
        return workspace.perform(RunProgram("sh", (("-c",), ("echo hi",)), echo=True))


APPROVAL = ApprovalRequest("run_command", SetTodos(()), "execute", "ls")
WRITING: tuple[str, dict[str, Any]] = ("write_file", {"path": "a.txt", "content": "changed\n"})
QUESTION = {"questions": [{"question": "Go?", "options": ["yes", "no"]}]}
TASK = {"prompt": "Look", "description": "look", "subagent_type": "research"}

USES = [
    Use(("Workspace.approve",), lambda f, folder: in_workspace(folder, *WRITING, approve=f)),
    Use(("Workspace.ask",), lambda f, folder: in_workspace(folder, *WRITING, approve="ask", ask=f)),
    Use(("Workspace.wrap_approver.wrap",), watched, raises=RuntimeError),
    Use(("Workspace.wrap_approver.wrap",), lambda f, folder: watched(lambda _ask: f, folder)),
    Use(("Agent.approve",), lambda f, folder: with_agent(folder, WRITE, "Done.", approve=f)),
    Use(
        ("AsyncAgent.approve",),
        lambda f, folder: asyncio.run(with_async_agent(folder, WRITE, "Done.", approve=f)),
        may_be_async=True,
    ),
    Use(("replay.commands",), lambda f, _folder: ask_approver(CommandReplayPolicy(ask=f).ask or f, APPROVAL)),
    Use(("Workspace.echo",), echoed, decides=False),
    Use(
        ("Agent.observe", "Agent.set_observer.observer"),
        lambda f, folder: with_agent(folder, "Hello.", observe=f),
        decides=False,
        raises=RuntimeError,
    ),
    Use(("Agent.set_observer.observer",), observed_later, decides=False, raises=RuntimeError),
    Use(
        ("AsyncAgent.observe", "AsyncAgent.set_observer.observer"),
        lambda f, folder: asyncio.run(with_async_agent(folder, "Hello.", observe=f)),
        decides=False,
        raises=RuntimeError,
        may_be_async=True,
    ),
    Use(("Agent.chat",), with_chat, raises=RuntimeError),
    Use(("AsyncAgent.chat",), with_async_chat, raises=RuntimeError),
    Use(("Agent.tools", "AsyncAgent.tools", "Workspace.tools", "tool.function", "tool.description", "Tool.function"),
        as_tool, decides=False, raises=ToolError, may_be_async=True),
    Use(("Tool.validate",), validating, raises=RuntimeError),
    Use(("Tool.failure",), failing, accepts=(None, "no"), raises=RuntimeError),
    Use(("Host.questions",), with_host("question", QUESTION, "maki")("questions", "ask"), raises=RuntimeError),
    Use(("Host.editor",), with_host("get_editor_state", {})("editor", "state"), raises=RuntimeError),
    Use(("Host.editor",), with_host("get_selection", {})("editor", "selection"), accepts=(None,), raises=RuntimeError),
    Use(
        ("Host.editor",), with_host("open_file", {"path": "a.txt"})("editor", "open"), decides=False,
        raises=RuntimeError,
    ),
    Use(("Host.editor",), with_host("goto_line", {"line": 1})("editor", "goto"), decides=False, raises=RuntimeError),
    Use(
        ("Host.editor",),
        with_host("insert_at_cursor", {"content": "x"})("editor", "changed"),
        decides=False,
        raises=RuntimeError,
    ),
    Use(("Host.agents", "Agent.host", "AsyncAgent.host", "Workspace.host", "Workspace.open_subsession.host"),
        with_host("task", TASK, "maki")("agents", "run"), raises=RuntimeError),
    Use(("Host.search",), with_host("websearch", {"query": "x"}, "maki")("search", "search"), raises=RuntimeError),
    Use(
        ("Host.docs",),
        with_host("ResolveLibraryId", {"library_name": "x"}, "proxyai")("docs", "find"),
        raises=RuntimeError,
    ),
    Use(("Host.docs",), with_host("GetLibraryDocs", {"library_id": "/org/x"}, "proxyai")("docs", "read"),
        accepts=("no",), raises=RuntimeError),
    Use(
        ("Host.events",),
        lambda f, folder: in_workspace(
            folder, "todowrite", {"todos": [{"content": "x", "status": "pending"}]}, dialect="maki", host=Host(events=f)
        ),
        decides=False,
    ),
    Use(("wrap.ground",), grounding, accepts=(None,)),
    Use(("Guardrails.encode",), encoding, accepts=("no",), raises=RuntimeError),
]  # fmt: skip
"""The reaction of each to None, "no", a coroutine and an exception."""

NOT_CALLBACKS = {
    "ChatClient.endpoint": "a place, whose name a module's callable type shares",
    "Workspace.run_calls.turn": "any object with calls",
}


def same(path: Path) -> bool:
    return path.read_text(encoding="utf-8") == "one\n"


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "ws"
    root.mkdir()
    (root / "a.txt").write_text("one\n", encoding="utf-8")
    return root


@pytest.fixture(autouse=True)
def no_warnings():
    """Fail if a coroutine was never awaited."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
        gc.collect(1)  # what this test has made
    assert [str(each.message) for each in seen if "never awaited" in str(each.message)] == []


def each_use() -> list[Any]:
    return [pytest.param(use, id=f"{number}-{use.names[0]}") for number, use in enumerate(USES)]


@pytest.mark.parametrize("use", each_use())
@pytest.mark.parametrize("answer", [None, "no", 1], ids=["none", "text", "number"])
def test_an_answer_of_another_type_is_refused(use, answer, folder):
    """The error names the function and its answer, and nothing has happened. An observer may return anything."""

    def callback(*_args: object, **_kwargs: object) -> object:
        return answer

    if not use.decides or answer in use.accepts or (answer == 1 and use.names[0] == "Tool.failure"):
        use.use(callback, folder)
        return
    with pytest.raises(UsageError) as raised:
        use.use(callback, folder)
    assert "test_an_answer_of_another_type_is_refused.<locals>.callback" in str(raised.value) or use.names[0] in str(
        raised.value
    )
    assert repr(answer) in str(raised.value)
    assert same(folder / "a.txt")


def asynchronous(kind: str) -> Any:
    async def callback(*_args: object, **_kwargs: object) -> bool:
        return True

    class Awaited:
        async def __call__(self, *_args: object, **_kwargs: object) -> bool:
            return True

        async def method(self, *_args: object, **_kwargs: object) -> bool:
            return True

    kinds = {
        "function": callback,
        "partial": functools.partial(callback),
        "object": Awaited(),
        "method": Awaited().method,
    }
    return {**kinds, "partial of an object": functools.partial(Awaited())}[kind]


ASYNC = r"tests\.test_callbacks\.asynchronous.*(is async.*AsyncAgent|is not awaited)"
NOT_AWAITED = [each for each in each_use() if not each.values[0].may_be_async]


@pytest.mark.parametrize("use", NOT_AWAITED)
def test_an_async_function_is_refused_where_nothing_awaits_it(use, folder):
    """Immediately when it is passed; the error names it and the solution."""
    for kind in ("function", "object"):
        with pytest.raises(UsageError, match=ASYNC):
            use.use(asynchronous(kind), folder)
    assert same(folder / "a.txt")


@pytest.mark.parametrize("kind", ["partial", "method", "partial of an object"])
def test_async_functions_of_all_kinds_are_refused(kind, folder):
    with pytest.raises(UsageError, match=ASYNC):
        in_workspace(folder, *WRITING, approve=asynchronous(kind))


@pytest.mark.parametrize("use", NOT_AWAITED)
def test_a_plain_function_that_returns_a_coroutine_is_refused(use, folder):
    """It cannot be known in advance. The coroutine is closed: see the fixture."""
    with pytest.raises(UsageError, match="a coroutine, which is not awaited"):
        use.use(lambda *_args, **_kwargs: asynchronous("function")(), folder)
    assert same(folder / "a.txt") or use.names == ("Host.editor",)  # told of an insertion that was made


@pytest.mark.parametrize("use", each_use())
def test_an_exception_reaches_the_caller(use, folder):
    """Nothing has happened. A different exception names the function and its cause."""

    def callback(*_args: object, **_kwargs: object) -> object:
        raise RuntimeError("the callback is broken")

    with pytest.raises(use.raises, match="the callback is broken") as raised:
        use.use(callback, folder)
    if use.raises is UsageError:
        assert "test_an_exception_reaches_the_caller.<locals>.callback raised RuntimeError" in str(raised.value)
        assert isinstance(raised.value.__cause__, RuntimeError)
    assert same(folder / "a.txt") or use.names == ("Host.editor",)  # told of an insertion that was made


# ------------------------------------------------------------------------ approvers


class Truthy:
    """True but not a bool, like numpy's bool."""

    def __bool__(self) -> bool:
        return True


@pytest.mark.parametrize(
    "answer",
    [
        Truthy(),
        "yes",
        1,
        [True],
        ApprovalDecision("no"),  # type: ignore[arg-type]
        ApprovalDecision(1),  # type: ignore[arg-type]
        ApprovalDecision(None),  # type: ignore[arg-type]
        ApprovalDecision(True, remember="no"),  # type: ignore[arg-type]
        ApprovalDecision(True, reason=None),  # type: ignore[arg-type]
        ApprovalDecision(True, content=b"x"),  # type: ignore[arg-type]
    ],
)
def test_only_true_and_a_decision_of_true_allow(answer, folder):
    """For a write and for a command."""
    with Workspace(folder, approve=lambda _approval: answer) as workspace:
        for name, arguments in (WRITING, ("run_command", {"command": "echo changed > a.txt"})):
            with pytest.raises(
                UsageError, match=r"the approver .*<lambda> returned .*; expected True, False, or an ApprovalDecision"
            ):
                workspace.run(name, arguments)
    assert same(folder / "a.txt")


@pytest.mark.parametrize(("answer", "is_allowed"), [(True, True), (ApprovalDecision(True), True), (False, False)])
def test_the_documented_answers_count(answer, is_allowed, folder):
    assert in_workspace(folder, *WRITING, approve=lambda _approval: answer).ok == is_allowed
    assert same(folder / "a.txt") != is_allowed


@pytest.mark.parametrize("error", [ToolError("no"), OSError("no terminal"), MemoryError(), KeyError("x")], ids=repr)
@pytest.mark.parametrize("inside", ["alone", "batch", "code"])
def test_an_approver_that_raises_is_not_taken_for_a_failed_tool(error, inside, folder):
    """Also inside a batch, and in code, which may catch the exceptions of its calls."""

    def approve(approval: ApprovalRequest) -> bool:
        if approval.tool != "write":
            return True
        raise error

    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "alone": ("write", {"filePath": "a.txt", "content": "changed\n"}),
        "batch": ("batch", {"tool_calls": [{"tool": "write", "parameters": {"filePath": "a.txt", "content": "x"}}]}),
        "code": ("code_execution", {"code": CATCHING}),
    }
    with pytest.raises(UsageError, match=f"approve raised {type(error).__name__}"):
        in_workspace(folder, *calls[inside], dialect="maki", approve=approve)
    assert same(folder / "a.txt")


CATCHING = """
try:
    await write(filePath="a.txt", content="changed")
except Exception:
    pass
print("went on")
"""


def test_all_calls_of_one_answer_are_taken_back(folder):
    """If the approver of the second raises."""

    def approve(approval: ApprovalRequest) -> bool:
        if "b.txt" in approval.paths:
            raise RuntimeError("broken")
        return True

    turn = adapter.parse(WRITE + call("write_file", path="b.txt", content="x"), format="hermes")
    with Workspace(folder, approve=approve) as workspace, pytest.raises(UsageError, match="broken"):
        workspace.run_calls(turn, atomic=True)
    assert same(folder / "a.txt")
    assert not (folder / "b.txt").exists()


def test_the_conversation_goes_on_after_an_approver_raised(folder):
    """The model is informed that the rest of the calls was not run."""

    def approve(approval: ApprovalRequest) -> bool:
        if approval.paths == ("b.txt",):
            raise RuntimeError("broken")
        return True

    model = Script(WRITE + "\n" + call("write_file", path="b.txt", content="x"), "Hello.")
    with Agent(folder, model, approve=approve) as agent:
        with pytest.raises(UsageError, match="broken"):
            agent.send("Work")
        assert agent.send("Go on").content == "Hello."
        told = str(agent.messages)
    assert told.count("the user stopped the run") == 1
    assert not same(folder / "a.txt")
    assert not (folder / "b.txt").exists()


# ------------------------------------------------------------------------ callbacks that are not public


def scenario(**changes: Any) -> Scenario:
    def oracle() -> Any:
        yield []
        return "done"

    given: dict[str, Any] = {"world": object, "oracle": oracle, "check": lambda *_: "", **changes}
    return Scenario("mine", "kind", "Work", [], **given)


@pytest.mark.parametrize("answer", [None, True, 0])
def test_a_check_of_a_scenario_returns_a_text(answer):
    """None would count as passed."""
    with pytest.raises(UsageError, match=f"the check of 'mine' .* returned {answer}.*; expected a string"):
        score_run(EvalRun("mine", "kind", "way", 1), scenario(check=lambda *_: answer), object(), [], time.monotonic())


def test_an_oracle_is_a_generator_that_returns_a_text():
    with pytest.raises(UsageError, match=r"the oracle of 'mine' .* returned None; expected a generator"):
        find_next_step(scenario(oracle=lambda: None), [])
    with pytest.raises(UsageError, match=r"the oracle of 'mine' .* returned None; expected a string"):
        find_next_step(scenario(oracle=lambda: (each for each in "")), [])


def test_a_ground_that_answers_wrongly_refuses_the_request():
    """As for any invalid request: the client gets the reason and does not retry."""
    definition = {"name": "find", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    body = {
        "messages": [{"role": "user", "content": "Bern"}],
        "tools": [{"type": "function", "function": definition}],
        "tool_choice": "required",
    }
    ground: Any = lambda *_args: "no"  # noqa: E731
    with pytest.raises(RequestError, match=r"ground .*<lambda> returned 'no'; expected a list of strings, or None"):
        translate_chat_request(
            body, TranslationOptions(PromptSettings(format="hermes"), ConstraintSettings(ground=ground))
        )


def test_the_observer_of_sub_agents_may_not_be_async():
    with pytest.raises(UsageError, match=r"the observer .* is async"):
        SubagentRunner(Script(), observe=asynchronous("function"))
    with pytest.raises(UsageError, match=r"record .* is async"):
        SubagentRunner(Script(), record=asynchronous("function"))


# ------------------------------------------------------------------------ the table is whole


def definitions() -> Iterator[tuple[str, str]]:
    """Return the classes and aliases of all modules, with their bases or values."""
    for path in ROOT.rglob("*.py"):
        for node in tree_at(path).body:
            match node:
                case ast.ClassDef(name=name, bases=bases):
                    yield name, " ".join(map(ast.unparse, bases))
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    yield name, ast.unparse(value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if not name.isupper():
                    yield name, ast.unparse(value)


def words(text: object) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", str(text)))


def callable_names() -> set[str]:
    """Return the names of types that are callable or a protocol, directly or not, and of types that contain such
    functions.
    """
    known, found = list(definitions()), {"Callable", "Protocol", "ChatT", "Host", "CommandReplayPolicy"}
    while more := {name for name, meaning in known if name not in {*found, "PathLike"} and found & words(meaning)}:
        found |= more
    return found


def parameters() -> Iterator[tuple[str, object]]:
    """Return ``Owner.parameter`` and its annotation, for each public function, class and method, without old names."""
    for name in adapter.__all__:
        public = getattr(adapter, name)
        functions = [(name, public)]
        if isinstance(public, type):
            methods = ((key, getattr(public, key)) for key in dir(public) if not key.startswith("_"))
            functions += [(f"{name}.{key}", each) for key, each in methods if callable(each) and each.__name__ == key]
        for label, function in functions:
            with suppress(ValueError):  # an exception has no signature
                for parameter in inspect.signature(function).parameters.values():
                    yield f"{label}.{parameter.name}", parameter.annotation


def test_each_callback_of_the_public_names_is_in_the_table():
    """A new one needs a row."""
    callables = callable_names()
    public = {name for name, annotation in parameters() if callables & words(annotation)}
    table = {name for use in USES for name in use.names}
    assert public - table - NOT_CALLBACKS.keys() == set()
    assert (table | NOT_CALLBACKS.keys()) - public == set()
