"""The command line: ``adapter parse | prompt | edit | undo | run | mcp | serve | probe | replay | demo | setup ...``.

Data goes to stdout, everything for people to stderr. Exit codes: 0 done, 1 not
done (nothing found, a difference, a model that gave up), 2 wrong use, 3 no
model server, 130 stopped with Ctrl-C. Each command imports what it needs when
it runs, so that ``--help`` and ``parse`` start quickly. What models and files say is printed
with its control characters spelled out; ``--json`` has every character, escaped.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from adapter import __version__, tool_commands
from adapter.allocator import share_one_arena
from adapter.errors import AdapterError, TransportError, UsageError
from adapter.visible import visible, visible_json

if TYPE_CHECKING:
    from adapter.approval import Rule
    from adapter.config import Config
    from adapter.dialects import Dialect
    from adapter.events import Turn
    from adapter.operations import PatchBasis
    from adapter.tools import ToolDefinitions
    from adapter.wire.recorded import Exchange

app = typer.Typer(
    name="adapter",
    help="Turn a language model that speaks plain text into a tool-calling agent.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
app.add_typer(tool_commands.app)

IncludeTools = Annotated[
    list[str] | None, typer.Option(help="With promptly: only tools whose names contain this; also opt-in ones.")
]
ExcludeTools = Annotated[list[str] | None, typer.Option(help="With promptly: no tools whose names contain this.")]

ConstraintOption = Annotated[
    str, typer.Option(help="Hold the model to valid calls: off, arguments, prefer or required; auto decides.")
]

ProfileOption = Annotated[
    str,
    typer.Option(help="What `adapter probe` found: auto (the model's own profile), a profile's name or file, or none."),
]


def main() -> None:
    """Run the command line; errors of ours become one message and an exit code."""
    try:
        app()
    except TransportError as error:
        _fail(error, 3)
    except UsageError as error:
        _fail(error, 2)
    except AdapterError as error:
        _fail(error, 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; that is no error of ours
        raise SystemExit(0) from None


def _fail(error: AdapterError, code: int) -> NoReturn:
    from adapter.secrets import Secrets

    _print(f"adapter: {Secrets(os.environ).redact(str(error))}", to_stderr=True)
    raise SystemExit(code)


def _print(text: str, *, end: str = "\n", to_stderr: bool = False) -> None:
    """Text of models and files may hold what moves a terminal's cursor or hides other text."""
    print(visible(text, keep="\n\t"), end=end, file=sys.stderr if to_stderr else sys.stdout)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"toolcall-adapter {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def parse(
    file: Annotated[str, typer.Argument(help="A file with the model's text, or - for standard input.")] = "-",
    format: Annotated[str, typer.Option(help="The format to read; auto recognises any.")] = "auto",
    dialect: Annotated[str, typer.Option(help="The tools that may be called; none for no matching.")] = "blade",
    tools: Annotated[
        str | None,
        typer.Option(help="JSON file with tool definitions, instead of a dialect; with promptly, its base name."),
    ] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    finish_reason: Annotated[str | None, typer.Option(help="What the server said: stop, length, ...")] = None,
    policy: Annotated[str, typer.Option(help="Which text may become a call: strict, safe or lenient.")] = "safe",
    exchange: Annotated[
        int | None,
        typer.Option(
            help="The file is one of `adapter serve --record`: read the answer of this exchange, from 1.", min=1
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each piece of the text was taken for, and why.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Read tool calls out of a model's raw text."""
    from adapter.parser import parse as read

    if exchange is not None:
        turn = _exchange(file, exchange).turn()
    else:
        known = _tools(dialect, tools, include_tools, exclude_tools)
        turn = read(_text(file), known, None if format == "auto" else format, finish_reason, policy=policy)
    if as_json:
        print(visible_json(_turn_as_json(turn) | (_spans_as_json(turn) if explain else {}), indent=2))
    elif explain:
        _print_spans(turn)
    else:
        _print(_turn_as_text(turn))


def _text(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file!r}: {error.strerror}. Give a file, or - for standard input.") from error
    return raw.decode("utf-8", "replace")


def _exchange(file: str, number: int) -> Exchange:
    from adapter.wire.recorded import read_exchanges

    exchanges = read_exchanges(_text(file), file)
    if number > len(exchanges):
        raise UsageError(f"{file!r} has {len(exchanges)} exchanges; --exchange is {number}")
    return exchanges[number - 1]


def _tools(dialect: str, file: str | None, include: list[str] | None, exclude: list[str] | None) -> ToolDefinitions:
    if file is not None and dialect != "promptly":
        try:
            definitions = json.loads(Path(file).read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot read tool definitions from {file!r}: {error}") from error
        if not isinstance(definitions, list):
            raise UsageError(f"{file!r} must hold a JSON list of tool definitions")
        return definitions
    if dialect == "none":
        return ()
    return _dialect(dialect, file, include, exclude).tools


def _dialect(name: str, tools: str | None, include: list[str] | None, exclude: list[str] | None) -> Dialect:
    """The dialect called ``name``; of `promptly`, the tools that the command line asks for."""
    if name == "promptly":
        from adapter.toolfiles import DEFAULT_BASENAME, Choice, load_dialect

        return load_dialect(Choice(tools or DEFAULT_BASENAME, include or (), exclude or ()))
    if tools or include or exclude:
        raise UsageError(
            f"--tools, --include-tools and --exclude-tools choose the tools of --dialect promptly, not of {name!r}"
        )
    from adapter.dialects import get_dialect

    return get_dialect(name)


def _turn_as_json(turn: Turn) -> dict[str, object]:
    return {
        "content": turn.content,
        "reasoning": turn.reasoning,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments, "fixes": list(call.fixes)}
            for call in turn.calls
        ],
        "invalid": [{"raw": wrong.raw, "error": wrong.error} for wrong in turn.invalid],
    }


def _spans_as_json(turn: Turn) -> dict[str, object]:
    from adapter.span_listing import span_rows

    return {"spans": span_rows(turn.explain())}


def _print_spans(turn: Turn) -> None:
    from rich.console import Console

    from adapter.span_listing import span_listing

    listing = span_listing(turn.explain())
    listing.rstrip()
    Console(highlight=False, soft_wrap=True).print(listing)


def _turn_as_text(turn: Turn) -> str:
    lines: list[str] = []
    for title, text in (("reasoning", turn.reasoning), ("content", turn.content)):
        if text.strip():
            lines += [f"{title}:", *(f"  {line}" for line in text.strip().split("\n"))]
    for call in turn.calls:
        lines += [f"call: {call.name}", f"  arguments: {json.dumps(call.arguments, ensure_ascii=False)}"]
        lines += [f"  fixes: {', '.join(call.fixes)}"] if call.fixes else []
    for wrong in turn.invalid:
        lines += ["not a call:", f"  text: {json.dumps(wrong.raw[:200], ensure_ascii=False)}", f"  why: {wrong.error}"]
    if not turn.calls and not turn.invalid:
        lines.append("no call")
    return "\n".join(lines)


@app.command()
def prompt(
    dialect: Annotated[str, typer.Option(help="The tool set to describe.")] = "blade",
    format: Annotated[str, typer.Option(help="How the model is to write calls.")] = "hermes",
    style: Annotated[str, typer.Option(help="compact, full or trained.")] = "compact",
    prompts: Annotated[Path | None, typer.Option(help="A folder with templates of your own.")] = None,
    tools: Annotated[str | None, typer.Option(help="With promptly: the base name of the tools files.")] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Say how many tokens it takes, on standard error.")] = False,
    model: Annotated[Path | None, typer.Option(help="With --tokens: a GGUF file whose tokenizer counts.")] = None,
) -> None:
    """Print a system prompt that teaches a model to call tools."""
    from adapter.prompt import system_prompt

    described = _dialect(dialect, tools, include_tools, exclude_tools)
    text = system_prompt(described, format, style, prompts=str(prompts) if prompts else None)
    _print(text, end="")
    if tokens:
        print(_token_count(text, model), file=sys.stderr)


def _token_count(text: str, model: Path | None) -> str:
    from adapter.tokens import approximate_tokens

    if model is None:
        return f"about {approximate_tokens(text)} tokens, estimated; --model FILE.gguf counts with its tokenizer"
    from adapter.embedded import EmbeddedServer
    from adapter.endpoints import count_tokens

    with EmbeddedServer(model) as server:
        return f"{count_tokens(text, server.endpoint)} tokens, by the tokenizer of {model.name}"


@app.command()
def edit(
    file: Annotated[Path, typer.Argument(help="The file to edit, or the directory of the files that PATCHES names.")],
    patches: Annotated[
        str,
        typer.Option(
            help="JSON patches, a diff, a Begin Patch envelope or SEARCH/REPLACE blocks; - for standard input."
        ),
    ],
    sequence: Annotated[
        bool, typer.Option("--sequence", help="Seek each patch in what the ones before it left.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the diff and write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Apply patches to a file, or to several: all of them, each where it was meant, or none."""
    from adapter.edits.given import file_edits_in, patches_in
    from adapter.errors import FormatError
    from adapter.operations import PatchFiles, PatchText
    from adapter.workspace.desk import open_desk
    from adapter.workspace.files import plan_files, plan_patch

    basis: PatchBasis = "sequence" if sequence else "original"
    is_directory = file.is_dir()
    try:
        text = _text(patches)
        operation = (
            PatchFiles(file_edits_in(text), basis, "insert")
            if is_directory
            else PatchText(file.name, patches_in(text), basis, "insert")
        )
    except FormatError as error:
        raise UsageError(f"cannot read patches from {patches!r}: {error}") from error
    with open_desk(file if is_directory else file.absolute().parent) as desk:
        change = plan_patch(desk, operation) if isinstance(operation, PatchText) else plan_files(desk, operation)
        outcome = change.outcome if dry_run else change.commit(desk)
    if as_json:
        row = {"path": str(file), "written": not dry_run, "notes": list(outcome.notes), "diff": change.diff}
        print(visible_json(row, indent=2))
        return
    _print(change.diff, end="")
    for note in outcome.notes:
        _print(f"note: {note}", to_stderr=True)


@app.command()
def undo(
    workspace: Annotated[Path, typer.Argument(help="The folder in which something was changed.")] = Path(),
    every: Annotated[bool, typer.Option("--all", help="Undo every change of the last run, newest first.")] = False,
    show: Annotated[
        bool, typer.Option("--list", help="List what can be undone, newest first, and undo nothing.")
    ] = False,
) -> None:
    """Take back the last change that a tool made in a folder, and only that."""
    import time

    from adapter.workspace.desk import open_desk
    from adapter.workspace.faults import explained

    with open_desk(workspace) as desk:
        changes = desk.history.changes()
        if show:
            for change in changes:
                _print(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(change.time))}  {change.summary}")
            return
        session = changes[0].session if every and changes else None
        count = sum(change.session == session for change in changes) if every else 1
        for _ in range(max(count, 1)):
            with explained("nothing was undone"):
                undone = desk.history.undo(session)
            _print(f"undone: {undone.change.summary}", to_stderr=True)
            _print(undone.diff, end="")
            for note in undone.notes:
                _print(f"note: {note}", to_stderr=True)


@app.command()
def run(
    task: Annotated[str, typer.Argument(help="What to do, in plain words.")],
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="The folder to work in.")] = Path(),
    base_url: Annotated[str | None, typer.Option(help="The model server; found by itself when left out.")] = None,
    model: Annotated[str | None, typer.Option(help="A name on the server, or a GGUF file to load here.")] = None,
    approve: Annotated[str, typer.Option(help="What may happen unasked: ask, auto-edit or yolo.")] = "ask",
    dialect: Annotated[str, typer.Option(help="The tool set.")] = "blade",
    tools: Annotated[str | None, typer.Option(help="With promptly: the base name of the tools files.")] = None,
    include_tools: IncludeTools = None,
    exclude_tools: ExcludeTools = None,
    format: Annotated[str, typer.Option(help="How calls are written; auto goes by the model's name.")] = "auto",
    images: Annotated[
        bool | None, typer.Option("--images/--no-images", help="The model sees images; by itself as the server says.")
    ] = None,
    style: Annotated[
        str, typer.Option(help="The system prompt: compact, full or trained; auto: the profile's, or compact.")
    ] = "auto",
    prompts: Annotated[Path | None, typer.Option(help="A folder with prompt templates of your own.")] = None,
    constraint: ConstraintOption = "auto",
    profile: ProfileOption = "auto",
    max_turns: Annotated[int, typer.Option(min=1, help="Answers asked of the model.")] = 25,
    record: Annotated[Path | None, typer.Option(help="Write a transcript to this .jsonl file.")] = None,
    config: Annotated[Path | None, typer.Option(help="A configuration instead of the user's config.toml.")] = None,
    skills: Annotated[list[Path] | None, typer.Option(help="A folder with skills of yours; may be repeated.")] = None,
    search_url: Annotated[str | None, typer.Option(help="A web search service, with {query} in its address.")] = None,
    agent_model: Annotated[
        list[str] | None, typer.Option(help="The model of a tier of sub-agents: strong=qwen3:32b; may be repeated.")
    ] = None,
    allow: Annotated[list[str] | None, typer.Option(help="Never ask for this: 'run_command(git status)'.")] = None,
    ask: Annotated[list[str] | None, typer.Option(help="Always ask for this: 'write_file(docs/**)'.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never do this, whatever else is allowed.")] = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option(help="An MCP server whose tools join: a command, a URL, or a .json file with mcpServers."),
    ] = None,
    sandbox: Annotated[
        str, typer.Option(help="What confines commands: auto, bwrap, landlock, none, or require one of them.")
    ] = "auto",
    sandbox_network: Annotated[bool, typer.Option("--sandbox-network", help="Let commands use the network.")] = False,
    sandbox_read: Annotated[list[Path] | None, typer.Option(help="Let commands read this, too.")] = None,
    sandbox_write: Annotated[
        list[Path] | None, typer.Option(help="Let commands change this, too; WORKSPACE/.git to let them commit.")
    ] = None,
) -> None:
    """Let a model work on a task in a folder."""
    from adapter.runner import Settings, run_task
    from adapter.workspace.sandbox import Sandbox

    settings = Settings(
        workspace=workspace,
        base_url=base_url,
        model=model,
        approve=approve,
        dialect=_dialect(dialect, tools, include_tools, exclude_tools),
        format=None if format == "auto" else format,
        images=images,
        style=None if style == "auto" else style,
        prompts=str(prompts) if prompts else None,
        constraint=None if constraint == "auto" else constraint,
        profile=profile,
        max_turns=max_turns,
        config=_config(workspace, config, skills, search_url, agent_model),
        record=record,
        rules=_rules(allow, ask, deny),
        mcp=tuple(mcp or ()),
        sandbox=Sandbox(
            sandbox,  # type: ignore[arg-type]  # checked by itself
            sandbox_network,
            tuple(map(str, sandbox_read or ())),
            tuple(map(str, sandbox_write or ())),
        ),
    )
    raise typer.Exit(run_task(task, settings))


