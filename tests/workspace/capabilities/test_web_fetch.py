"""Fetching pages from real servers on loopback, which a setting allows: every limit and refusal."""

from __future__ import annotations

import gzip
import ipaddress
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from adapter.core.errors import ToolError
from adapter.tools.operations import FetchPage
from adapter.workspace import Workspace
from adapter.workspace.capabilities import web_fetch
from adapter.workspace.capabilities.host_capabilities import Host, WebAccess
from tests.approvals import record_requests
from tests.hosted_dialect import HOSTED

LOCAL = WebAccess(allow_loopback=True, upgrade=False)
PAGE = (
    "<html><head><title>T</title><style>p{}</style><script>alert(1)</script></head>"
    "<body><h1>Title</h1><p>One <b>two</b> <a href='/x'>three</a></p><ul><li>four</li></ul></body></html>"
)


class Server:
    """Answers by path: (status, headers, body), or a function that writes the answer."""

    def __init__(self):
        self.pages: dict[str, Any] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.bodies: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append((self.path, dict(self.headers)))
                page = outer.pages.get(self.path.partition("?")[0], (404, {}, b"no"))
                if callable(page):
                    page(self)
                    return
                status, headers, body = page
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                outer.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.do_GET()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def fetch(server):
    def fetch(path, access=LOCAL, **more):
        return web_fetch.fetch_page(FetchPage(path if "://" in path else server.url + path, **more), access)

    return fetch


def html(text, content_type="text/html; charset=utf-8"):
    return (200, {"Content-Type": content_type}, text.encode())


# ------------------------------------------------------------------------- content


def test_page_is_returned_in_requested_format(server, fetch):
    """Without scripts and styles; html is unchanged."""
    server.pages["/"] = html(PAGE)
    assert fetch("/").text == "T\n\n# Title\n\nOne **two** [three](/x)\n\n* four\n"
    text = fetch("/", format="text").text
    assert "One" in text
    assert "<" not in text
    assert "alert" not in text
    assert fetch("/", format="html").text == PAGE


@pytest.mark.parametrize("format", ["markdown", "text"])
def test_elements_that_nobody_sees_are_left_out(server, fetch, format):
    """Also in other elements of the kind."""
    page = ""
    for tag in ("script", "style", "noscript", "template", "svg"):
        inner = "" if tag in ("script", "style") else f"<{tag}>x</{tag}>"
        page += f"<p>before-{tag}</p><{tag}>hidden<b>{inner}unseen</b></{tag}>"
    server.pages["/"] = html(f"{page}<p>end</p>")
    shown = ["before-script", "before-style", "before-noscript", "before-template", "before-svg", "end"]
    assert fetch("/", format=format).text.split() == shown


def test_non_html_text_is_unchanged(server, fetch):
    """JSON and plain text in every format."""
    server.pages["/j"] = html('{"a": "<b>"}', "application/json")
    assert fetch("/j").text == '{"a": "<b>"}'
    assert fetch("/j").content_type == "application/json"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Type": "text/plain; charset=iso-8859-1"}, "Grüße".encode("latin-1")),
        ({"Content-Type": "text/plain"}, "Grüße".encode()),
        ({"Content-Type": "text/plain; charset=nonsense"}, "Grüße".encode()),
        ({"Content-Type": "text/plain; charset=undefined"}, "Grüße".encode()),  # a codec of Python that always fails
        ({"Content-Type": "text/plain; charset=unicode-escape"}, "Grüße".encode()),
        ({"Content-Type": "text/plain", "Content-Encoding": "gzip"}, gzip.compress("Grüße".encode(), mtime=0)),
    ],
)
def test_content_encodings_are_decoded(server, fetch, headers, body):
    """Character sets and gzip."""
    server.pages["/"] = (200, headers, body)
    assert fetch("/").text == "Grüße"


def test_page_cannot_choose_a_slow_codec(server, fetch):
    """Python's decoder of punycode takes time quadratic in the length of the text: minutes for a page of 2 MB."""
    server.pages["/"] = (200, {"Content-Type": "text/plain; charset=punycode"}, b"x-" + b"a" * 2_000_000)
    assert fetch("/").text.startswith("x-aaa")


