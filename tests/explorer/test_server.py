"""What the server refuses, and that nobody can make others wait."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import gramgraph as gg
from gramgraph import explorer
from gramgraph.explorer.files import bundle, served_files
from gramgraph.explorer.server import BODY
from gramgraph.explorer.waiting import Abandoned


@pytest.fixture(scope="module")
def running():
    with explorer.serve(gg.datasets.asia(), title="asia") as server:
        yield server


def ask(server, path="/api/ask", body=None, method="POST", raw=None, **headers):
    given = {"Host": urlsplit(server.url).netloc, "Content-Type": "application/json", "X-Gramgraph-Token": server.token}
    for key, value in headers.items():
        given[key.replace("_", "-")] = value
    given = {key: value for key, value in given.items() if value is not None}
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    data = raw if raw is not None else json.dumps(body if body is not None else {}).encode()
    link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for key, value in ({"Content-Length": str(len(data))} | given).items():
        link.putheader(key, value)
    link.endheaders(data if method == "POST" else None)
    answer = link.getresponse()
    text = answer.read()
    link.close()
    return answer, text


def test_a_question_is_answered_with_strict_headers(running):
    answer, text = ask(running, body={"case": [{"name": "smoke", "type": "see", "value": "yes"}], "n": 7})
    assert answer.status == 200
    found = json.loads(text)
    assert found["n"] == 7
    assert found["beliefs"]["lung"][1] == gg.datasets.asia().query("lung", {"smoke": "yes"})["lung"].prob("yes")
    policy = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Cache-Control") == "no-store"
    assert answer.getheader("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_host_is_refused(running, host, method):
    answer, _ = ask(running, path="/" if method == "GET" else "/api/ask", method=method, Host=host)
    assert answer.status == 421


def test_localhost_is_ours(running):
    assert ask(running, Host=f"localhost:{running.port}")[0].status == 200


@pytest.mark.parametrize("token", [None, "", "wrong", "ä"])
def test_a_missing_or_wrong_token_is_refused(running, token):
    given = None if token is None else token.encode("utf-8").decode("latin-1")
    answer, text = ask(running, X_Gramgraph_Token=given)
    assert answer.status == 403
    assert running.token.encode() not in text


def test_the_token_travels_in_the_fragment_alone(running):
    parts = urlsplit(running.url)
    assert parts.hostname == "127.0.0.1" and not parts.query
    assert parts.fragment == f"token={running.token}" and len(running.token) >= 32
    assert ask(running, path=f"/api/ask?token={running.token}", X_Gramgraph_Token=None)[0].status == 403


def test_other_sites_are_refused(running):
    assert ask(running, Origin="http://evil.example")[0].status == 403
    assert ask(running, Origin="null")[0].status == 403
    assert ask(running, Sec_Fetch_Site="cross-site")[0].status == 403
    assert ask(running, Origin=f"http://127.0.0.1:{running.port}")[0].status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_only_json_is_taken(running, kind):
    assert ask(running, Content_Type=kind)[0].status == 415


def test_bodies_are_bounded_and_need_a_length(running):
    assert ask(running, Content_Length=str(BODY + 1))[0].status == 413
    assert ask(running, Content_Length="9" * 5000)[0].status == 413
    assert ask(running, path="/upload", Content_Type="application/octet-stream")[0].status == 404
    for length in ("", "-1", "1e3", "٣"):
        assert ask(running, Content_Length=length.encode("utf-8").decode("latin-1"))[0].status in (400, 411)
    assert ask(running, Transfer_Encoding="chunked")[0].status == 411


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff\xfe", b"nul", b"[" * 100_000])
def test_broken_bodies_are_named(running, raw):
    assert ask(running, raw=raw)[0].status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/../server.py",
        "/..%2fserver.py",
        "/page/../../case.py",
        "//etc/passwd",
        "/%2e%2e/x",
        "/index.html/",
        "/style.css%00",
        "/x",
    ],
)
def test_no_path_leads_outside(running, path):
    assert ask(running, path=path, method="GET")[0].status == 404
    assert ask(running, path="/api/" + path)[0].status == 404
    assert ask(running, path="/api/__class__")[0].status == 404


@pytest.mark.parametrize(
    "case",
    [
        "x",
        [1],
        [{"name": "smoke"}],
        [{"name": "nobody", "type": "see", "value": "yes"}],
        [{"name": "smoke", "type": "see", "value": "maybe"}],
        [{"name": "smoke", "type": "see", "value": 1e999}],
        [{"name": "smoke", "type": "like", "w": [1, "x"]}],
        [{"name": "smoke", "type": "like", "w": [0, 0]}],
        [{"name": ["smoke"], "type": "see", "value": "yes"}],
        [{"name": "smoke", "type": "see", "value": "yes"}, {"name": "smoke", "type": "do", "value": "no"}],
    ],
)
def test_broken_cases_come_back_as_a_sentence(running, case):
    answer, text = ask(running, body={"case": case})
    assert answer.status == 200
    assert json.loads(text)["error"]


def test_slow_clients_do_not_block_others(running):
    waiting = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(20)]
    for link in waiting:
        link.sendall(b"POST /api/ask HTTP/1.1\r\nHost: ")
    assert ask(running)[0].status == 200
    for link in waiting:
        link.close()


def test_more_connections_than_places_are_closed_and_places_come_back(running):
    many = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(90)]
    for link in many:
        link.close()
    for _ in range(50):
        try:
            assert ask(running)[0].status == 200
            return
        except (ConnectionError, http.client.HTTPException):
            time.sleep(0.1)
    raise AssertionError("no place came free")


def test_others_cannot_reach_it_unless_that_is_wanted():
    with pytest.raises(gg.OptionError, match="token"):
        explorer.serve(gg.datasets.asia(), host="0.0.0.0")
    with pytest.raises(gg.OptionError, match="token"):
        explorer.serve(gg.datasets.asia(), host="0.0.0.0", token="short")
    with pytest.raises(gg.OptionError, match="port"):
        explorer.serve(gg.datasets.asia(), port=70000)


def test_a_server_for_others_answers_at_its_own_addresses_alone():
    with explorer.serve(gg.datasets.asia(), host="0.0.0.0", token="a token that is long enough") as server:
        assert "0.0.0.0" not in server.url  # nobody can open that address
        assert ask(server, Host=f"127.0.0.1:{server.port}")[0].status == 200
        assert ask(server, Host=f"localhost:{server.port}")[0].status == 200
        assert ask(server, Host=urlsplit(server.url).netloc)[0].status == 200
        for host in (
            "evil.example",
            f"evil.example:{server.port}",
            f"0.0.0.0:{server.port}",
            f"127.0.0.2:{server.port}",
        ):
            assert ask(server, Host=host)[0].status == 421


def test_uploads_are_bounded_and_leave_nothing_behind(tmp_path, monkeypatch):
    from gramgraph.explorer.workbench import Workbench

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with explorer.serve(Workbench(gg.datasets.asia()), max_upload=1000) as server:
        stream = {"path": "/upload", "Content_Type": "application/octet-stream"}
        assert ask(server, raw=b"x" * 1001, **stream)[0].status == 413
        assert ask(server, raw=b"a,b\n1,2\n", path="/upload", X_File_Name="t.csv")[0].status == 415
        assert ask(server, raw=b"a", X_Gramgraph_Token="", **stream)[0].status == 403
        found = json.loads(ask(server, raw=b"a,b\n1,2\n2,1\n", X_File_Name="t.csv", **stream)[1])
        assert found["rows"] == 2
        for name in ("../../evil.py", "x.pickle", ""):
            assert "error" in json.loads(ask(server, raw=b"x", X_File_Name=name, **stream)[1])
        assert "error" in json.loads(ask(server, raw=b"not a network", X_File_Name="x.bif", **stream)[1])
    assert list(tmp_path.iterdir()) == []


def test_a_closed_server_is_gone():
    server = explorer.serve(gg.datasets.asia())
    port = server.port
    server.close()
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


class Slow:
    """A view whose first panel takes until it is let go, or until nobody waits for it."""

    kind, actions = "slow", {}

    def __init__(self):
        self.begun, self.left, self.go = [], [], threading.Event()

    def request(self, name, body, waiting=lambda: True):
        self.begun.append((name, body.get("id")))
        while name == "story" and not self.go.wait(0.01):
            if not waiting():
                self.left.append(body["id"])
                raise Abandoned
        return {}


def begin(server, body):
    """Send a question of the panels, and do not read its answer."""
    data = json.dumps(body).encode()
    link = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = f"POST /api/story HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nX-Gramgraph-Token: {server.token}\r\n"
    link.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    return link


def until(true):
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_panel_work_of_older_clicks_stops_and_does_not_begin():
    view = Slow()
    with explorer.serve(view) as server:
        first = begin(server, {"id": 1})
        until(lambda: view.begun)
        second = begin(server, {"id": 2})  # waits for its turn
        second.close()
        assert ask(server, body={"id": 3})[0].status == 200  # beliefs do not wait for panels
        first.close()
        until(lambda: view.left == [1])
        view.go.set()
        assert ask(server, path="/api/story", body={"id": 4})[0].status == 200
    assert view.begun == [("story", 1), ("ask", 3), ("story", 4)]


def test_the_page_is_small_and_fetches_nothing():
    files = served_files()
    assert sum(map(len, files.values())) <= 300_000
    for name, data in files.items():
        text = data.decode()
        assert "innerHTML" not in text and "eval(" not in text, name
        links = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in links and "https://" not in links, name


def test_the_bundle_defines_no_name_twice():
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", bundle("infer.js", "still.js"), re.MULTILINE)
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)
    assert not re.search(r"^(import|export) ", bundle("infer.js", "still.js"), re.MULTILINE)


@pytest.mark.usefixtures("press_ctrl_c")  # a child takes the signal also where tests ignore it
def test_a_script_that_opened_the_page_stays_until_ctrl_c():
    source = "import gramgraph as gg; gg.datasets.asia().explore(); print('end of the script', flush=True)"
    place = str(Path(gg.__file__).parent.parent)
    env = os.environ | {"PYTHONPATH": place, "BROWSER": f"{sys.executable} -c pass %s"}
    running = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    assert running.stdout.readline() == "end of the script\n"
    assert running.stderr.readline().startswith("The explorer is at http://127.0.0.1:")
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.usefixtures("press_ctrl_c")  # a child takes the signal also where tests ignore it
def test_ctrl_c_ends_it_cleanly():
    env = os.environ | {"PYTHONPATH": str(Path(gg.__file__).parent.parent)}
    command = [sys.executable, "-m", "gramgraph", "explore", "dataset:asia", "--no-browser"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    line = running.stdout.readline()
    assert line.startswith("http://127.0.0.1:") and "#token=" in line
    running.send_signal(signal.SIGINT)
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert "Traceback" not in errors