def _rules(allow: list[str] | None, ask: list[str] | None, deny: list[str] | None) -> tuple[Rule, ...]:
    from adapter.approval import Rule

    return (
        *(Rule.parse("deny", text) for text in deny or ()),
        *(Rule.parse("ask", text) for text in ask or ()),
        *(Rule.parse("allow", text) for text in allow or ()),
    )


@app.command()
def mcp(
    root: Annotated[Path, typer.Option(help="The folder that the tools work in.")] = Path(),
    dialect: Annotated[str, typer.Option(help="The tool set.")] = "blade",
    approve: Annotated[
        str, typer.Option(help="What may happen, as nobody can be asked: ask (nothing but reading), auto-edit or yolo.")
    ] = "ask",
    allow: Annotated[list[str] | None, typer.Option(help="Allow this all the same: 'run_command(git status)'.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Never do this, whatever else is allowed.")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve over HTTP on this port of 127.0.0.1; 0 takes a free one."),
    ] = None,
) -> None:
    """Serve the tools of a dialect to an MCP client, over standard input and output."""
    from importlib.util import find_spec

    from adapter.host import Host
    from adapter.mcp_tools import INSTALL
    from adapter.workspace import Workspace

    if find_spec("mcp") is None:
        raise UsageError(f"this needs the MCP SDK: {INSTALL}")
    from adapter.mcp_server import serve_mcp

    share_one_arena()
    with Workspace(root, dialect, approve, rules=_rules(allow, None, deny), host=Host(editor=None)) as workspace:
        serve_mcp(workspace, port)


