"""The server of the page: the standard library's, for this machine alone.

What a page on another site could try is refused: the Host header must be one of ours (a name that was rebound to this
machine is not), every question needs the token of this start in a header (the page takes it from the fragment of its
address, which browsers send nowhere), bodies are JSON of a bounded size, and no path or file name comes from outside.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import select
import socket
import tempfile
import threading
from collections.abc import Callable
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from gramgraph._numerics.aside import Aside
from gramgraph.exceptions import GramGraphError, OptionError
from gramgraph.explorer.files import served_files
from gramgraph.explorer.panels import PANELS
from gramgraph.explorer.waiting import Abandoned, go_on

log = logging.getLogger("gramgraph.explorer")

#: Largest body of a question, and of an upload, in bytes.
BODY, UPLOAD = 5_000_000, 200_000_000
#: Connections that are served at once, and seconds that a silent one is waited for.
CONNECTIONS, SILENCE = 64, 20.0

#: Addresses that mean all of this machine's.
EVERYWHERE = ("0.0.0.0", "::")

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class _Refused(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "gramgraph", ""
    timeout = SILENCE
    # Header and body leave in one packet, at once: Nagle's algorithm would cost 40 ms per answer.
    wbufsize = 65536
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: nothing of a case shall stand in a log."""

    def do_GET(self) -> None:
        """A file of the page."""
        self._answer(self._file)

    def do_POST(self) -> None:
        """A question, or an upload."""
        self._answer(self._post)

    def _answer(self, action: Any) -> None:
        try:
            self._check_host()
            status, kind, body = action()
        except _Refused as refused:
            self.close_connection = True
            status, kind, body = refused.status, TYPES["html"], refused.text.encode()
        except (ConnectionError, TimeoutError):
            self.close_connection = True
            return
        except Exception:  # a fault of ours: the page hears of it, the server goes on
            log.exception("a question failed")
            status, kind, body = 500, "application/json", b'{"error": "This question failed. The log has the details."}'
        with contextlib.suppress(ConnectionError, TimeoutError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in HEADERS.items():
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
            self.wfile.flush()

    do_HEAD = do_GET

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in self._own_hosts():
            raise _Refused(421, "This server answers at its own address only.")
        if self.headers.get("Transfer-Encoding"):
            raise _Refused(411, "A length is needed.")

    def _own_hosts(self) -> frozenset[str]:
        """Names under which this server is reached; one that listens everywhere, the address of this connection."""
        if not self.server.everywhere:
            return self.server.hosts
        name, port = self.connection.getsockname()[:2]
        name = name.removeprefix("::ffff:")  # an older address on a newer socket
        return self.server.hosts | {f"[{name}]:{port}" if ":" in name else f"{name}:{port}"}

    def _file(self) -> tuple[int, str, bytes]:
        name = self.path.partition("?")[0].removeprefix("/") or "index.html"
        if name not in self.server.files:
            raise _Refused(404, "There is nothing here.")
        return 200, TYPES[name.rpartition(".")[2]], self.server.files[name]

    def _post(self) -> tuple[int, str, bytes]:
        origin = self.headers.get("Origin")
        if origin is not None and origin.lower().partition("://")[2] not in self._own_hosts():
            raise _Refused(403, "This page comes from elsewhere.")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise _Refused(403, "This page comes from elsewhere.")
        given = self.headers.get("X-Gramgraph-Token", "")
        if not compare_digest(given.encode("utf-8", "replace"), self.server.token.encode()):
            raise _Refused(403, "The token is missing or wrong. Open the address that was printed at the start.")
        if self.path == "/upload":
            return self._upload()
        if not self.path.startswith("/api/"):
            raise _Refused(404, "There is nothing here.")
        body = self._json()
        try:
            found = self._found(self.path.removeprefix("/api/"), body)
        except KeyError:
            raise _Refused(404, "There is no such question.") from None
        except Abandoned:
            raise ConnectionAbortedError from None
        found["n"] = body.get("n")
        if self.path == "/api/model":
            found["max_upload"] = self.server.max_upload  # the page does not begin to send more
        return 200, "application/json", dumps(found)

    def _found(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Beliefs at once; panels one after the other, so that those of older clicks do not hold up the next click."""
        if name not in PANELS:
            return self.server.view.request(name, body)  # type: ignore[no-any-return]
        with self.server.panels:
            go_on(self._waiting)
            return self.server.view.request(name, body, self._waiting)  # type: ignore[no-any-return]

    def _waiting(self) -> bool:
        """Whether the page waits for this answer: a question that it gives up closes its connection."""
        try:
            if not select.select([self.connection], [], [], 0.0)[0]:
                return True
            return bool(self.connection.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):
            return False

    def _length(self, most: int) -> int:
        text = self.headers.get("Content-Length", "")
        if not text.isascii() or not text.isdigit():
            raise _Refused(411, "A length is needed.")
        if len(text) > 20 or int(text) > most:
            raise _Refused(413, f"At most {most:,} bytes are taken.")
        return int(text)

    def _json(self) -> dict[str, Any]:
        if self.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
            raise _Refused(415, "Questions are JSON.")
        data = self.rfile.read(self._length(BODY))
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            raise _Refused(400, "This is not JSON.") from None
        if not isinstance(body, dict):
            raise _Refused(400, "A question is a JSON object.")
        return body

    def _upload(self) -> tuple[int, str, bytes]:
        """A table or a model as it stands in a file, kept for this process alone and deleted afterwards."""
        if self.headers.get("Content-Type", "").lower() != "application/octet-stream":
            raise _Refused(415, "An upload is a stream of bytes.")
        receive = getattr(self.server.view, "upload", None)
        if receive is None:
            raise _Refused(404, "Nothing can be uploaded here.")
        left = self._length(self.server.max_upload)
        name = self.headers.get("X-File-Name", "")
        with tempfile.TemporaryDirectory(prefix="gramgraph-") as folder:  # readable for its owner alone
            path = Path(folder) / "upload"
            with path.open("wb") as file:
                while left:
                    block = self.rfile.read(min(left, 1 << 20))
                    if not block:
                        raise _Refused(400, "The upload ended early.")
                    file.write(block)
                    left -= len(block)
            try:
                found = receive(path, name)
            except GramGraphError as error:
                found = {"error": str(error)}
        return 200, "application/json", dumps(found)


def dumps(value: Any) -> bytes:
    """JSON; numbers that it does not have become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], view: Any, token: str, max_upload: int) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)
        self.view, self.token, self.max_upload = view, token, max_upload
        self.files = served_files()
        port = self.server_address[1]
        own = f"[{address[0]}]" if ":" in address[0] else address[0]
        self.everywhere = address[0] in EVERYWHERE
        near = is_loopback(address[0]) or self.everywhere
        names = {own.lower()} | ({"localhost"} if near else set())
        if self.everywhere:
            names = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}
        self.hosts = frozenset(f"{name}:{port}" for name in names)
        self.panels = threading.Lock()
        self.aside = Aside()  # a click does not wait for the compiler
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._links: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread per connection, as long as there are places; others are closed at once."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        self._links.add(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        """Close the port, and the connections that are still open."""
        super().server_close()
        self.aside.close()
        for link in list(self._links):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, then free its place."""
        try:
            with self.aside.here():
                super().process_request_thread(request, client_address)
        finally:
            self._links.discard(request)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is no fault of ours."""
        log.debug("a connection ended early", exc_info=True)


def _prepared(ready: Callable[[], None], aside: Aside) -> None:
    """Work done ahead; what goes wrong in it is told when the page asks."""
    try:
        with aside.here():
            ready()
    except Exception:
        log.debug("the first scene failed", exc_info=True)


def shown_host(host: str) -> str:
    """The host as it stands in an address; for a server that listens everywhere the name of this machine."""
    if host in EVERYWHERE:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether an address belongs to this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """A running explorer: `url` has the token in its fragment; `close()` ends it. Also a context manager.

    An address that others can reach needs a `token` of at least 16 characters, given on purpose.
    """

    def __init__(
        self,
        view: Any,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        token: str | None = None,
        max_upload: int = UPLOAD,
    ) -> None:
        if not is_loopback(host):
            if token is None or len(token) < 16:
                raise OptionError(
                    f"{host} can be reached by other machines: give a token of at least 16 characters to allow that "
                    "(--host and --token on the command line)"
                )
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
            raise OptionError(f"port is a number from 0 (any free one) to 65535, not {port!r}")
        self.view = view
        self.token = token or secrets.token_urlsafe(24)
        self._listener = _Listener((host, port), view, self.token, max_upload)
        self.port = int(self._listener.server_address[1])
        self.url = f"http://{shown_host(host)}:{self.port}/#token={self.token}"
        self._thread = threading.Thread(target=self._listener.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()
        ready = getattr(view, "prepare", None)
        if ready is not None:
            threading.Thread(target=_prepared, args=(ready, self._listener.aside), daemon=True).start()

    @property
    def is_open(self) -> bool:
        """Whether it answers still."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Until the server is closed, or Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """End the server; open pages keep their last answer."""
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join(5.0)
        end = getattr(self.view, "close", None)
        if end is not None:
            end()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Explorer at {self.url}"
