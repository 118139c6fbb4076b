"""Time budgets and Ctrl-C: what there is so far is the answer, and it says so."""

from __future__ import annotations

import _thread
from time import sleep

import numpy as np
import pytest

from gramgraph.engines import anytime as until
from gramgraph.engines.anytime import anytime
from gramgraph.models.builders import ising_grid


@pytest.fixture(scope="module")
def restless():
    """Couplings of both signs so strong that messages do not settle."""
    rng = np.random.default_rng(1)
    couplings = tuple(rng.choice([-1.5, 1.5], size=s) for s in ((40, 39), (39, 40)))
    return ising_grid(40, 40, coupling=couplings, field=0.3 * rng.normal(size=(40, 40)))


@pytest.mark.parametrize("engine", ["bp", "mean_field", "structured_mean_field", "trw", "join_graph"])
def test_a_budget_ends_the_sweeps(restless, engine):
    options = {"n_starts": 10**6} if "mean_field" in engine else {"max_iter": 10**6}
    restless.query("x3_3", engine=engine, budget="1ms", **options)  # loads the compiled loops
    answer = restless.query("x3_3", engine=engine, budget="200ms", tol=0.0, **options)  # else it would take hours
    assert answer.details["stopped"] == "budget"
    assert "mean_field" in engine or not answer.details["converged"]  # the best of many starts may have settled
    assert np.isfinite(answer["x3_3"].probabilities).all() and np.isfinite(answer.log_evidence)


def test_a_number_of_draws_is_no_time(restless):
    assert "stopped" not in restless.query("x3_3", engine="bp", max_iter=3, budget=1).details


def test_control_c_gives_what_there_is(restless, press_ctrl_c, monkeypatch):
    wait = until.wait

    def pressed(futures, timeout):
        press_ctrl_c()
        return wait(futures, timeout)

    monkeypatch.setattr(until, "wait", pressed)
    answer = restless.query("x3_3", engine="bp", max_iter=10**7, tol=0.0)
    assert answer.details["stopped"] == "interrupt"
    assert np.isfinite(answer["x3_3"].probabilities).all()


@pytest.mark.usefixtures("press_ctrl_c")
def test_control_c_from_elsewhere_ends_the_work():
    def works(stop):
        _thread.interrupt_main()
        while not stop[0]:
            sleep(0.001)
        return "so far"

    assert anytime(works, None, 10**9) == ("so far", {"stopped": "interrupt"})


def test_errors_of_the_work_come_through():
    def fails(stop):
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        anytime(fails, 5.0, 10**9)

    def slow(stop):
        while not stop[0]:
            sleep(0.001)
        raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        anytime(slow, 0.01, 10**9)