@pytest.mark.parametrize("page", ["<div>" * 5_000 + "deep" + "</div>" * 5_000, "<b>deep</b>" * 30_000])
def test_complex_page_becomes_text(server, fetch, page):
    """No recursion error and no gigabytes for a hostile page; a note tells the model."""
    server.pages["/"] = html(page)
    assert "deep" in fetch("/").text
    assert "too many elements" in str(web_fetch.convert_html(page, "markdown")[1])


def test_request_has_query_but_no_secrets(server, fetch, monkeypatch):
    """No cookies and no authorization. Proxies of the environment are not used."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.pages["/"] = html(PAGE)
    fetch("/?q=a%20b&x=1")
    path, headers = server.requests[0]
    assert path == "/?q=a%20b&x=1"
    assert {name.lower() for name in headers} == {"host", "accept", "accept-encoding", "user-agent"}


# -------------------------------------------------------------------------- limits


def test_pages_above_five_megabytes_are_refused(server, fetch):
    """By the declared size, the received size and the unpacked size."""
    server.pages["/claimed"] = (200, {"Content-Type": "text/plain", "Content-Length": "5000001"}, b"")
    server.pages["/bomb"] = (
        200,
        {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
        gzip.compress(b"x" * 50_000_000),
    )

    def endless(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65_536)
        except OSError:
            return

    server.pages["/endless"] = endless
    server.pages["/fits"] = html("x" * 5_000_000, "text/plain")
    for path in ("/claimed", "/bomb", "/endless"):
        with pytest.raises(ToolError, match="larger than 5,000,000 bytes"):
            fetch(path)
    assert len(fetch("/fits").text) == 5_000_000


@pytest.mark.parametrize("path", ["/silent", "/drip"])
def test_fetch_has_a_total_timeout(server, fetch, path):
    """C201: also with a byte now and then."""
    over = threading.Event()

    def silent(handler):
        over.wait(20)

    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.end_headers()
        try:
            while not over.wait(0.1):
                handler.wfile.write(b"x")
                handler.wfile.flush()
        except OSError:
            return

    server.pages |= {"/silent": silent, "/drip": drip}
    with pytest.raises(ToolError, match=r"did not respond completely within 0.5 s"):
        fetch(path, timeout_s=0.5)
    over.set()


def test_timeout_is_reduced_to_maximum(server, fetch):
    """120 s, with a note."""
    server.pages["/"] = html("x", "text/plain")
    assert fetch("/", timeout_s=121).notes == ("the timeout was reduced to 120 s", f"fetched from {server.url}/")[:1]
    with pytest.raises(ToolError, match="the timeout must be more than 0"):
        fetch("/", timeout_s=0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {"Content-Type": "text/html"}, b"no"), "HTTP status 404"),
        ((200, {"Content-Type": "image/png"}, b"x"), "has the content type image/png"),
        ((200, {"Content-Type": "application/octet-stream"}, b"x"), "only text"),
        ((200, {"Content-Type": "text/plain", "Content-Encoding": "br"}, b"x"), "encoded as 'br'"),
        (
            (200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, b"x"),
            "gzip data of the response is incomplete",
        ),
        ((200, {"Content-Type": "text/plain", "Content-Encoding": "gzip"}, b"xxxxxxxxxxxx"), "is not valid gzip data"),
    ],
)
def test_unusable_responses_are_explained(server, fetch, answer, said):
    """With the kind of response."""
    server.pages["/"] = answer
    with pytest.raises(ToolError, match=said):
        fetch("/")


def test_unreachable_server_is_reported(fetch):
    """A closed port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(ToolError, match=r"could not be fetched: .*Check the address"):
            fetch(f"http://127.0.0.1:{free.getsockname()[1]}/")


# ----------------------------------------------------------------------- redirects


def redirect(location):
    return (302, {"Location": location, "Content-Type": "text/html"}, b"")


def test_redirects_are_followed_and_named(server, fetch):
    """Relative and absolute ones, with a note."""
    server.pages |= {"/a": redirect("b"), "/b": redirect(f"{server.url}/c?x=1"), "/c": html("x", "text/plain")}
    page = fetch("/a")
    assert page.url == f"{server.url}/c?x=1"
    assert page.notes == (f"fetched from {server.url}/c?x=1",)


