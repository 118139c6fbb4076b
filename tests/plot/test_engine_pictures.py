"""Pictures of runs, chains and grids, and what answers say in words."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.exceptions import OptionError, VariableError

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _no_window():
    import matplotlib as mpl

    mpl.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_residuals_of_several_schedules():
    from gramgraph.plot import plot_convergence

    net = gg.datasets.asia()
    runs = {s: net.query(None, {"xray": "yes"}, engine="bp", schedule=s) for s in ("flooding", "sequential")}
    ax = plot_convergence(runs)
    assert [len(line.get_xdata()) for line in ax.lines] == [run.details["sweeps"] for run in runs.values()]
    assert ax.get_yscale() == "log"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["flooding", "sequential"]


def test_a_run_that_did_not_settle_ends_with_a_dot_and_bounds_have_their_axis():
    from gramgraph.plot import plot_convergence

    net = gg.datasets.asia()
    ax = plot_convergence(net.query(None, {"xray": "yes"}, engine="bp", max_iter=1))
    assert len(ax.lines) == 2
    ax = plot_convergence(net.query(None, engine="mean_field"))
    assert ax.get_yscale() == "linear" and "bound" in ax.get_ylabel()


def test_answers_without_sweeps_are_refused():
    from gramgraph.plot import plot_convergence

    with pytest.raises(OptionError, match="no record of sweeps"):
        plot_convergence(gg.datasets.asia().query("lung"))


def test_images_side_by_side_and_costs_above_bounds():
    import numpy as np

    from gramgraph.plot import plot_bound, plot_images

    found = gg.label_grid(np.random.default_rng(0).random((6, 5, 4)), 0.3)
    row = plot_images({"noisy": np.eye(6), "labels": found.labels})
    assert [ax.get_title() for ax in row] == ["noisy", "labels"]
    assert {ax.images[0].get_clim() for ax in row} == {(0.0, float(max(found.labels.max(), 1)))}
    ax = plot_bound(found)
    cost, bound = (line.get_ydata() for line in ax.lines)
    assert (cost >= bound - 1e-9).all()
    with pytest.raises(OptionError, match="shape"):
        plot_images(np.zeros(3))
    with pytest.raises(OptionError, match="label_grid"):
        plot_bound(3)


def test_chains_show_whether_they_agree():
    from gramgraph.plot import plot_chains

    net = gg.models.ising_grid(3, 3, coupling=0.3, field=0.2)
    answer = net.query(["x1_1", ("x0_0", "x0_1")], engine="gibbs", keep=True, budget=800, random_state=0)
    ax = plot_chains(answer)
    ends = [line.get_ydata()[-1] for line in ax.lines[:4]]
    assert np.mean(ends) == pytest.approx(answer["x1_1"].prob("+1")) and ax.get_ylabel() == "share of x1_1 = +1"
    assert "4 chains" in ax.get_title()
    with pytest.raises(VariableError, match="x1_1"):
        plot_chains(answer, "x9_9")
    with pytest.raises(OptionError, match="keep=True"):
        plot_chains(net.query("x1_1", engine="gibbs", budget=400, random_state=0))


def test_sampled_answers_say_how_far_they_can_be_trusted():
    net = gg.models.ising_grid(3, 3, coupling=0.3)
    text = repr(net.query("x1_1", engine="gibbs", budget=800, random_state=0))
    assert text.startswith("gibbs, approximate: standard errors up to 0.0") and "R-hat up to 1" in text
    asia = gg.datasets.asia()
    text = repr(asia.query("lung", {"smoke": "yes"}, engine="rejection", budget=800, random_state=0))
    assert text.startswith("log p(evidence) = -0.") and "standard errors up to 0.0" in text and "R-hat" not in text
    assert "standard" not in repr(asia.query("lung", engine="bp"))


def test_long_assignments_are_cut_when_shown():
    best = gg.models.ising_grid(30, 30, coupling=0.1, field=1.0).map_query(engine="bp")
    for text in (repr(best), str(best), best._repr_html_()):
        assert "… 700 more" in text and "x29_29" not in text
    assert len(best.assignment) == 900