def _config(
    workspace: Path,
    file: Path | None,
    skills: list[Path] | None,
    search_url: str | None,
    agent_models: list[str] | None,
) -> Config:
    """The user's configuration, with what the command line says in its place or besides."""
    from adapter.config import ModelTable, SearchTable, SkillsTable, read_config

    config = read_config(workspace, file)
    models = dict(config.models)
    for given in agent_models or ():
        name, separator, model = given.partition("=")
        if not (name and separator and model):
            raise UsageError(f"--agent-model is {given!r}; expected a tier and a model: strong=qwen3:32b")
        models[name] = ModelTable(model=model)
    folders = [*config.skills.folders, *(str(folder.absolute()) for folder in skills or ())]
    changed = {"models": models, "skills": SkillsTable(folders=folders)}
    return config.model_copy(update=changed | ({"search": SearchTable(url=search_url)} if search_url else {}))


@app.command()
def serve(
    upstream: Annotated[str | None, typer.Option(help="The model server; found by itself when left out.")] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; with another than this machine's, clients need a key.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8090,
    format: Annotated[
        str, typer.Option(help="How the model writes calls; auto goes by its template and name.")
    ] = "auto",
    style: Annotated[
        str, typer.Option(help="How the prompt describes tools: trained, full, compact, small or bare; auto decides.")
    ] = "auto",
    prompts: Annotated[Path | None, typer.Option(help="A folder with prompt templates of your own.")] = None,
    policy: Annotated[str, typer.Option(help="Which text may become a call: strict, safe or lenient.")] = "safe",
    stream_arguments: Annotated[
        bool, typer.Option("--stream-arguments", help="Send a call's arguments while they are written.")
    ] = False,
    constraint: ConstraintOption = "auto",
    grounded: Annotated[
        bool, typer.Option("--grounded", help="Enforced calls take paths, patterns and commands from the conversation.")
    ] = False,
    profile: ProfileOption = "auto",
    keep_alive: Annotated[float, typer.Option(min=0.05, help="Seconds of silence before a sign of life.")] = 5.0,
    patience: Annotated[float, typer.Option(min=0.05, help="Seconds that the model server may stay silent.")] = 600.0,
    record: Annotated[
        Path | None,
        typer.Option(help="Add what the model is sent and writes to this .jsonl file, without credentials."),
    ] = None,
    max_streams: Annotated[
        int, typer.Option(min=1, help="Requests that the model server answers at a time; more wait for their turn.")
    ] = 256,
    max_waiting: Annotated[int, typer.Option(min=0, help="Requests that may wait; one more is refused (503).")] = 1024,
    stall: Annotated[float, typer.Option(min=0.05, help="Seconds in which a client may take nothing.")] = 60.0,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="ADAPTER_API_KEY",
            help="What clients must send; made up when left out and --host is not this machine.",
        ),
    ] = None,
) -> None:
    """Serve the OpenAI interface with tool calls, in front of a model server that only knows text."""
    from adapter.constraint import get_constraint
    from adapter.endpoints import api_url, find_endpoint
    from adapter.exchanges import ExchangeLog
    from adapter.profiles import check as check_profile
    from adapter.secrets import Secrets
    from adapter.wire.request import Options, checked

    try:
        from adapter.server.app import Settings
        from adapter.server.app import serve as run_server
    except ImportError as error:
        raise UsageError(f"{error.name} is not installed: pip install 'toolcall-adapter[server]'") from error

    options = Options(
        format=None if format == "auto" else format,
        style=None if style == "auto" else style,
        prompts=str(prompts) if prompts else None,
        policy=policy,
        stream_arguments=stream_arguments,
        constraint=get_constraint(None if constraint == "auto" else constraint),
        grounded=grounded,
        observe=ExchangeLog(record, Secrets(os.environ, [api_key])) if record else None,
    )
    check_profile(profile)
    share_one_arena()
    base_url = api_url(upstream) if upstream else find_endpoint().base_url
    limits = (max_streams, max_waiting, stall)
    run_server(Settings(base_url, host, port, keep_alive, patience, api_key, checked(options), profile, *limits))


