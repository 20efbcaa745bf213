"""What HTTP servers really answer: redirects against curl, charsets, codings, repeated secrets, and hostile servers."""

import asyncio
import base64
import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp_resources import ResourceServer, providers
from mcp_resources.testing import Client, ServerError

CASES = int(os.environ.get("MCP_RESOURCES_REDIRECTS", "150"))
"""How many redirects are compared."""
TOKEN = 'hunter2/"canary\\7'
CURL = shutil.which("curl")
Answer = Callable[[bytes, socket.socket], None]


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """A server on loopback that calls `answer` with the head of each request; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                part = peer.recv(65_536)
                if not part:
                    return
                head += part
            answer(head, peer)

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=[peer], daemon=True).start()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def plain(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"connection: close", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def api(url: str, *, pick: str | None = None, token: bool = False, **options: object) -> ResourceServer:
    server = ResourceServer("x")
    endpoint: dict[str, object] = {"url": url}
    if pick is not None:
        endpoint["pick"] = pick
    if token:
        endpoint["headers"] = {"Authorization": {"env": "SHOP_TOKEN"}}
    server.mount(providers.api({"shop": {"endpoints": {"item": endpoint}}}, private_networks=True, **options))
    return server


def read(server: ResourceServer, uri: str = "api:///shop/item") -> tuple[str | bytes, str | None]:
    """The body and the media type of a resource."""

    async def main() -> tuple[str | bytes, str | None]:
        async with Client(server) as client:
            (found,) = await client.read(uri)
            assert isinstance(found.body, str | bytes)
            return found.body, found.mime_type

    return asyncio.run(main())


@pytest.mark.skipif(CURL is None, reason="curl is not installed")
def test_redirects_go_where_curl_goes() -> None:
    """S-20: a reference is resolved as RFC 3986 says: the request that follows it has the target that curl's has."""
    seen: list[bytes] = []
    locations: dict[bytes, bytes] = {}

    def answer(head: bytes, peer: socket.socket) -> None:
        target = head.split(b" ", 2)[1]
        location = locations.get(target)
        if location is not None:
            peer.sendall(plain(b"", b"location: " + location, status=b"302 Found"))
        else:
            seen.append(target)
            peer.sendall(plain(b"{}"))

    chance = random.Random(7)
    parts = ["a", "b.c", ".", "..", "", "%2F", "%41", "é", "x y", "d;e", "f:g", "~", "@", "a=b", "(1)", "日本"]

    with answering(answer) as port:

        def location() -> str:
            path = "/".join(chance.choice(parts) for _ in range(chance.randint(1, 6)))
            kind = chance.choice(["", "", "", "/", "//", "http", "?"])
            text = {
                "//": f"//127.0.0.1:{port}/{path}",
                "http": f"HTTP://127.0.0.1:{port}/{path}",
                "?": f"?x={chance.choice(['1', '../y', 'a/b', '%20', '?'])}",
            }.get(kind, kind + path)
            if chance.random() < 0.3 and kind != "?":
                text += chance.choice(["?y", "?q=1", "?q=../x/./y"])
            return text + chance.choice(["", "", "#f", "#"])

        for number in range(CASES):
            text = location().strip()
            # A first segment with a colon is a scheme, and an empty reference is the same document.
            if (text.startswith(("f:", "//", "#")) and f"//127.0.0.1:{port}" not in text) or not text:
                continue
            start = b"/%d/x/y?z=1" % number
            locations.clear()
            locations[start] = text.encode()
            url = f"http://127.0.0.1:{port}{start.decode()}"
            seen.clear()
            subprocess.run(["curl", "-s", "-L", "-o", os.devnull, url], check=True, timeout=30)
            assert read(api(url, redirects=3))[0] == "{}", text
            by_curl, by_us = seen
            assert by_us.lower() == by_curl.lower(), text


