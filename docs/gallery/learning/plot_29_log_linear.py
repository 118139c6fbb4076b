"""
Learning undirected models
==========================

p(x) = exp(Σ w_i f_i(x)) / Z couples all weights through Z. Its gradient is simple, observed minus expected features,
but the expectation needs inference: Zhu, *Graphical models and kernel methods* ("Parameter estimation"). Triebel,
*Machine learning for computer vision* (section 4a, "CRF training"), replaces the likelihood by the pseudo-likelihood,
a product of conditionals given the neighbors. Zhu also notes that adding features always raises the likelihood, so
that feature selection needs a penalty.

We compare three ways to learn one model, and follow the weights along an L1 path.
"""

# %%
# A 3 × 3 grid of spins with known couplings and fields, and 500 samples.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(0)
J = (rng.normal(size=(3, 2)) * 0.5, rng.normal(size=(2, 3)) * 0.5)
truth = gg.models.ising_grid(3, 3, coupling=J, field=0.2)
frame = truth.sample(500, random_state=0)
true_J = gg.models.ising_parameters(truth)[0]
edges = np.triu(true_J) != 0

# %%
# The exact gradient needs all marginals at every step, pseudo-likelihood none, contrastive divergence a few sweeps of
# Gibbs sampling from the data.
methods = {
    "exact gradient": {"method": "exact"},
    "pseudo-likelihood": {"method": "pseudo_likelihood"},
    "contrastive divergence": {"method": "contrastive_divergence", "chains": 40, "max_iter": 100},
}
fits = {label: truth.fit(frame, random_state=0, **options) for label, options in methods.items()}
fig, ax = plt.subplots(layout="constrained")
ax.plot([-1.2, 1.2], [-1.2, 1.2], color="#9aa5b1")
for (label, net), marker in zip(fits.items(), "osx", strict=True):
    ax.plot(true_J[edges], gg.models.ising_parameters(net)[0][edges], marker, label=label)
ax.set(xlabel="true coupling", ylabel="learned coupling", title="Twelve couplings from 500 rows")
ax.legend(loc="upper left")

# %%
# At the maximum of the likelihood the model expects what the data show. Weights of rows are divided by Z.
scores = {label: net.log_likelihood(frame).mean() for label, net in fits.items()}
pair = ("x0_0", "x0_1")
shown = float((frame[list(pair)] == "+1").all(axis=1).mean())
for label, net in fits.items():
    print(f"{label:24s} p(+1, +1) = {net.query(pair)[pair].prob('+1', '+1'):.4f} (data: {shown:.4f}), "
          f"log likelihood a row {scores[label]:.4f}")  # fmt: skip

# %%
# Feature selection: all 36 pairs compete, 12 of them are real. The likelihood grows with every feature that comes in;
# EBIC says where to stop.
names = truth.variables
every = {(a, b): np.ones((2, 2)) for i, a in enumerate(names) for b in names[i + 1 :]}
complete = gg.MarkovNetwork(every, states=dict.fromkeys(names, ("-1", "+1")))
path = gg.learn.feature_path(complete, frame, method="pseudo_likelihood", n_penalties=12)
real = {"·".join(edge) for edge in truth.edges} | {"·".join(edge[::-1]) for edge in truth.edges}
fig, ax = plt.subplots(layout="constrained")
for k, name in enumerate(path.names):
    if "·" in name:
        good = name in real
        ax.semilogx(
            path.penalties, path.weights[:, k], color="#4c78a8" if good else "#b03a2e", linestyle="-" if good else ":"
        )
ax.plot([], [], color="#4c78a8", label="an edge of the grid")
ax.plot([], [], color="#b03a2e", linestyle=":", label="not an edge")
ax.axvline(path.penalties[path.best], color="#52606d", label="chosen by EBIC")
ax.invert_xaxis()
ax.set(xlabel="L1 penalty", ylabel="coupling", title="Couplings come in one by one")
ax.legend(loc="upper left", bbox_to_anchor=(0, -0.12), ncols=3)
chosen = {name for name in path.selected if "·" in name}
print(f"chosen: {len(chosen)} pairs, {len(chosen & real)} of the 12 real ones")

# %%
# The numbers of the text
# -----------------------
exact = fits["exact gradient"]
for a, b in truth.edges:  # observed = expected
    found = exact.query((a, b))[a, b].prob("+1", "+1")
    assert abs(found - (frame[[a, b]] == "+1").all(axis=1).mean()) < 1e-4
assert scores["exact gradient"] == max(scores.values())
for net in fits.values():
    assert np.corrcoef(true_J[edges], gg.models.ising_parameters(net)[0][edges])[0, 1] > 0.95
assert len(chosen - real) <= 1 and len(chosen & real) >= 7
