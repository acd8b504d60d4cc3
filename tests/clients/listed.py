"""The tested clients: commands, which get the server's address, and libraries with a script each."""

from __future__ import annotations

import json

from tests.clients.environments import WRITTEN, Client, Command, settings

ASKED = "Weather in Bern and Basel?"

_PI = {
    "providers": {
        way: {"baseUrl": base, "api": kind, "apiKey": "k", "models": [{"id": "m"}]}
        for way, base, kind in (
            ("chat", f"{WRITTEN}/v1", "openai-completions"),
            ("responses", f"{WRITTEN}/v1", "openai-responses"),
            ("anthropic", WRITTEN, "anthropic-messages"),
        )
    }
}

_CLINE = {
    "version": 1,
    "lastUsedProvider": "openai-compatible",
    "providers": {
        "openai-compatible": {
            "settings": {"provider": "openai-compatible", "apiKey": "k", "model": "m", "baseUrl": f"{WRITTEN}/v1"},
            "updatedAt": "2026-11-01T00:00:00.000Z",
            "tokenSource": "manual",
        }
    },
}

_NANOCODER = {"nanocoder": {"providers": [{"name": "a", "baseUrl": f"{WRITTEN}/v1", "apiKey": "k", "models": ["m"]}]}}

_VIBE = f"""active_model = "m"
enable_telemetry = false
enable_update_checks = false
[[providers]]
name = "adapter"
api_base = "{WRITTEN}/v1"
[[models]]
name = "m"
alias = "m"
provider = "adapter"
"""

COMMANDS: tuple[Command, ...] = (
    Command(name="claude-code", packages=("@anthropic-ai/claude-code",), ways=("anthropic",), is_node=True,
            line=("claude", "-p", ASKED, "--model", "m", "--allowedTools", "Bash"),
            variables={"ANTHROPIC_BASE_URL": WRITTEN, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}),
    Command(name="cline", packages=("cline",), ways=("chat",), is_node=True,
            line=("cline", ASKED), files={".cline/data/settings/providers.json": json.dumps(_CLINE)},
            variables={"CLINE_SESSION_BACKEND_MODE": "local"}),  # else a server of its own outlives it
    Command(name="codex", packages=("@openai/codex",), ways=("responses",), is_node=True,
            line=("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", ASKED),
            files={".codex/config.toml": settings("codex")}, variables={"ADAPTER_API_KEY": "none"}),
    Command(name="continue-cli", packages=("@continuedev/cli",), ways=("chat",), is_node=True,
            line=("cn", "--config", "config.yaml", "--auto", "-p", ASKED),
            files={"config.yaml": settings("continue")}, variables={"CONTINUE_TELEMETRY_ENABLED": "0"}),
    Command(name="copilot-cli", packages=("@github/copilot",), ways=("chat",), is_node=True,
            line=("copilot", "-p", ASKED, "--allow-all-tools"),
            variables={"COPILOT_PROVIDER_BASE_URL": f"{WRITTEN}/v1", "COPILOT_MODEL": "m", "COPILOT_OFFLINE": "true"}),
    Command(name="gptme", packages=("gptme",), ways=("chat",),
            line=("gptme", "--non-interactive", "--tool-format", "tool", "--model", "local/m", ASKED),
            variables={"OPENAI_BASE_URL": f"{WRITTEN}/v1"}),
    Command(name="mini-swe-agent", packages=("mini-swe-agent", "mcp"), ways=("chat",),
            line=("mini", "--yolo", "--exit-immediately", "--model", "openai/m", "--task", ASKED),
            variables={"OPENAI_API_BASE": f"{WRITTEN}/v1", "MSWEA_CONFIGURED": "true",
                       "MSWEA_COST_TRACKING": "ignore_errors", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}),
    Command(name="mistral-vibe", packages=("mistral-vibe",), ways=("chat",), python="python3.12",
            line=("vibe", "--auto-approve", "--trust", "-p", ASKED), files={".vibe/config.toml": _VIBE}),
    Command(name="nanocoder", packages=("@nanocollective/nanocoder",), ways=("chat",), is_node=True,
            line=("nanocoder", "--mode", "yolo", "--trust-directory", "run", ASKED),
            files={"agents.config.json": json.dumps(_NANOCODER)}),
    Command(name="opencode", packages=("opencode-ai",), ways=("chat",), is_node=True,
            line=("opencode", "run", ASKED), files={"opencode.json": settings("opencode")},
            variables={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}),
    Command(name="pi", packages=("@earendil-works/pi-coding-agent@0.74",), ways=("chat", "responses", "anthropic"),
            is_node=True, line=("pi", "--offline", "--provider", "{way}", "--model", "m", "-p", ASKED),
            files={".pi/agent/models.json": json.dumps(_PI)}),
    Command(name="qwen-code", packages=("@qwen-code/qwen-code",), ways=("chat",), is_node=True,
            line=("qwen", "--yolo", "--auth-type", "openai", "--model", "m", "-p", ASKED),
            variables={"OPENAI_BASE_URL": f"{WRITTEN}/v1"}),
)  # fmt: skip