def test_texts_are_decoded() -> None:
    """S-20: a text has its characters whatever its charset is; in one that is unknown it is bytes with its name."""
    served: list[bytes] = []
    word = "検索 é"
    with answering(lambda _, peer: peer.sendall(served[0])) as port:
        url = f"http://127.0.0.1:{port}/"
        for charset in (
            "utf-8",
            "shift_jis",
            "euc-jp",
            "iso-2022-jp",
            "gb18030",
            "utf-16",
            "utf-16le",
            "utf-16be",
            "big5",
        ):
            text = word.removesuffix(" é") if charset in ("shift_jis", "euc-jp", "iso-2022-jp", "big5") else word
            text = "索" if charset == "big5" else text
            for kind in ("text/html", "application/json"):
                body = json.dumps(text, ensure_ascii=False) if kind.endswith("json") else text
                header = f'content-type: {kind}; charset="{charset.upper()}"'.encode()
                served[:] = [plain(body.encode(charset), header)]
                assert read(api(url)) == (body, kind), charset
                if kind.endswith("json"):
                    assert read(api(url, pick=""))[0] == text, charset
        served[:] = [plain(b"\xef\xbb\xbf{}")]
        assert read(api(url)) == ("{}", "application/json")
        served[:] = [plain(b"+AGE-", b"content-type: text/html; charset=utf-7")]
        assert read(api(url)) == (b"+AGE-", "text/html; charset=utf-7")


def test_codings_and_statuses(caplog: pytest.LogCaptureFixture) -> None:
    """S-20: an answer without a coding is taken however that is written; each status has its meaning."""
    served: list[bytes] = []
    with answering(lambda _, peer: peer.sendall(served[0])) as port:
        url = f"http://127.0.0.1:{port}/"
        for coding in (b"Identity", b"", b"identity, identity"):
            served[:] = [plain(b"{}", b"content-encoding: " + coding)]
            assert read(api(url))[0] == "{}", coding
        for coding, said in (
            (b"GZIP", "compressed with gzip"),
            (b"identity, br", "with br"),
            (b"x", "an unknown `Content"),
        ):
            served[:] = [plain(b"{}", b"content-encoding: " + coding)]
            caplog.clear()
            with pytest.raises(ServerError):
                read(api(url))
            assert said in caplog.text
        absent = {404, 410}
        for status in [
            *range(200, 209),
            226,
            *range(300, 309),
            *range(400, 419),
            421,
            422,
            429,
            451,
            499,
            *range(500, 509),
        ]:
            served[:] = [plain(b"", status=b"%d X" % status)]
            if status in (200, 203):
                assert read(api(url))[0] == ""
                continue
            with pytest.raises(ServerError) as caught:
                read(api(url))
            assert caught.value.code == (-32602 if status in absent else -32603), status


@pytest.mark.parametrize(
    "form", ["json", "slash", "escapes", "percent", "entities", "base64", "nested", "utf-16", "type"]
)
def test_a_token_that_is_repeated_is_not_served(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    """S-20: the operator's token is in no answer, in whatever form a server repeats it, also where `pick` leads."""
    monkeypatch.setenv("SHOP_TOKEN", f"Bearer {TOKEN}")
    quoted = json.dumps(TOKEN)
    body, kind = {
        "json": (json.dumps({"data": {TOKEN: 1}}), "application/json"),
        "slash": (json.dumps({"data": TOKEN}).replace("/", "\\/"), "application/json"),
        "escapes": ('{"data": "' + "".join(f"\\u{ord(c):04x}" for c in TOKEN) + '"}', "application/json"),
        "percent": (json.dumps({"data": "https://h/?t=" + quote(TOKEN, safe="")}), "application/json"),
        "entities": (json.dumps({"data": "".join(f"&#{ord(c)};" for c in TOKEN)}), "application/json"),
        "base64": (json.dumps({"data": base64.b64encode(f"x:{TOKEN}".encode()).decode()}), "application/json"),
        "nested": (json.dumps({"data": json.dumps({"a": json.dumps(quoted)})}), "application/json"),
        "utf-16": (json.dumps({"data": TOKEN}), "application/json; charset=utf-16"),
        "type": (json.dumps({"data": 1}), "x/hunter2_canary"),
    }[form]
    if form == "type":
        monkeypatch.setenv("SHOP_TOKEN", "hunter2_canary")
    encoded = body.encode("utf-16" if form == "utf-16" else "utf-8")
    half = len(encoded) // 2

    def answer(_: bytes, peer: socket.socket) -> None:
        parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (encoded[:half], encoded[half:], b""))
        head = f"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        peer.sendall(head.encode() + parts)

    with answering(answer) as port:
        for pick in (None, "", "/data") if form != "type" else (None,):
            caplog.clear()
            with pytest.raises(ServerError) as caught:
                read(api(f"http://127.0.0.1:{port}/", pick=pick, token=True))
            assert "canary" not in str(caught.value)
            error = caplog.text
            assert "repeats the value of the header authorization" in error.lower()
            assert "canary" not in error


