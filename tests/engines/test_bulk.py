"""Large grids: factors in arrays, their lowering, and max-product with one number a message."""

import pickle

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.compile.lower import lower
from gramgraph.engines.best import max_product
from gramgraph.exceptions import ModelError
from gramgraph.factors import SharedTables, TableFactor
from gramgraph.variables import binary, discrete


def grids(rng):
    along, down = rng.normal(size=(3, 3)), rng.normal(size=(2, 4))
    yield gg.models.ising_grid(3, 4, (along, down), rng.normal(size=(3, 4)) * (rng.random((3, 4)) < 0.7))
    yield gg.models.potts_grid(3, 4, 3, (along, down), 9.0 * rng.normal(size=(3, 4, 3)))
    yield gg.models.potts_grid(2, 3, 1, 0.5, 1.0)
    W = np.triu(rng.normal(size=(6, 6)) * (rng.random((6, 6)) < 0.5), 1)
    yield gg.models.boltzmann_machine(W + W.T, rng.normal(size=6))
    yield gg.models.ising_grid(1, 1)


@pytest.mark.parametrize("seed", range(3))
def test_factors_in_arrays_are_the_factors(seed):
    for net in grids(np.random.default_rng(seed)):
        same = gg.MarkovNetwork.from_parts(net.vars, net.factors(), name=net.name)
        a, b = lower(net), lower(same)
        for name in ("sizes", "scope_ptr", "scope_idx", "value_ptr", "values", "owner"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
        assert a.log_scale == pytest.approx(b.log_scale, abs=1e-9)
        assert net == same and net.graph == same.graph and repr(net) == repr(same)
        assert pickle.loads(pickle.dumps(net)) == net
        at = net.sample(1, random_state=seed).iloc[0].to_dict()
        assert net.joint_log_prob(at) == pytest.approx(same.joint_log_prob(at))
        assert net.log_evidence() == pytest.approx(same.log_evidence(), rel=1e-12)


def test_lowering_scales_tables_and_drops_what_does_not_vary():
    a, b, one = binary("a"), binary("b"), discrete("one", 1)
    table = np.array([[1e8, 2e8], [3e8, 0.0]])
    factors = [
        TableFactor((a, one), np.array([[0.5], [2.0]])),
        TableFactor((one,), np.array([7.0])),
        TableFactor((a, b), table),
        TableFactor((), np.array(3.0), 0.25),
        TableFactor((b, a), 1e-9 * table, -1.0),
    ]
    low = lower(gg.MarkovNetwork.from_parts([a, one, b], factors))
    assert low.n_factors == 3 and low.scope_idx.tolist() == [0, 0, 2, 2, 0] and low.scope_ptr.tolist() == [0, 1, 3, 5]
    assert low.values.max() <= 2.0 and low.values[2:6].tolist() == pytest.approx([1 / 3, 2 / 3, 1.0, 0.0])
    whole = np.log(7.0) + np.log(3e8) + np.log(3.0) + 0.25 + np.log(0.3) - 1.0
    assert low.log_scale == pytest.approx(whole - (0.0 if low.values[6:].max() == 1.0 else np.log(0.3)))
    zero = lower(gg.MarkovNetwork.from_parts([a], [TableFactor((), np.array(0.0)), TableFactor((a,), np.ones(2))]))
    assert zero.log_scale == -np.inf
    assert lower(gg.MarkovNetwork.from_parts([a], [])).n_factors == 0
    with pytest.raises(ModelError, match="is over b, which is not a variable"):
        lower(gg.MarkovNetwork.from_parts([a], factors[:3]))


def test_shared_tables_keep_scales_and_zeros():
    logs = np.array([[800.0, 801.0], [-np.inf, -900.0], [-np.inf, -np.inf]])
    part = SharedTables.from_logs(np.array([[0], [1], [1]]), logs, np.array([0, 1, 2]))
    made = part.factors([binary("a"), binary("b")])
    assert np.array_equal(np.stack([f.log_values() for f in made]), logs)
    assert [f.scope[0].name for f in made] == ["a", "b", "b"]


@pytest.mark.parametrize("seed", range(8))
def test_spins_take_the_best_assignment_of_a_tree(seed, monkeypatch):
    monkeypatch.setattr(max_product, "BOTH_CELLS", 0)
    rng = np.random.default_rng(seed)
    n = 14
    W = np.zeros((n, n))
    for v in rng.permutation(n)[1:]:  # a forest: every variable but one hangs on an earlier one, or on none
        if v and rng.random() < 0.9:
            u = int(rng.integers(v))
            W[v, u] = W[u, v] = 2 * rng.normal()
    net = gg.models.boltzmann_machine(W, rng.normal(size=n), spins=True)
    seen = {"x3": "+1"} if seed % 2 else {}
    likely = {"x5": [0.2, 0.9]} if seed % 3 else None
    found = net.map_query(seen, virtual_evidence=likely, engine="bp")
    best = net.map_query(seen, virtual_evidence=likely, engine="junction_tree")
    assert found.assignment == best.assignment and found.log_prob == pytest.approx(best.log_prob)


@pytest.mark.parametrize("seed", range(4))
def test_spins_come_near_the_best_assignment_of_a_grid(seed, monkeypatch):
    """Within 1 % of the value of a cut, which is the best; two factors over one pair count together."""
    rng = np.random.default_rng(seed)
    noisy = rng.random((24, 24)) < 0.4
    noisy[6:18, 6:18] = rng.random((12, 12)) < 0.85
    net = gg.models.denoising_grid(noisy, coupling=0.45, flip_probability=0.2)
    pairs = [TableFactor((net.var("x3_3"), net.var("x3_4")), np.array([[2.0, 1.0], [0.5, 2.5]]))]
    net = gg.MarkovNetwork.from_parts(net.vars, [*net.factors(), *pairs])
    monkeypatch.setattr(max_product, "BOTH_CELLS", 0)
    found = net.map_query(engine="bp")
    best = net.map_query(engine="graph_cut")
    assert found.log_prob == pytest.approx(net.joint_log_prob(found.assignment))
    assert best.log_prob + 1e-6 >= found.log_prob >= 0.99 * best.log_prob


def test_zeros_and_more_states_take_the_general_way(monkeypatch):
    monkeypatch.setattr(max_product, "BOTH_CELLS", 0)
    chain = gg.MarkovNetwork({("a", "b"): [[1.0, 0.0], [0.0, 3.0]], ("b", "c"): [[1.0, 2.0], [2.0, 1.0]]})
    assert chain.map_query(engine="bp").assignment == {"a": "yes", "b": "yes", "c": "no"}
    potts = gg.models.potts_grid(1, 4, 3, 1.0, [0.0, 0.1, 0.0])
    assert set(potts.map_query(engine="bp").assignment.values()) == {"1"}
