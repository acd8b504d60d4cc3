"""Search and library documentation: the embedded providers, and services over real HTTP."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from adapter.core.errors import ToolError, UsageError
from adapter.tools.operations import SearchHit, SearchWeb
from adapter.workspace import Workspace
from adapter.workspace.capabilities.host_capabilities import Host
from adapter.workspace.capabilities.http_search_and_docs import HttpDocs, HttpSearch
from adapter.workspace.capabilities.installed_package_docs import InstalledDocs
from adapter.workspace.capabilities.predefined_search_services import SERVICES, get_search_service
from adapter.workspace.capabilities.web_fetch import is_in_domains
from tests.hosted_dialect import HOSTED
from tests.workspace.capabilities.test_web_fetch import Server


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def workspace(directory):
    (directory / "README.md").write_text("# Zebra\n\nA tool.\n\n## Install\n\nRun the installer of zebra.\n")
    (directory / "docs").mkdir()
    (directory / "docs" / "guide.rst").write_text("Stripes are painted by the painter. The painter paints.\n")
    (directory / "code.py").write_text("painter painter painter\n")
    with Workspace(directory, HOSTED, host=Host(search="embedded")) as workspace:
        yield workspace


# -------------------------------------------------------------------- local search


def test_local_search_returns_workspace_documents(workspace):
    """The best section first, with its line; source code is not documentation."""
    hits = workspace.run("search", {"query": "how to install zebra"}).data["hits"]
    assert [(hit["title"], hit["url"]) for hit in hits] == [("Install", "README.md#5"), ("Zebra", "README.md#1")]
    (hit,) = workspace.run("search", {"query": "painter"}).data["hits"]
    assert hit["url"] == "docs/guide.rst#1"
    assert "Stripes" in hit["content"]
    assert workspace.run("search", {"query": "giraffe"}).data["hits"] == ()
    assert "no words" in workspace.run("search", {"query": "?!"}).content


def test_local_search_tool_is_not_described_as_web_search(workspace, directory):
    """Neither in its definition nor in its results, and it is offered only on request."""
    assert (
        workspace.tools["search"].description
        == "Search the documents in the workspace: there is no web search in this session."
    )
    result = workspace.run("search", {"query": "zebra"})
    assert result.notes == ("these are documents of the workspace, not of the web",)
    with Workspace(directory, HOSTED) as without:
        assert "search" not in without.tools


def test_limits_and_domains_are_honored(workspace):
    """A page of the workspace belongs to no domain."""
    assert len(workspace.run("search", {"query": "zebra", "limit": 1}).data["hits"]) == 1
    assert workspace.run("search", {"query": "zebra", "allowed": ["example.com"]}).data["hits"] == ()
    assert len(workspace.run("search", {"query": "zebra", "blocked": ["example.com"]}).data["hits"]) == 2


@pytest.mark.parametrize(
    ("url", "allowed", "blocked", "expected"),
    [
        ("https://a.com/x", [], [], True),
        ("https://docs.a.com/x", ["a.com"], [], True),
        ("https://evila.com/x", ["a.com"], [], False),
        ("https://a.com/x", ["https://A.com/"], [], True),
        ("https://a.com/x", ["*.a.com"], [], True),
        ("https://a.com/x", [], ["a.com"], False),
        ("https://b.a.com/x", ["a.com"], ["b.a.com"], False),
        ("https://a.com./x", ["a.com"], [], True),
        ("https://a.com./x", [], ["a.com"], False),
        ("http://[a.com", ["a.com"], [], False),
        ("http://[a.com", [], ["a.com"], False),
        ("http://[a.com", [], [], True),
    ],
)
def test_domains_include_subdomains(url, allowed, blocked, expected):
    """By labels, not by substring. Blocked domains take precedence."""
    assert is_in_domains(url, allowed, blocked) == expected


# ------------------------------------------------------------------ installed docs


def test_installed_libraries_are_found_by_name(workspace):
    """By the exact name, another spelling or a similar name. Unknown ones are reported."""
    (first, *_) = workspace.run("resolve", {"name": "Jinja2"}).data["libraries"]
    assert first["id"].startswith("/pypi/jinja2/")
    assert "pydantic-core" in [found.id.split("/")[2] for found in InstalledDocs().find("pydantic_core")]
    assert "/pypi/pydantic/" in InstalledDocs().find("pydantc")[0].id
    assert "tenacity" not in [found.title for found in InstalledDocs().find("react")]
    assert "no library similar to 'zzqqxx'" in workspace.run("resolve", {"name": "zzqqxx"}).content


def test_docs_come_from_metadata_and_source(workspace):
    """info: the description; code: signatures and docstrings; topic and page are used."""
    info = workspace.run("docs", {"id": "/pypi/jinja2", "mode": "info"}).data["text"]
    assert "templating engine" in info
    code = workspace.run("docs", {"id": "/pypi/jinja2", "topic": "Environment get_template"}).data["text"]
    assert "get_template(self, name" in code
    second = workspace.run("docs", {"id": "/pypi/jinja2", "page": 2}).data
    assert second["page"] == 2
    assert second["text"] != workspace.run("docs", {"id": "/pypi/jinja2"}).data["text"]
    assert "(page 2 of " in second["text"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"id": "jinja2"}, "expected one like /org/project"),
        ({"id": "/vercel/next.js"}, "expected one like /pypi/NAME"),
        ({"id": "/pypi/zzqqxx"}, "is not installed here"),
        ({"id": "/pypi/jinja2/0.0.1"}, "is not installed here, but version"),
        ({"id": "/pypi/../../etc"}, "expected one like|not installed"),
        ({"id": "/pypi/jinja2", "page": 0}, "page must be between 1 and 10"),
        ({"id": "/pypi/jinja2", "page": 11}, "page must be between 1 and 10"),
        ({"id": "/pypi/docstring-parser", "mode": "info", "page": 10}, "page 10 does not exist"),
        ({"id": "/pypi/jinja2", "topic": "zzqqxx"}, "has no documentation about 'zzqqxx'"),
    ],
)
def test_missing_docs_are_explained(workspace, arguments, said):
    import re

    result = workspace.run("docs", arguments)
    assert not result.ok
    assert re.search(said, result.content)


# ------------------------------------------------------------------------ services


def test_search_with_limit_zero_is_refused(workspace):
    """It is not raised to one."""
    assert (
        "the number of results must be at least 1, got 0"
        in workspace.run("search", {"query": "zebra", "limit": 0}).content
    )


def answer(value):
    return (200, {"Content-Type": "application/json"}, json.dumps(value).encode())


def test_search_service_results_are_parsed(server, directory, monkeypatch):
    """The query is in the URL, the key in a header; common field names are parsed, and domains are honored."""
    monkeypatch.setenv("SEARCH_KEY", "s3cret")
    rows = [
        {"title": "A", "url": "https://a.com/1", "content": "one"},
        {"name": "B", "link": "https://b.com/2", "snippet": "two"},
    ]
    server.pages["/search"] = answer({"results": rows})
    search = HttpSearch(server.url + "/search?q={query}&n={limit}", key_variable="SEARCH_KEY")
    with Workspace(directory, HOSTED, host=Host(search=search)) as workspace:
        result = workspace.run("search", {"query": "a&b=c {x}", "limit": 3, "blocked": ["a.com"]})
    assert result.data["hits"] == ({"title": "B", "url": "https://b.com/2", "content": "two"},)
    path, headers = server.requests[0]
    assert path == "/search?q=a%26b%3Dc%20%7Bx%7D&n=3"
    assert headers["Authorization"] == "Bearer s3cret"


EXA_ANSWER = {"requestId": "r", "results": [{"title": "A", "url": "https://a.com/1", "id": "1", "text": "one"}]}
BRAVE_ANSWER = {"type": "search", "web": {"results": [{"title": "A", "url": "https://a.com/1", "description": "one"}]}}
SEARXNG_ANSWER = {"query": "q", "results": [{"title": "A", "url": "https://a.com/1", "content": "one", "score": 1.0}]}
FOUND = ({"title": "A", "url": "https://a.com/1", "content": "one"},)


def test_exa_request_follows_its_documentation(server, directory, monkeypatch):
    """C204: a POST request with JSON and the key in x-api-key. Domains are filtered by the service."""
    monkeypatch.setenv("EXA_API_KEY", "exa-s3cret")
    server.pages["/search"] = answer(EXA_ANSWER)
    with Workspace(directory, HOSTED, host=Host(search=get_search_service("exa", server.url))) as workspace:
        assert workspace.run("search", {"query": 'a "b" {x}', "limit": 3, "allowed": ["a.com"]}).data["hits"] == FOUND
        workspace.run("search", {"query": "c"})
    first, second = map(json.loads, server.bodies)
    text = {"text": {"maxCharacters": 2000}}
    assert first == {"query": 'a "b" {x}', "numResults": 3, "includeDomains": ["a.com"], "contents": text}
    assert second == {"query": "c", "numResults": 8, "contents": text}
    path, headers = server.requests[0]
    assert (path, headers["x-api-key"], headers["Content-Type"]) == ("/search", "exa-s3cret", "application/json")
    assert "Authorization" not in headers
    assert SERVICES["exa"][0] == "https://api.exa.ai"


def test_brave_request_follows_its_documentation(server, directory, monkeypatch):
    """A GET request with the key in X-Subscription-Token and domains in the query. The limit of 20 results is
    reported.
    """
    monkeypatch.setenv("BRAVE_API_KEY", "brave-s3cret")
    server.pages["/res/v1/web/search"] = answer(BRAVE_ANSWER)
    with Workspace(directory, HOSTED, host=Host(search=get_search_service("brave", server.url))) as workspace:
        result = workspace.run("search", {"query": "a b", "limit": 50, "allowed": ["a.com"], "blocked": ["c.com"]})
    assert result.data["hits"] == FOUND
    assert "50 results were requested; the service returns at most 20" in result.content
    path, headers = server.requests[0]
    assert path == ("/res/v1/web/search?q=a%20b%20site%3Aa.com%20-site%3Ac.com&count=20&text_decorations=false")
    assert headers["X-Subscription-Token"] == "brave-s3cret"


def test_searxng_request_follows_its_documentation(server, directory):
    """On the user's own server, without a key."""
    server.pages["/search"] = answer(SEARXNG_ANSWER)
    with Workspace(directory, HOSTED, host=Host(search=get_search_service("searxng", server.url + "/"))) as workspace:
        assert workspace.run("search", {"query": "q"}).data["hits"] == FOUND
    ((path, headers),) = server.requests
    assert path == "/search?format=json&q=q"
    assert "Authorization" not in headers