def test_hostile_servers(caplog: pytest.LogCaptureFixture) -> None:
    """S-20: heads and bodies without an end, redirects in a circle and slow bytes end in an error, in limited time."""

    def endless(begin: bytes, again: bytes, pause: float = 0.0) -> Answer:
        def answer(_: bytes, peer: socket.socket) -> None:
            peer.sendall(begin)
            while True:
                peer.sendall(again)
                time.sleep(pause)

        return answer

    def circle(head: bytes, peer: socket.socket) -> None:
        peer.sendall(plain(b"", b"location: " + head.split(b" ", 2)[1] + b"/../x", status=b"307 X"))

    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    block = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    for name, answer in (
        ("headers", endless(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n" * 1_000)),
        ("a header", endless(b"HTTP/1.1 200 OK\r\na: ", b"b" * 65_536)),
        ("a body", endless(b"HTTP/1.1 200 OK\r\n\r\n", b"b" * 65_536)),
        ("chunks", endless(chunked, block)),
        ("a size of a chunk", endless(chunked, b"0" * 65_536)),
        ("extensions of chunks", endless(chunked + b"1;", b"x" * 65_536)),
        ("trailers", endless(chunked + b"0\r\n", b"a: b\r\n" * 1_000)),
        ("interim answers", endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)),
        ("slow bytes", endless(chunked, b"1\r\nx\r\n", 0.05)),
        ("a circle", circle),
    ):
        with answering(answer) as port:
            begun = time.monotonic()
            with pytest.raises(ServerError):
                read(api(f"http://127.0.0.1:{port}/", redirects=5, timeout="1s"))
            assert time.monotonic() - begun < 20, name
    assert "panicked" not in caplog.text


def test_ids(tmp_path: Path) -> None:
    """S-20: an id is one segment of the URL; the ids that no URI can name are not found, as the page says."""
    seen: list[bytes] = []

    def answer(head: bytes, peer: socket.socket) -> None:
        seen.append(head.split(b" ", 2)[1])
        peer.sendall(plain(b"{}"))

    with answering(answer) as port:
        server = api(f"http://127.0.0.1:{port}/items/{{id}}")
        for id, target in (
            ("a.b", b"a.b"),
            ("..%2Fx", None),
            ("ab:c", b"ab%3Ac"),
            ("...", b"%2E%2E%2E"),
            ("%C3%A9", b"%C3%A9"),
        ):
            seen.clear()
            if target is None:
                with pytest.raises(ServerError):
                    read(server, f"api:///shop/item/{id}")
            else:
                assert read(server, f"api:///shop/item/{id}")[0] == "{}"
                assert seen == [b"/items/" + target], id
        for id in ("..", "%2E%2E", ".", "a:b"):
            with pytest.raises(ServerError) as caught:
                read(server, f"api:///shop/item/{id}")
            assert caught.value.code == -32602