LIBRARIES = (
    Client(name="ai-sdk", packages=("ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@ai-sdk/anthropic", "zod"),
           ways=("responses", "chat", "compatible", "anthropic"), is_node=True),
    Client(name="anthropic-js", packages=("@anthropic-ai/sdk", "zod"), ways=("anthropic",), is_node=True),
    Client(name="langchain-js", packages=("langchain", "@langchain/core", "@langchain/openai", "@langchain/anthropic",
           "@langchain/ollama", "zod"), ways=("chat", "responses", "anthropic", "ollama"), is_node=True),
    Client(name="mastra", packages=("@mastra/core", "zod"), ways=("chat",), is_node=True),
    Client(name="ollama-js", packages=("ollama",), ways=("ollama",), is_node=True),
    Client(name="openai-agents-js", packages=("@openai/agents", "openai", "zod"), ways=("chat", "responses"),
           is_node=True),
    Client(name="openai-js", packages=("openai",), ways=("chat", "responses"), is_node=True),
    Client(name="strands-js", packages=("@strands-agents/sdk", "openai", "zod"), ways=("chat", "responses"),
           is_node=True),
    Client(name="ag2", packages=("ag2[openai]",), ways=("chat", "responses")),
    Client(name="agent-framework", packages=("agent-framework-openai",), ways=("chat", "responses")),
    Client(name="agno", packages=("agno", "openai"), ways=("chat", "responses")),
    Client(name="autogen", packages=("autogen-agentchat", "autogen-ext[openai]"), ways=("chat",)),
    Client(name="crewai", packages=("crewai", "openai"), ways=("chat",)),
    Client(name="dspy", packages=("dspy", "mcp"), ways=("chat",)),
    Client(name="google-adk", packages=("google-adk", "litellm", "mcp"), ways=("chat",)),
    Client(name="haystack", packages=("haystack-ai",), ways=("chat",)),
    Client(name="instructor", packages=("instructor",), ways=("chat",)),
    Client(name="langchain", packages=("langchain", "langchain-openai", "langchain-ollama", "langchain-anthropic"),
           ways=("chat", "responses", "anthropic", "ollama")),
    Client(name="langgraph", packages=("langgraph", "langchain-openai"), ways=("chat", "responses")),
    Client(name="litellm", packages=("litellm", "mcp"), ways=("chat", "responses", "anthropic", "ollama")),
    Client(name="llama-index", packages=("llama-index-llms-openai-like", "llama-index-core"), ways=("chat",)),
    Client(name="openai-agents", packages=("openai-agents",), ways=("chat", "responses")),
    Client(name="openhands-sdk", packages=("openhands-sdk", "openhands-tools"), ways=("chat",), python="python3.12"),
    Client(name="pydantic-ai", packages=("pydantic-ai-slim[openai,anthropic]",),
           ways=("chat", "responses", "anthropic")),
    Client(name="semantic-kernel", packages=("semantic-kernel",), ways=("chat",)),
    Client(name="smolagents", packages=("smolagents[openai]",), ways=("chat",)),
    Client(name="strands", packages=("strands-agents[openai,ollama,anthropic]",),
           ways=("chat", "anthropic", "ollama")),
)  # fmt: skip

CLIENTS: tuple[Client, ...] = (*COMMANDS, *LIBRARIES)