def test_unknown_service_or_missing_server_is_refused():
    """With the known names."""
    with pytest.raises(UsageError, match="expected one of: exa, brave, searxng"):
        get_search_service("google")
    with pytest.raises(UsageError, match="such as http://localhost:8888"):
        get_search_service("searxng")


def test_key_in_response_is_redacted(server, monkeypatch):
    """In results: verbatim, in a URL or in JSON. Transcripts and models do not see it."""
    key = 'k"ey/1234'
    monkeypatch.setenv("SEARCH_KEY", key)
    rows = [{"title": f"for {key}", "url": f"https://a.com/?k={quote(key, safe='')}", "content": key}]
    server.pages["/s"] = answer(rows)
    (hit,) = HttpSearch(server.url + "/s?q={query}", key_variable="SEARCH_KEY").search(SearchWeb("x"))
    assert hit == SearchHit("for [redacted]", "https://a.com/?k=[redacted]", "[redacted]")


@pytest.mark.parametrize(
    ("query", "body", "said"),
    [
        ("a" * 70_000, None, "URL too long"),
        ("\ud800", None, "surrogates"),
        ("\ud800", {"q": "{query}"}, "surrogates"),
    ],
)
def test_query_that_cannot_be_sent_is_an_error_for_the_model(query, body, said):
    service = HttpSearch("http://127.0.0.1:1/?q={query}", body=body)
    with pytest.raises(ToolError, match=f"{said}.*make it shorter or simpler"):
        service.search(SearchWeb(query))