def test_redirects_are_limited(server, fetch):
    """Five, then it is a loop."""
    server.pages |= {f"/{n}": redirect(f"/{n + 1}") for n in range(6)} | {"/6": html("x", "text/plain")}
    with pytest.raises(ToolError, match="redirected more than 5 times"):
        fetch("/0")
    assert fetch("/1").text == "x"


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("http://169.254.169.254/latest/meta-data", "redirects to another host: http://169.254.169.254/latest"),
        ("//10.0.0.1/", "redirects to another host"),
        ("https://example.com/", "redirects to another host: https://example.com/. Fetch that address"),
        ("file:///etc/passwd", "file: addresses cannot be fetched"),
        ("http://user:pw@example.com/", "user name or password"),
        ("gopher://127.0.0.1/", "gopher: addresses"),
        ("http://[::1", r"redirects to 'http://\[::1', which is not a web address"),
    ],
)
def test_every_redirect_is_checked(server, fetch, location, said):
    server.pages["/"] = redirect(location)
    with pytest.raises(ToolError, match=said):
        fetch("/")


def test_host_is_resolved_and_checked_after_redirect(server, monkeypatch):
    """The host may have another address by then."""
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    monkeypatch.setattr(web_fetch, "_resolve", lambda *_: answers.pop(0))
    server.pages |= {"/": redirect("/b"), "/b": html("x", "text/plain")}
    port = server.url.rpartition(":")[2]
    with pytest.raises(ToolError, match=r"is 10\.0\.0\.1, which is not a public address"):
        web_fetch.fetch_page(FetchPage(f"http://name.example:{port}/"), LOCAL)
    assert [path for path, _ in server.requests] == ["/"]


# ----------------------------------------------------------------------- addresses


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.8.8.8",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
        ),
        *("224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "192.0.0.1", "100.100.100.200"),
        *("fec0::1", "feff::1", "5f00::1", "3fff::1", "64:ff9b:1::1", "100::1", "4000::1", "::8.8.8.8"),
        *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1"),
        *("::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1"),
        *(
            "64:ff9b::10.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "2002:c0a8:101::1",
            "2001:0:a00:1::1",
            "0.1.2.3",
        ),
    ],
)
def test_is_public_rejects_private_addresses(address):
    """Private, loopback, link-local, metadata, multicast and reserved addresses, also inside another address."""
    assert not web_fetch.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_is_public_accepts_public_addresses(address):
    assert web_fetch.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "localhost."])
def test_loopback_is_refused_unless_allowed(server, fetch, host):
    """Under every name of this machine. Nothing is sent."""
    port = server.url.rpartition(":")[2]
    server.pages["/"] = html("x", "text/plain")
    with pytest.raises(ToolError, match=r"port|not public"):
        fetch(f"http://{host}:{port}/", WebAccess(upgrade=False))
    with pytest.raises(ToolError, match="not a public address"):
        fetch(f"http://{host}/", WebAccess(upgrade=False))
    assert server.requests == []


def test_connection_uses_the_checked_address(server, monkeypatch):
    """DNS rebinding: the name is resolved once, because a second answer could be this machine."""
    answers = [["203.0.113.9"], ["127.0.0.1"]]
    asked = []

    def resolve(host, port, timeout_s):
        asked.append(host)
        return answers.pop(0)

    monkeypatch.setattr(web_fetch, "_resolve", resolve)
    with pytest.raises(ToolError, match="not a public address"):
        web_fetch.fetch_page(FetchPage("http://rebinding.example/"), WebAccess(upgrade=False))
    assert asked == ["rebinding.example"]
    connected = []
    monkeypatch.setattr(web_fetch, "_resolve", lambda *_: ["127.0.0.1"])
    original = socket.create_connection

    def create_connection(address, *args, **kwargs):
        connected.append(address[0])
        return original(address, *args, **kwargs)

    monkeypatch.setattr(socket, "create_connection", create_connection)
    server.pages["/"] = html("x", "text/plain")
    port = server.url.rpartition(":")[2]
    assert web_fetch.fetch_page(FetchPage(f"http://name.example:{port}/"), LOCAL).text == "x"
    assert connected == ["127.0.0.1"]
    assert server.requests[0][1]["Host"] == f"name.example:{port}"


