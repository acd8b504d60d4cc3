"""Fetch web pages without letting a model reach private addresses.

A host name is resolved once, and every address found must be public. The connection uses an address that was checked,
and the certificate must match the name. These checks are repeated after every redirect. A redirect to another host is
not followed, since the user did not approve that host. Proxies in the environment are not used. The time, the number of
redirects and the size, both compressed and decompressed, are limited.
"""

from __future__ import annotations

import codecs
import ipaddress
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from adapter.core.errors import ToolError
from adapter.core.text.display_escaping import escape_for_display
from adapter.tools.operations import FetchPage, Page, PageFormat
from adapter.workspace.capabilities import html_text
from adapter.workspace.capabilities.host_capabilities import WebAccess
from adapter.workspace.pausable_deadline import limit_timeout
from adapter.workspace.sandbox.bounded_worker import run_bounded

if TYPE_CHECKING:
    from httpcore2 import NetworkBackend, Response

MAX_TIMEOUT_S = 120.0
"""Maximum duration of a fetch, in seconds."""
MAX_URL = 2_000
"""Maximum length of an address, in characters."""
MAX_DOCS_PAGE = 10
"""Maximum page number in documentation."""
PORTS = frozenset({80, 443, 8080, 8443})
_REDIRECTS = (301, 302, 303, 307, 308)
_ALLOWED = re.compile(r"[!#$%&'()*+,./:;=?@\[\]_~A-Za-z0-9-]+")
_HOST = re.compile(
    r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?"
)
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|\d+)\.?")
_CHARSET = re.compile(r"charset=[\"']?([\w.:-]+)", re.IGNORECASE)
_TEXT = re.compile(r"text/|.*\b(?:json|xml|javascript|ecmascript|yaml|toml|csv)\b", re.IGNORECASE)
_NOT_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Python codecs that no page uses. ``punycode`` takes quadratic time."""
_HTML = re.compile(r"text/html|application/xhtml", re.IGNORECASE)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The only public IPv6 addresses (RFC 4291, 2.4). Python counts some others as global, such as ``fec0::/10``."""
_DOCUMENTATION = ipaddress.IPv6Network("3fff::/20")
"""Addresses for documentation (RFC 9637), which Python does not know yet."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    port: int
    target: str

    def __str__(self) -> str:
        default = {"http": 80, "https": 443}[self.scheme]
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port == default else f':{self.port}'}{self.target}"


def parse_url(text: str, access: WebAccess) -> Url:
    """Parse an address, and replace ``http`` with ``https`` if ``access.upgrade`` is set.

    Raises ToolError if the address must not be fetched.
    """
    url = text.strip()
    if "://" not in url:
        url = f"https://{url}"
    if len(url) > MAX_URL or not _ALLOWED.fullmatch(url):
        raise ToolError(
            f"{escape_for_display(url[:200])!r} is not a web address; write it in full, with special characters as %XX"
        )
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise ToolError(f"{escape_for_display(url)!r} is not a web address: {error}") from None
    host = (split.hostname or "").rstrip(".")
    if split.scheme.lower() not in ("http", "https"):
        raise ToolError(f"{split.scheme}: addresses cannot be fetched; give an http: or https: address")
    if split.username is not None or split.password is not None or "@" in split.netloc:
        raise ToolError("the address contains a user name or password; remove it")
    _check_host(host, split.netloc)
    scheme = split.scheme.lower()
    if scheme == "http" and access.upgrade:
        scheme, port = "https", 443 if port in (None, 80) else port
    port = port or {"http": 80, "https": 443}[scheme]
    if port not in PORTS and not access.allow_loopback:
        raise ToolError(f"port {port} is not allowed; use one of {', '.join(map(str, sorted(PORTS)))}")
    target = (split.path or "/") + (f"?{split.query}" if split.query else "")
    return Url(scheme, host, port, target)


def _check_host(host: str, netloc: str) -> None:
    if netloc.startswith("["):
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise ToolError(
                f"[{escape_for_display(host)}] is not an IPv6 address; write one like [2606:4700::1111], or a host name"
            ) from None
    elif _NUMBER.fullmatch(host.rpartition(".")[2]):
        # C libraries parse 0x7f.1 and 2130706433 as addresses, so only the standard form is accepted.
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise ToolError(
                f"{escape_for_display(host)!r} is not an IPv4 address; write it as four numbers, or give a host name"
            ) from None
    elif not _HOST.fullmatch(host) or len(host) > 253:
        raise ToolError(f"{escape_for_display(host)!r} is not a host name; write it in ASCII (punycode)")


def is_public(address: Address) -> bool:
    """Return whether the address is public. An IPv4 address embedded in an IPv6 address must also be public."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST or address in _DOCUMENTATION:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def resolve_checked_addresses(host: str, port: int, access: WebAccess, timeout_s: float) -> list[str]:
    """Resolve ``host`` to its addresses. Raises ToolError unless ``access`` permits all of them."""
    addresses = _resolve(host, port, timeout_s)
    for text in addresses:
        address = ipaddress.ip_address(text.partition("%")[0])
        if not (is_public(address) or (access.allow_loopback and address.is_loopback)):
            raise ToolError(f"{host} is {text}, which is not a public address; only public pages can be fetched")
    return addresses


