"""The shipped networks: their numbers by brute force, and the ways to get them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import gramgraph as gg


def joint(net: gg.BayesianNetwork) -> dict[tuple[str, ...], float]:
    """p at every assignment."""
    out = {}
    for at in np.ndindex(*(var.size for var in net.vars)):
        x = {var.name: var.states[i] for var, i in zip(net.vars, at, strict=True)}
        out[tuple(x.values())] = float(np.exp(net.joint_log_prob(x)))
    return out


def probability(net: gg.BayesianNetwork, event: dict[str, str], given: dict[str, str]) -> float:
    """p(event | given) as a ratio of sums over the full joint."""

    def mass(part: dict[str, str]) -> float:
        wanted = {net.index(name): state for name, state in part.items()}
        return sum(p for x, p in joint(net).items() if all(x[i] == state for i, state in wanted.items()))

    return mass({**given, **event}) / mass(given)


@pytest.mark.parametrize("name", gg.datasets.list())
def test_every_dataset_is_a_sound_value(name: str) -> None:
    net = gg.datasets.load(name)
    assert net.check_model()
    assert net == gg.datasets.load(name)
    assert getattr(gg.datasets, name).__doc__
    assert "Source" in getattr(gg.datasets, name).__doc__
    small = gg.datasets.load("casino", n_rolls=2) if name == "casino" else net
    assert sum(joint(small).values()) == pytest.approx(1.0)


def test_list_and_load() -> None:
    assert set(gg.datasets.list()) >= {
        "asia", "burglary", "alarm_radio", "sprinkler", "fuel_gauge", "door", "envelopes", "card_trick", "casino",
        "two_coins", "hmm_small",
    }  # fmt: skip
    assert set(dir(gg.datasets)) >= {*gg.datasets.list(), "list", "load"}
    with pytest.raises(gg.VariableError, match="Did you mean 'asia'"):
        gg.datasets.load("aisa")
    with pytest.raises(AttributeError, match="no attribute"):
        gg.datasets.nothing  # noqa: B018
    assert len(gg.datasets.load("casino", n_rolls=4)) == 8
    with pytest.raises(gg.ModelError, match="collider"):
        gg.datasets.two_coins("D")


@pytest.mark.parametrize(
    "name, event, given, expected, tolerance",
    [
        ("envelopes", {"envelope": "1"}, {"ball": "black"}, 1 / 3, 1e-12),
        ("card_trick", {"card": "WW"}, {"face": "white"}, 2 / 3, 1e-12),
        ("door", {"door": "open"}, {"z1": "yes"}, 2 / 3, 1e-12),
        ("door", {"door": "open"}, {"z1": "yes", "z2": "yes"}, 5 / 8, 1e-12),
        ("door", {"after": "open"}, {"z1": "yes", "z2": "yes"}, 1 / 16, 1e-12),
        ("alarm_radio", {"B": "yes"}, {"A": "yes"}, 0.495, 5e-4),
        ("alarm_radio", {"B": "yes"}, {"A": "yes", "R": "yes"}, 0.08, 5e-3),
        ("fuel_gauge", {"gauge": "empty"}, {}, 0.315, 1e-12),
        ("fuel_gauge", {"gauge": "empty"}, {"fuel": "empty"}, 0.81, 1e-12),
        ("fuel_gauge", {"fuel": "empty"}, {"gauge": "empty"}, 0.257, 5e-4),
        ("fuel_gauge", {"fuel": "empty"}, {"gauge": "empty", "battery": "flat"}, 0.111, 5e-4),
        ("hmm_small", {"z1": "1"}, {"x1": "R", "x2": "G"}, 0.7, 1e-12),
        ("hmm_small", {"z2": "1"}, {"x1": "R", "x2": "G"}, 0.2, 1e-12),
        ("two_coins", {"A": "yes"}, {"C": "yes"}, 0.5, 1e-12),
        ("two_coins", {"A": "yes"}, {"C": "yes", "B": "yes"}, 1.0, 1e-12),
        # Classic answers of the two textbook networks.
        ("asia", {"dysp": "yes"}, {}, 0.4359706, 1e-7),
        ("asia", {"lung": "yes"}, {"xray": "yes", "smoke": "yes"}, 0.6460, 5e-5),
        ("burglary", {"burglary": "yes"}, {"john": "yes", "mary": "yes"}, 0.2841718, 1e-6),
        ("sprinkler", {"sprinkler": "yes"}, {"wet": "yes"}, 0.2781 / 0.6471, 1e-4),
        ("sprinkler", {"rain": "yes"}, {"wet": "yes"}, 0.4581 / 0.6471, 1e-4),
    ],
)
def test_printed_numbers(
    name: str, event: dict[str, str], given: dict[str, str], expected: float, tolerance: float
) -> None:
    assert probability(gg.datasets.load(name), event, given) == pytest.approx(expected, abs=tolerance)


def test_burglary_joint() -> None:
    x = {"burglary": "yes", "earthquake": "no", "alarm": "yes", "john": "yes", "mary": "no"}
    p = np.exp(gg.datasets.burglary().joint_log_prob(x))
    assert p == pytest.approx(0.001 * (1 - 0.002) * 0.94 * 0.9 * (1 - 0.7))
    assert round(p, 6) == 0.000253


def test_alarm_table_of_the_text() -> None:
    table = gg.datasets.alarm_radio().cpt["A"].values[..., 1]
    assert np.allclose(table, [[0.001, 0.01099], [0.99001, 0.9901099]], atol=1e-9)


def test_hmm_messages_of_the_text() -> None:
    """f1(z1) = p(z1) p(x1=R | z1) and f2(z1, z2) = p(z2 | z1) p(x2=G | z2): the messages by hand."""
    net = gg.datasets.hmm_small()
    f1 = net.cpt["z1"].values * net.cpt["x1"].values[:, 0]
    f2 = net.cpt["z2"].values * net.cpt["x2"].values[:, 1]
    assert f1.tolist() == [1 / 4, 1 / 8]
    assert (f1 @ f2).tolist() == [1 / 32, 1 / 8]
    assert f2.sum(axis=1).tolist() == [7 / 16, 3 / 8]


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, gramgraph as gg; gg.datasets.asia(); gg.datasets.casino(3).is_dconnected('die1', 'die3');"
        "print([m for m in ('numba', 'pandas', 'scipy', 'networkx', 'matplotlib', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_path())
    assert done.stdout.strip() == "[]"


def _path() -> dict[str, str]:
    import os
    from pathlib import Path

    return {**os.environ, "PYTHONPATH": str(Path(gg.__file__).parents[1])}