def test_key_that_is_not_ascii_is_an_error_about_the_key(monkeypatch):
    monkeypatch.setenv("SEARCH_KEY", "schlüssel")
    with pytest.raises(ToolError, match="the key in SEARCH_KEY has characters beyond ASCII"):
        HttpSearch("http://127.0.0.1:1/?q={query}", key_variable="SEARCH_KEY").search(SearchWeb("x"))


def test_long_hit_is_cut_with_ellipsis(server):
    server.pages["/s"] = answer([{"title": "A", "url": "https://a.com", "content": "x" * 2_001}])
    (hit,) = HttpSearch(server.url + "/s?q={query}").search(SearchWeb("x"))
    assert hit.content == "x" * 1_997 + "..."


def test_documentation_service_results_are_parsed(server, directory):
    """Found by name, read by id, with the mode, topic and page."""
    server.pages["/find"] = answer([{"id": "/org/lib", "title": "Lib", "description": "d"}, {"title": "no id"}])
    server.pages["/read/org/lib"] = (200, {}, b"text " * 3_000)
    docs = HttpDocs(server.url + "/find?name={name}", server.url + "/read{id}?t={topic}&p={page}&m={mode}")
    with Workspace(directory, HOSTED, host=Host(docs=docs)) as workspace:
        assert [found["id"] for found in workspace.run("resolve", {"name": "lib"}).data["libraries"]] == ["/org/lib"]
        text = workspace.run("docs", {"id": "/org/lib", "topic": "x y", "page": 2, "mode": "info"}).data["text"]
    assert text.endswith("(cut at 10000 characters; see the next page)")
    assert server.requests[1][0] == "/read/org/lib?t=x%20y&p=2&m=info"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ((500, {}, b"key s3cret"), "HTTP status 500; continue without it"),
        ((401, {}, b"key s3cret"), "HTTP status 401; the user has to check its key"),
        ((422, {}, b"too long"), "HTTP status 422; it rejected the query; make it shorter or simpler"),
        ((200, {}, b"not json"), "not valid JSON"),
        ((200, {}, b"[" * 100_000), "not valid JSON"),
        ((200, {}, b"{}"), "no list of results"),
        ((200, {}, b"x" * 2_000_001), "larger than 2,000,000 bytes"),
        ((302, {"Location": "/other"}, b""), "HTTP status 302"),
    ],
)
def test_service_errors_hide_address_and_key(server, monkeypatch, page, said):
    """Both are the user's, not the model's."""
    monkeypatch.setenv("SEARCH_KEY", "s3cret")
    server.pages["/s"] = page
    search = HttpSearch(server.url + "/s?q={query}&key={key}", key_variable="SEARCH_KEY")
    with pytest.raises(ToolError, match=said) as failed:
        search.search(SearchWeb("x"))
    assert "s3cret" not in str(failed.value)
    assert "127.0.0.1" not in str(failed.value)
    assert "key=s3cret" in server.requests[0][0]


def test_missing_key_is_named(server, monkeypatch):
    """And no request is sent."""
    monkeypatch.delenv("SEARCH_KEY", raising=False)
    with pytest.raises(ToolError, match="SEARCH_KEY is not set"):
        HttpSearch(server.url + "/s?q={query}", key_variable="SEARCH_KEY").search(SearchWeb("x"))
    assert server.requests == []


def test_unreachable_service_is_reported():
    with pytest.raises(ToolError, match="does not respond"):
        HttpSearch("http://127.0.0.1:1/?q={query}").search(SearchWeb("x"))


@pytest.mark.parametrize("url", ["https://a.com/?q=x", "file:///{query}", "{query}"])
def test_invalid_templates_are_refused(url):
    """When they are given, not when they are used."""
    with pytest.raises(UsageError, match="invalid address template"):
        HttpSearch(url)


def test_custom_provider_is_used(directory):
    """Any object with the method."""

    class Mine:
        def search(self, wanted):
            return [SearchHit(wanted.query, "https://a.com", "mine")]

    with Workspace(directory, HOSTED, host=Host(search=Mine())) as workspace:
        assert workspace.run("search", {"query": "q"}).data["hits"][0]["title"] == "q"