def _resolve(host: str, port: int, timeout_s: float) -> list[str]:
    """Resolve a host name in a separate thread, which is abandoned if the name server takes too long."""
    results: list[list[str] | OSError] = []

    def resolve() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            results.append(list(dict.fromkeys(str(row[4][0]) for row in rows)))
        except (OSError, UnicodeError) as error:
            results.append(error if isinstance(error, OSError) else OSError(str(error)))

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(max(timeout_s, 0.01))
    if not results or isinstance(results[0], OSError) or not results[0]:
        reason = str(results[0]) if results and isinstance(results[0], OSError) else "no answer in time"
        raise ToolError(f"the host {host!r} could not be resolved ({reason}); check the name")
    return results[0]


def fetch_page(operation: FetchPage, access: WebAccess) -> Page:
    """Fetch a page as text. Raises ToolError with the cause and an alternative if that fails."""
    seconds, timeout_notes = limit_timeout(operation.timeout_s, MAX_TIMEOUT_S)
    deadline = time.monotonic() + seconds
    notes = list(timeout_notes)
    page = _fetch_response(operation, access, seconds)
    if _HTML.match(page.content_type):
        text, more = convert_html(page.text, operation.format, max(deadline - time.monotonic(), 0.1))
        page = replace(page, text=text)
        notes += more
    if page.url != operation.url:
        notes.append(f"fetched from {page.url}")
    return replace(page, notes=tuple(notes))


def _fetch_response(operation: FetchPage, access: WebAccess, seconds: float) -> Page:
    """Return the response after all redirects. HTML is not converted yet."""
    import httpcore2

    deadline = time.monotonic() + seconds
    url = parse_url(operation.url, access)
    try:
        for _ in range(access.max_redirects + 1):
            with httpcore2.ConnectionPool(network_backend=_create_backend(access, deadline), retries=0) as pool:
                headers: dict[bytes | str, bytes | str] = {
                    "Accept": "text/html, text/*;q=0.9, */*;q=0.5",
                    "Accept-Encoding": "gzip, identity",
                    "User-Agent": "toolcall-adapter",
                }
                with pool.stream("GET", str(url), headers=headers) as response:
                    location = _get_header(response, "location")
                    if response.status in _REDIRECTS and location:
                        url = _follow_redirect(url, location, access)
                        continue
                    content_type = _get_header(response, "content-type") or "text/html"
                    _check_response(response, content_type, url)
                    text = _decode(_read_body(response, access.max_bytes), content_type)
                    return Page(str(url), content_type, text, response.status)
    except (httpcore2.TimeoutException, TimeoutError):
        raise ToolError(
            f"{url} did not respond completely within {seconds:g} s; try again, or pass a longer timeout"
        ) from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        raise ToolError(f"{url} could not be fetched: {error or type(error).__name__}. Check the address") from None
    raise ToolError(f"{operation.url} was redirected more than {access.max_redirects} times; try another address")


def _follow_redirect(url: Url, location: str, access: WebAccess) -> Url:
    """Return the target of a redirect. Raises ToolError if it is another host, which the user did not approve."""
    try:
        target = parse_url(urljoin(str(url), location), access)
    except ValueError:
        shown = escape_for_display(location[:200])
        raise ToolError(f"{url} redirects to {shown!r}, which is not a web address; try another address") from None
    if target.host.removeprefix("www.") != url.host.removeprefix("www."):
        raise ToolError(f"{url} redirects to another host: {target}. Fetch that address if you want it")
    return target


def _get_header(response: Response, name: str) -> str:
    raw = next((value for key, value in response.headers if key.lower() == name.encode()), b"")
    return bytes(raw).decode("latin-1")


def _check_response(response: Response, content_type: str, url: Url) -> None:
    if not 200 <= response.status < 300:
        raise ToolError(f"{url} returned HTTP status {response.status}; check the address")
    if not _TEXT.match(content_type):
        raise ToolError(f"{url} has the content type {content_type}, but only text can be fetched; try another address")


