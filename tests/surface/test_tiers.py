"""The loops give the same numbers interpreted and compiled, and nobody waits for the compiler without need."""

from __future__ import annotations

import os
import subprocess
import sys
from types import FunctionType

import numpy as np
import pytest

import gramgraph as gg
from gramgraph._numerics import compiling, kept, notice, prices
from gramgraph._numerics.compiling import Door, njit

pytestmark = [pytest.mark.tiers, pytest.mark.skipif(compiling.disabled(), reason="nothing is compiled")]


# ------------------------------------------------------------------------------------------------ the same numbers


def marginals():
    answer = gg.datasets.asia().query(None, {"smoke": "yes"}, engine="junction_tree")
    return np.concatenate([answer[name].probabilities for name in ("lung", "bronc", "xray")])


def best_states():
    return gg.datasets.asia().map_query({"xray": "yes", "dysp": "no"}).assignment


def draws():
    return gg.datasets.asia().sample(200, {"smoke": "yes"}, random_state=3).to_numpy().tolist()


def learned():
    frame = gg.datasets.asia().sample(300, random_state=0)
    return sorted(gg.learn_structure(frame).edges)


def smoothed():
    y = np.cumsum(np.random.default_rng(0).normal(size=30))
    return gg.sequences.KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0).smooth(y).means.ravel()


def hidden_states():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(mean, 1.0, (30, 2)) for mean in (0.0, 6.0, 0.0)])
    model = gg.sequences.GaussianHMM(2, random_state=0).fit(X)
    return np.concatenate([model.means_.ravel(), model.predict(X)])


def gram():
    X = np.random.default_rng(0).normal(size=(20, 3))
    return np.concatenate([k.gram(X).ravel() for k in (gg.kernels.RBF(1.3), gg.kernels.Matern(1.3, nu=1.5))])


def machine():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return gg.estimators.SVC(tol=1e-6).fit(X, y).decision_function(X)


CLOSE = {hidden_states: 1e-9, machine: 1e-4}


@pytest.mark.parametrize(
    "capability",
    [marginals, best_states, draws, learned, smoothed, hidden_states, gram, machine],
    ids=lambda f: f.__name__,
)
def test_tiers_agree(capability):
    with compiling.tier("plain"):
        plain = capability()
    with compiling.tier("compiled"):
        compiled = capability()
    if isinstance(plain, np.ndarray):
        np.testing.assert_allclose(
            plain, compiled, rtol=CLOSE.get(capability, 1e-12), atol=CLOSE.get(capability, 1e-13)
        )
    else:
        assert plain == compiled


# --------------------------------------------------------------------------------------------------- the decision


def add_up(x, out):
    for i in range(x.size):
        out[0] += twice(x[i])


@njit
def twice(x):
    return 2.0 * x


def test_small_calls_are_interpreted_and_large_ones_compiled():
    door = njit(add_up)
    out = np.zeros(1)
    with compiling.tier("auto"):
        door(np.ones(4), out)
        assert out[0] == 8.0 and door._dispatcher is None
        assert isinstance(door.plain.__globals__["twice"], FunctionType)  # no door inside
        assert not door.pays(0.0) and door.pays(prices.price_of(door.group) + 1.0)


def test_a_compiled_function_takes_the_place_of_its_door(monkeypatch):
    module = sys.modules[__name__]
    door = module.twice
    assert isinstance(door, Door)
    with compiling.tier("compiled"):
        assert twice(3.0) == 6.0
        assert module.twice is door.compiled and module.twice.signatures
    assert module.twice is door  # another tier may be wanted now
    with compiling.tier("plain"):
        assert twice(3.0) == 6.0 and module.twice is door


@njit(pauses=True)
def pause(x):
    return x + 1.0


@njit(restarts=True)
def endless(x, rounds_left):
    for _ in range(rounds_left):
        x = pause(x)
    return x


def test_an_interpreted_call_that_lasts_too_long_starts_again_compiled(monkeypatch):
    monkeypatch.setattr(prices, "price_of", lambda group: 0.01)
    with compiling.tier("auto"):
        assert endless(0.0, 200_000) == 200_000.0
        assert endless.signatures  # the dispatcher stands there now


def test_a_count_of_rounds_counts():
    @njit
    def loop(x, max_iter):
        return max_iter

    assert loop._steps((np.ones(100), 5), {}) == pytest.approx(500)
    assert loop._steps((np.ones(100), 10**9), {}) == pytest.approx(1000)


# ------------------------------------------------------------------------------------------------- without Numba


@pytest.mark.parametrize(
    "question",
    ['gg.datasets.asia().query("lung", {"smoke": "yes"})', 'gg.datasets.asia().map_query({"smoke": "yes"})'],
)
def test_a_first_answer_needs_no_compiler(tmp_path, question):
    heavy = "[m for m in ('numba', 'pandas', 'sklearn') if m in sys.modules]"
    code = f"import sys, gramgraph as gg; {question}; print({heavy})"
    env = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path),
        "GRAMGRAPH_TIER": "auto",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_whoever_waits_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(notice, "_SAID", [])
    monkeypatch.setattr(notice, "_watched", lambda: False)
    with caplog.at_level("INFO", logger="gramgraph"):
        notice.say(7.0)
        notice.say(7.0)
    assert len(caplog.records) == 1
    assert "about 7 seconds" in caplog.text and "gramgraph warmup" in caplog.text


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files of Windows have no such owners")
def test_files_that_others_can_write_are_not_read(tmp_path):
    file = tmp_path / "index.nbi"
    file.write_bytes(b"code")
    file.chmod(0o644)
    assert kept.read_trusted(file) == b"code"
    file.chmod(0o666)
    assert kept.read_trusted(file) is None
    if os.geteuid() == 0:
        file.chmod(0o644)
        os.chown(file, 65534, 65534)
        assert kept.read_trusted(file) is None
