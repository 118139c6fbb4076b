"""The check of built pages in a real browser finds what it says it finds, and nothing in a page that is sound."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from sitetools import in_browser

from tests.explorer.conftest import chromium  # noqa: F401

BODY = "<!doctype html><html><body style='margin: 0; color: #222; background: #fff'>{}</body></html>"


def png(width: int, height: int) -> str:
    """A white image of this size, as an address."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\xff" * width for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


FAULTS = {
    "the page scrolls sideways": "<div style='width: 2000px'>wide</div>",
    "scrolls sideways: ": "<main style='overflow: auto'><div style='width: 2000px'>wide</div></main>",
    "contrast": "<div style='background: #444'><p style='background: #fffc; opacity: 0.5'>pale</p></div>",
    "contrast 1.0": "<svg width='90' height='30'><rect width='90' height='30'/><text y='20'>black</text></svg>",
    "7.5 px in a drawing": "<svg viewBox='0 0 200 60' width='100'><text y='20' font-size='15'>tiny</text></svg>",
    "bent": f"<img src='{png(60, 30)}' width='60' height='60'>",
    "shrunk": f"<img src='{png(60, 30)}' width='30'>",
    "no image": "<img src='nowhere.png' width='30' height='30'>",
    "asks another machine": "<p>text</p><img src='http://127.0.0.1:9/x.png'>",
}
SOUND = (
    "<h1>sound</h1><pre style='overflow: auto'>" + "long " * 90 + "</pre>"
    f"<img src='{png(60, 30)}'><a href='x.html'><img src='{png(60, 30)}' width='20'></a>"
    "<div style='background: #000'><p style='color: #fff'>white on black</p></div>"
    "<svg width='90' height='30'><rect width='90' height='30'/><text y='20' fill='#fff' font-size='12'>a</text></svg>"
    "<p hidden style='color: #fff'>hidden</p>"
)


def found(browser, tmp_path, body):
    page = tmp_path / "page.html"
    page.write_text(BODY.format(body), encoding="utf-8")
    return in_browser.check(browser, [page])


def test_nothing_is_wrong_with_a_sound_page(chromium, tmp_path):  # noqa: F811
    assert found(chromium, tmp_path, SOUND) == {}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_found(chromium, tmp_path, kind):  # noqa: F811
    assert any(name.startswith(kind) for name in found(chromium, tmp_path, FAULTS[kind]))