@app.command()
def probe(
    base_url: Annotated[str | None, typer.Option(help="The model server; found by itself when left out.")] = None,
    model: Annotated[str | None, typer.Option(help="A name on the server, or a GGUF file to load here.")] = None,
    format: Annotated[
        str, typer.Option(help="How the model writes calls; auto goes by its template and name.")
    ] = "auto",
    output: Annotated[Path | None, typer.Option(help="Write the profile here; else where the others find it.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the HTML page here; else beside the profile.")] = None,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds after which what is known counts.")] = 600.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as a JSON object.")] = False,
) -> None:
    """Find out how a model calls tools best, and keep it as a profile for run, serve and wrap."""
    from adapter.probe_command import Settings, run_probe

    chosen = None if format == "auto" else format
    raise typer.Exit(run_probe(Settings(base_url, model, chosen, output, page, time_limit, as_json)))


@app.command()
def demo(
    keep: Annotated[Path | None, typer.Option(help="Make the sample workspace here and leave it.")] = None,
) -> None:
    """Watch the built-in model edit a file of a sample workspace."""
    from adapter.runner import run_demo

    raise typer.Exit(run_demo(keep))


@app.command()
def setup() -> None:
    """Fetch the built-in model, so that later runs need no network."""
    from adapter.console import Console
    from adapter.runner import weights

    print(weights(Console()))