def test_host_with_any_private_address_is_refused(monkeypatch):
    """A server could use either."""
    monkeypatch.setattr(web_fetch, "_resolve", lambda *_: ["1.1.1.1", "10.0.0.1"])
    with pytest.raises(ToolError, match=r"is 10\.0\.0\.1, which is not a public address"):
        web_fetch.fetch_page(FetchPage("http://mixed.example/"), WebAccess())


def test_http_becomes_https(server):
    """C202: the plain port receives the beginning of TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        first: list[bytes] = []

        def accept():
            connection, _ = listener.accept()
            with connection:
                first.append(connection.recv(1))

        thread = threading.Thread(target=accept)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(ToolError, match="could not be fetched"):
            web_fetch.fetch_page(FetchPage(f"http://127.0.0.1:{port}/"), WebAccess(allow_loopback=True))
        thread.join(60)
    assert first == [b"\x16"]  # a TLS handshake record
    assert str(web_fetch.parse_url("http://example.com/a", WebAccess())) == "https://example.com/a"
    assert str(web_fetch.parse_url("example.com", WebAccess())) == "https://example.com/"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.com/", "ftp: addresses cannot be fetched"),
        ("https://user@example.com/", "user name or password"),
        ("https://a b.com/", "not a web address"),
        ("https://example.com\\@127.0.0.1/", "not a web address"),
        ("https://example.com/\r\nX: y", "not a web address"),
        ("https://exämple.com/", "not a web address"),
        ("https://127.1/", "not an IPv4 address"),
        ("https://2130706433/", "not an IPv4 address"),
        ("https://0x7f.0.0.1/", "not an IPv4 address"),
        ("https://0177.0.0.1/", "not an IPv4 address"),
        ("https://127.0.0.1.:22/", "port 22"),
        ("https://example.com:22/", "port 22 is not allowed"),
        ("https://example.com:99999/", "not a web address"),
        ("https://[::zz]/", "not a web address|not an IPv6"),
        ("https:///x", "not a host name"),
        ("https://-a.com/", "not a host name"),
        ("https://" + "a" * 300 + ".com/", "not a host name"),
        ("https://example.com/" + "a" * 3_000, "not a web address"),
        ("", "not a host name"),
    ],
)
def test_parse_url_is_strict(url, said):
    """URLs that two programs could parse differently are rejected."""
    with pytest.raises(ToolError, match=said):
        web_fetch.parse_url(url, WebAccess())


def test_fetch_approval_is_per_host(server, tmp_path):
    """Once per host if the user agrees. A rule can name the host."""
    from adapter.tools.operations.permissions import ApprovalDecision, PermissionRule

    server.pages["/"] = server.pages["/b"] = html("x", "text/plain")
    asked, approve = record_requests("effect", "subject", answer=ApprovalDecision(True, remember=True))
    with Workspace(tmp_path, HOSTED, approve, host=Host(web=LOCAL)) as workspace:
        assert workspace.run("fetch", {"url": server.url + "/"}).ok
        assert workspace.run("fetch", {"url": server.url + "/b"}).ok
    assert asked == [("network", "127.0.0.1")]
    for text, mode, ok in [("allow fetch(127.0.0.*)", "ask", True), ("deny fetch(127.*)", "yolo", False)]:
        with Workspace(
            tmp_path, HOSTED, mode, rules=[PermissionRule.from_text(text)], host=Host(web=LOCAL)
        ) as workspace:
            assert workspace.run("fetch", {"url": server.url + "/"}).ok == ok


def test_conversion_ends_with_the_timeout(tmp_path, monkeypatch):
    """The conversion is a separate process with the remaining time."""
    job = tmp_path / "job.py"
    job.write_text("def run(data, format):\n    while True: pass\n    yield 1\n")
    monkeypatch.setattr("adapter.workspace.capabilities.html_text.__file__", str(job))
    with pytest.raises(ToolError, match="could not be converted to markdown: it takes more than 1 s"):
        web_fetch.convert_html("<p>x</p>", "markdown", 1.0)
