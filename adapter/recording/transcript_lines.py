"""Define the lines of a transcript as they are stored: a header, and one line for each event."""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, TypeAdapter, model_serializer

from adapter.conversation.guardrails.guardrails import MAX_CALLS, RETRIES
from adapter.conversation.session_steps import SessionLimits
from adapter.core.events import JsonObject
from adapter.tools.operations import Edits, Effect, MediaKind
from adapter.tools.operations.permissions import ApprovalDecision

VERSION = 1


OPTIONAL = ("classified", "max_tools", "offered", "shows_calls")
"""Fields that a line omits if they have no value. Older transcripts lack them."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_serializer(mode="wrap")
    def _omit_empty_fields(self, dump: SerializerFunctionWrapHandler) -> JsonObject:
        return {name: value for name, value in dump(self).items() if value or name not in OPTIONAL}


class StoredFile(_Line):
    """A file of the workspace. Its content is text, or base64 if it is not valid UTF-8."""

    text: str | None = None
    base64: str | None = None
    mode: int = 0o644
    raw_name: str | None = None
    """The file's path in base64, if it is not valid UTF-8."""


class UserTool(_Line):
    """A custom function or program that the recorded session could use."""

    name: str
    description: str = ""
    parameters: JsonObject
    effect: Effect = "execute"
    aliases: tuple[str, ...] = ()
    argument_aliases: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Header(_Line):
    """The first line: the settings of the session, its tools and the initial files of the workspace."""

    kind: Literal["header"] = "header"
    version: int = VERSION
    time: str = ""
    """Start time in ISO 8601 format."""
    task: str
    system: str
    dialect: str
    format: str
    """Format in which earlier calls are shown to the model. The model's text may contain calls in any format."""
    tools: tuple[str, ...]
    offered: tuple[str, ...] = ()
    """Names of the tools that the model could call, if these were not all of ``tools``."""
    max_tools: int | None = None
    """Maximum number of tools in the prompt; None for no limit. The requests contain the prompt."""
    shows_calls: bool = False
    """True if the messages contain structured calls, for the model's chat template; see `Session`."""
    model: str = ""
    server: str = ""
    max_turns: int = SessionLimits().turns
    call_turns: int | None = None
    context_tokens: int | None = None
    guardrails: tuple[str, ...] = ("repeated_call",)
    """Active guardrails. Older transcripts do not list them; their only guardrail was ``repeated_call``."""
    retries: int = RETRIES
    max_calls: int = MAX_CALLS
    steps: JsonObject = Field(default_factory=dict)
    approve: str = "yolo"
    edits: Edits | None = None
    encoding: str | None = None
    rules: tuple[str, ...] = ()
    """Permission rules as text, for example ``allow run_command(git status)``."""
    known: tuple[str, ...] = ()
    """Names of all the session's tools, including tools that were not available."""
    own_tools: tuple[UserTool, ...] = ()
    """Tools that are not part of the dialect. A replay uses their recorded results."""
    read_only: bool = False
    above: tuple[str, ...] = ()
    """Parts of the path of a sub-agent's folder, relative to the session's workspace."""
    granted: tuple[tuple[str, ...], ...] = ()
    """Approvals for the whole session that were given before the recording began."""
    media: tuple[MediaKind, ...] = ()
    """Kinds of media that the model accepts in addition to text."""
    is_chat: bool = False
    """True for a chat with several user messages. The initial files of a chat are not recorded."""
    files: dict[str, StoredFile] = Field(default_factory=dict)
    workspace: str = ""
    """Hash of the workspace at the start; "" if the files are not recorded."""


class RequestLine(_Line):
    """A request to the model. The lines of its answer follow."""

    kind: Literal["request"] = "request"
    number: int
    messages: tuple[JsonObject, ...]
    kept: int = 0
    """Number of leading messages that are the same as in the previous request. This line omits them."""
    classified: str = ""
    """The kind of the task, as classified by the model; see `adapter.agent.request_classification`."""
    at_s: float | None = None
    """Seconds since the conversation began; None if there was no clock, as in a replay."""


class ChunkLine(_Line):
    """A chunk of the model's answer, as it was received."""

    kind: Literal["chunk"] = "chunk"
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    """Number of tokens in the prompt, as counted by the server."""
    written_tokens: int | None = None
    """Number of tokens in the answer, as counted by the server."""
    at_s: float | None = None
    """Seconds since the conversation began; see `RequestLine`."""


class CallLine(_Line):
    kind: Literal["call"] = "call"
    id: str
    name: str
    arguments: JsonObject
    fixes: tuple[str, ...] = ()


class InvalidLine(_Line):
    kind: Literal["invalid"] = "invalid"
    raw: str
    error: str


class _ResultFields(_Line):
    """Fields of lines that contain the result of a call."""

    name: str
    ok: bool
    content: str
    user_message: str = ""
    changed: dict[str, StoredFile | None] = Field(default_factory=dict)
    """Files that a sub-agent or a custom tool changed. None means that the file was deleted."""
    unrecorded: str = ""
    """Reason why ``changed`` is incomplete; "" if it is complete."""


class ResultLine(_ResultFields):
    kind: Literal["result"] = "result"
    call_id: str


class NestedCallLine(_ResultFields):
    """A call inside a batch or code that might have a different result in a replay."""

    kind: Literal["inner"] = "inner"
    arguments: JsonObject
    asked: tuple[str, ...] = ()
    """Names of the tools that needed the user's approval during the call."""


class ApprovalLine(_Line):
    """The user's decision on an approval request."""

    kind: Literal["approval"] = "approval"
    tool: str
    granted: bool
    remembered: bool = False
    """True if the decision applies to the rest of the session."""
    reason: str = ""
    content: str | None = None
    """The user's replacement for the proposed text."""

    @classmethod
    def from_decision(cls, tool: str, made: ApprovalDecision) -> Self:
        return cls(tool=tool, granted=made.allowed, remembered=made.remember, reason=made.reason, content=made.content)

    @property
    def decision(self) -> ApprovalDecision:
        return ApprovalDecision(self.granted, self.remembered, self.reason, self.content)


class UserMessageLine(_Line):
    """A user message after the first one. The first message is the task in the header."""

    kind: Literal["said"] = "said"
    text: str


class NoteLine(_Line):
    """A note for the model, which the user's next message includes."""

    kind: Literal["told"] = "told"
    text: str


class EndLine(_Line):
    """The end of the conversation, with its reason (see `REASONS`) and the last answer."""

    kind: Literal["end"] = "end"
    reason: str
    content: str = ""
    workspace: str = ""
    """Hash of the workspace at the end of the conversation."""


Line: TypeAlias = (
    RequestLine
    | ChunkLine
    | CallLine
    | InvalidLine
    | ApprovalLine
    | NestedCallLine
    | ResultLine
    | EndLine
    | UserMessageLine
    | NoteLine
)
LINE_ADAPTER: TypeAdapter[Header | Line] = TypeAdapter(Annotated[Header | Line, Field(discriminator="kind")])