@app.command()
def doctor(
    workspace: Annotated[Path, typer.Option("--workspace", "-w", help="The folder to work in.")] = Path(),
    sandbox: Annotated[
        str, typer.Option(help="As for run; with require the exit code says whether there is one.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what is there on this machine, what confines commands, what is missing, and what to do about it."""
    from adapter.doctor import examine
    from adapter.workspace.sandbox import Sandbox

    findings = examine(str(workspace), Sandbox(sandbox))  # type: ignore[arg-type]  # checked by itself
    if as_json:
        rows = {finding.name: {"ok": finding.ok, "text": finding.text, **finding.data} for finding in findings}
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print(f"{'+' if finding.ok else '-'} {finding.name:<{width}}  {finding.text}")
        if not finding.ok and finding.advice:
            print(f"  {'':<{width}}  > {finding.advice}")


@app.command()
def replay(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Transcripts or folders; the shipped ones when left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Write what comes out today into the transcripts.")] = False,
) -> None:
    """Run recorded conversations again, offline, and compare."""
    from adapter import resources
    from adapter.replay import replay_file, transcripts_in, update_file

    files = transcripts_in(paths or [resources.folder("fixtures") / "transcripts"])
    if update:
        for file in files:
            update_file(file)
    replays = [replay_file(file) for file in files]
    if as_json:
        rows = [
            {"name": row.name, "turns": row.turns, "calls": row.calls, "difference": row.difference} for row in replays
        ]
        print(visible_json(rows, indent=2))
    else:
        width = max(len(row.name) for row in replays)
        for row in replays:
            outcome = "equal" if row.is_equal else "DIFFERENT"
            _print(f"{row.name:<{width}}  turns {row.turns:>2}  calls {row.calls:>2}  {outcome}")
        different = [row for row in replays if not row.is_equal]
        print(f"{len(replays) - len(different)} of {len(replays)} equal")
        for row in different:
            _print(f"\n{row.name}: {row.difference}")
    if not all(row.is_equal for row in replays):
        raise typer.Exit(1)
