"""From an empty folder of machine code: no click waits for the compiler, and what is compiled aside is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gramgraph as gg
from gramgraph._numerics import compiling

pytestmark = [pytest.mark.tiers, pytest.mark.skipif(compiling.disabled(), reason="nothing is compiled")]

SESSION = """
import http.client, json, sys
import gramgraph as gg
from gramgraph import explorer
from gramgraph._numerics import aside, compiling

asked = []
aside.Aside._begin = lambda self, job: asked.append(job[0].__name__)  # nothing runs beside this
for group in ("tree.runner", "tree.structure", "tree.program", "tree.triangulation", "tree.clique_forests"):
    compiling._STATE.note(group, 100.0)  # as after many clicks

def ask(name, **body):
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Content-Type": "application/json", "X-Gramgraph-Token": server.token}
    link.request("POST", "/api/" + name, json.dumps(body), headers)
    return json.loads(link.getresponse().read())

net = gg.datasets.asia()
with explorer.serve(net) as server:
    ask("model", case=[])
    for state in ("yes", "no"):
        case = [{"name": "smoke", "type": "see", "value": state}, {"name": "xray", "type": "see", "value": "yes"}]
        found = ask("ask", case=case)
        for panel in ("explain", "next", "story"):
            assert "error" not in ask(panel, case=case, target="lung", state="yes")
assert asked, "nothing was worth compiling: the test shows nothing"
assert "numba" not in sys.modules, "something was compiled here"
assert found["beliefs"]["lung"] == net.query("lung", {"smoke": "no", "xray": "yes"})["lung"].probabilities.tolist()
"""

LOOP = """
import sys, time
import numpy as np
from gramgraph._numerics import compiling
from gramgraph._numerics.aside import Aside
from gramgraph._numerics.svm.exponents import exp_times as loop

compiling._STATE.note(loop.group, 2.9)
out = np.empty(2)
given, aside = (np.zeros((2, 3)), np.arange(3.0), out), Aside()
with aside.here():
    loop(*given)
    wanted, end = out.copy(), time.monotonic() + 100
    while not loop.in_memory():
        assert time.monotonic() < end
        time.sleep(0.05)
        loop(*given)
    out[:] = 0.0
    loop(*given)
aside.close()
assert out.tolist() == wanted.tolist() == [3.0, 3.0]
assert sum(loop.stats.cache_hits.values()) == 1 and not loop.stats.cache_misses, loop.stats
"""


def run(source, folder):
    env = os.environ | {"PYTHONPATH": str(Path(gg.__file__).parent.parent), "NUMBA_CACHE_DIR": str(folder)}
    env.pop("GRAMGRAPH_TIER", None)
    done = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_no_click_waits_for_the_compiler(tmp_path):
    run(SESSION, tmp_path)


@pytest.mark.slow
def test_what_is_compiled_aside_is_loaded_not_compiled_again(tmp_path):
    run(LOOP, tmp_path)