def _read_body(response: Response, limit: int) -> bytes:
    """Read and decompress the body. Raises ToolError if it exceeds ``limit`` bytes before or after decompression."""
    encoding = _get_header(response, "content-encoding").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(f"the response is encoded as {encoding!r}, which was not requested; try another address")
    too_large = ToolError(f"the page is larger than {limit:,} bytes and was not read; fetch a smaller one")
    length = _get_header(response, "content-length")
    if length.isdecimal() and int(length) > limit:
        raise too_large
    pieces: list[bytes] = []
    size = received = 0
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS) if encoding.endswith("gzip") else None
    for chunk in response.iter_stream():
        received += len(chunk)
        try:
            piece = unpacker.decompress(chunk, limit + 1 - size) if unpacker else chunk
        except zlib.error:
            raise ToolError("the response is not valid gzip data; try another address") from None
        size += len(piece)
        pieces.append(piece)
        if size > limit or received > limit:
            raise too_large
    if unpacker is not None and not unpacker.eof:
        raise ToolError("the gzip data of the response is incomplete; try again, or use another address")
    return b"".join(pieces)


def _decode(body: bytes, content_type: str) -> str:
    named = _CHARSET.search(content_type) or _CHARSET.search(body[:1_024].decode("latin-1"))
    with suppress(UnicodeError, LookupError):
        if named and codecs.lookup(named[1]).name not in _NOT_CHARSETS:
            return body.decode(named[1])
    return body.decode("utf-8", "replace")


def convert_html(html: str, format: PageFormat, seconds: float = MAX_TIMEOUT_S) -> tuple[str, list[str]]:
    """Return HTML in the requested format, and notes. HTML that is nested too deeply for Markdown becomes plain text.

    Raises ToolError if the conversion takes more than ``seconds``, or too much memory.
    """
    if format == "html":
        return html, []
    data = html.encode("utf-8", "surrogatepass")
    result = run_bounded(html_text.__file__, data, format, seconds=seconds, wall_seconds=seconds)
    if not result.values:
        raise ToolError(
            f"the page could not be converted to {format}: {result.stop_reason}. Pass a longer timeout, or format=html"
        )
    text, *notes = result.values[0]
    return text, notes


def is_in_domains(url: str, allowed: Sequence[str], blocked: Sequence[str]) -> bool:
    """Return whether the host of ``url`` is in an allowed domain and in no blocked domain.

    If ``allowed`` is empty, all domains are allowed. A malformed address is accepted only if both lists are empty.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return not (allowed or blocked)
    return (not allowed or _is_below(host, allowed)) and not _is_below(host, blocked)


def _is_below(host: str, domains: Iterable[str]) -> bool:
    plain = (domain.strip().lower().rpartition("://")[2].partition("/")[0].lstrip("*.") for domain in domains)
    return any(domain and (host == domain or host.endswith(f".{domain}")) for domain in plain)


def _create_backend(access: WebAccess, deadline: float) -> NetworkBackend:
    """Return a backend that connects only to checked addresses, and waits until ``deadline`` (`time.monotonic`)."""
    import httpcore2

    def limit_to_remaining(timeout: float | None) -> float:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise httpcore2.ReadTimeout
        return remaining if timeout is None else min(timeout, remaining)

    class Stream(httpcore2.NetworkStream):
        def __init__(self, inner: httpcore2.NetworkStream) -> None:
            self._inner = inner

        def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
            return self._inner.read(max_bytes, limit_to_remaining(timeout))

        def write(self, buffer: bytes, timeout: float | None = None) -> None:
            self._inner.write(buffer, limit_to_remaining(timeout))

        def close(self) -> None:
            self._inner.close()

        def start_tls(
            self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
        ) -> Stream:
            return Stream(self._inner.start_tls(ssl_context, server_hostname, limit_to_remaining(timeout)))

        def get_extra_info(self, info: str) -> Any:
            return self._inner.get_extra_info(info)

    class Backend(httpcore2.NetworkBackend):
        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Any = None,
        ) -> Stream:
            addresses = resolve_checked_addresses(host, port, access, limit_to_remaining(timeout))
            for number, address in enumerate(addresses, start=1):
                try:
                    inner = httpcore2.SyncBackend().connect_tcp(
                        address, port, limit_to_remaining(timeout), local_address, socket_options
                    )
                    return Stream(inner)
                except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                    if number == len(addresses):
                        raise
            raise httpcore2.ConnectError(host)

    return Backend()
