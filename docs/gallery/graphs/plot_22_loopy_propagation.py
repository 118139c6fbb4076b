"""
Loopy propagation, and bounds around log Z
==========================================

On a graph with loops messages are passed until they stand still, if they do. Zhu, *Graphical models and kernel
methods* ("Loopy belief propagation"), says that it works in many cases; Triebel, *Machine learning for computer
vision* (section 4a), that there is no guarantee and that messages have to be scheduled. The variational view, which
Zhu announces, tells what is computed: a stationary point of Bethe's free energy; mean field bounds log Z from below
(as in OuYang, *Probabilistic machine learning*, chapter 8), reweighted trees from above.

We see schedules, damping, a failure, and the three approximations around the exact value.
"""

# %%
# A 4 × 4 grid of spins with random couplings, mild enough for propagation.
import warnings

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(10)
J, field = (rng.normal(size=(4, 3)), rng.normal(size=(3, 4))), rng.normal(size=(4, 4)) * 0.3


def grid(strength):
    return gg.models.ising_grid(4, 4, coupling=(strength * J[0], strength * J[1]), field=field)


mild, exact = grid(0.5), grid(0.5).query()
runs = {s: mild.query(engine="bp", schedule=s, tol=1e-9) for s in ("flooding", "sequential", "residual")}
fig, ax = plt.subplots(layout="constrained")
gg.plot.plot_convergence(runs, ax=ax)
ax.set_title("The largest change of a message, by schedule")

# %%
# The beliefs are close to the exact marginals.
loopy = runs["sequential"]
names = mild.variables
fig, ax = plt.subplots(layout="constrained", figsize=(4.8, 4.8))
ax.plot([0, 1], [0, 1], color="#9aa5b1")
ax.plot([exact[v].prob("+1") for v in names], [loopy[v].prob("+1") for v in names], "o", color="#4c78a8")
ax.set(xlabel="exact marginal", ylabel="loopy belief", title="p(+1) at 16 nodes", aspect="equal")

# %%
# Stronger couplings: messages begin to run in circles. Damping brings them to rest, but not always to a good place.
strong = grid(1.4)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gg.ConvergenceWarning)  # that is the point
    hard = {
        f"damping {damping}": strong.query(engine="bp", schedule="flooding", damping=damping, max_iter=80)
        for damping in (0.0, 0.5, 0.8)
    }
fig, ax = plt.subplots(layout="constrained")
gg.plot.plot_convergence(hard, ax=ax)
ax.set_title("Couplings 1.4: with and without damping")

# %%
# log Z against the strength of the couplings: Bethe near the truth while couplings are weak, mean field below,
# reweighted trees above it.
strengths = np.linspace(0, 1.4, 6)
gaps = {"Bethe (bp)": [], "mean field": [], "reweighted trees": []}
engines = ("bp", "mean_field", "trw")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", gg.ConvergenceWarning)
    for s in strengths:
        net = grid(s)
        truth = net.log_evidence()
        for label, engine in zip(gaps, engines, strict=True):
            gaps[label].append(net.query(engine=engine, max_iter=40, random_state=0).log_evidence - truth)
fig, ax = plt.subplots(layout="constrained")
for (label, values), style in zip(gaps.items(), ("o-", "v-", "^-"), strict=True):
    ax.plot(strengths, values, style, label=label)
ax.axhline(0, color="#52606d", linewidth=1)
ax.set(xlabel="strength of the couplings", ylabel="log Z found − log Z", title="Bounds around log Z")
ax.legend(loc="best")

# %%
# The numbers of the text
# -----------------------
assert all(run.details["converged"] for run in runs.values())
assert max(abs(exact[v].prob("+1") - loopy[v].prob("+1")) for v in names) < 0.05
assert hard["damping 0.0"].details["residuals"][-1] > 0.1 > 0.02 > hard["damping 0.5"].details["residuals"][-1]
assert max(gaps["mean field"]) < 1e-9  # a lower bound
assert min(gaps["reweighted trees"]) > -1e-9  # an upper bound
tree = gg.models.ising_grid(1, 8, coupling=0.7, field=0.2)  # without loops propagation is exact
assert abs(tree.query(engine="bp").log_evidence - tree.log_evidence()) < 1e-9
