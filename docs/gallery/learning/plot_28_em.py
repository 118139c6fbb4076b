"""
Expectation maximization on a network with gaps
===============================================

Where cells are missing the likelihood no longer falls into tables. EM fills the gaps with expected counts and counts
again; Zhu, *Graphical models and kernel methods* ("Parameter estimation"), notes that it finds a local maximum.
OuYang, *Probabilistic machine learning* (section 8.1), shows why it climbs: log p(X | θ) = Q(q, θ) + KL(q ‖ p(Z | X,
θ)), and both steps raise Q. His algorithm draws Z from its posterior, which is Monte Carlo EM. (The bound is Jensen's
inequality, not Cauchy–Schwarz, and Q contains + H(q).)

We watch the trace, draw instead of sum, and see both steps as ascent.
"""

# %%
# A network with gaps: a third of the cells is lost at random, and nobody looked at the sky: "cloudy" has no column at
# all. The objective never falls; four starts climb different slopes, here to the same height.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramgraph as gg

truth = gg.datasets.sprinkler()
rng = np.random.default_rng(0)
full = truth.sample(300, random_state=1)
gaps = full.mask(rng.random(full.shape) < 1 / 3).drop(columns="cloudy")
structure = gg.BayesianNetwork(truth.edges)
learned = structure.fit(gaps, hidden=["cloudy"], random_state=0, tol=1e-6)
print(learned.fit_report)
fig, ax = plt.subplots(layout="constrained")
for seed in range(4):
    trace = structure.fit(gaps, hidden=["cloudy"], random_state=seed, tol=1e-6).fit_report.trace
    ax.semilogx(range(1, len(trace) + 1), trace, "o-", markersize=3, label=f"start {seed}")
ax.set(xlabel="step", ylabel="log likelihood", title="EM climbs")
ax.legend(loc="lower right")

# %%
# A hidden class: three coins are tossed by one of two people, and nobody wrote down by whom. E step: p(z | x) for
# every row. M step: shares, weighted. Q after each half step lies below log p and touches it after every E step.
weights, heads = np.array([0.6, 0.4]), np.array([[0.9, 0.8, 0.7], [0.2, 0.3, 0.1]])
z = rng.choice(2, size=200, p=weights)
X = (rng.random((200, 3)) < heads[z]).astype(float)


def log_joint(pi, mu):  # (n, 2): log p(x, z)
    return np.log(pi) + X @ np.log(mu).T + (1 - X) @ np.log(1 - mu).T


def maximize(q):
    share = q.sum(axis=0)
    return share / len(q), np.clip(q.T @ X / share[:, None], 1e-9, 1 - 1e-9)


def Q(q, theta):
    return float((q * (log_joint(*theta) - np.log(q))).sum())


theta = np.array([0.5, 0.5]), np.array([[0.6, 0.5, 0.5], [0.4, 0.5, 0.5]])
q = np.full((200, 2), 0.5)
half_steps, log_p = [], []
for _ in range(20):
    for step in "EM":
        if step == "E":
            q = np.exp(log_joint(*theta) - np.logaddexp.reduce(log_joint(*theta), axis=1, keepdims=True))
        else:
            theta = maximize(q)
        half_steps.append(Q(q, theta))
        log_p.append(float(np.logaddexp.reduce(log_joint(*theta), axis=1).sum()))
fig, ax = plt.subplots(layout="constrained")
ax.plot(log_p, color="#4c78a8", label="log p(X | θ)")
ax.plot(half_steps, "o", color="#b03a2e", markersize=4, label="Q(q, θ) after E, M, E, M, …")
ax.set(
    xlabel="half step", ylabel="log likelihood and its bound", title="Coordinate ascent: the gap is KL(q ‖ p(z | x))"
)
ax.legend(loc="lower right")

# %%
# Monte Carlo EM: draw z a few times for each row instead of summing. More draws, less noise; the exact E step is the
# limit.
fig, ax = plt.subplots(layout="constrained")
final = {}
for M in (1, 10, 100):
    theta_m, trace = (np.array([0.5, 0.5]), np.array([[0.6, 0.5, 0.5], [0.4, 0.5, 0.5]])), []
    for _ in range(40):
        p = 1 / (1 + np.exp(log_joint(*theta_m)[:, 0] - log_joint(*theta_m)[:, 1]))
        share = rng.binomial(M, p) / M
        theta_m = maximize(np.column_stack([1 - share, share]))
        trace.append(np.logaddexp.reduce(log_joint(*theta_m), axis=1).sum())
    final[M] = np.array(trace[20:])
    ax.plot(trace, label=f"{M} draw{'s' if M > 1 else ''} a row")
ax.axhline(log_p[-1], color="#52606d", linestyle=":", label="EM")
ax.set(xlabel="step", ylabel="log likelihood", title="Monte Carlo EM", ylim=(log_p[-1] - 15, log_p[-1] + 3))
ax.legend(loc="lower right")

# %%
# The numbers of the text
# -----------------------
assert np.all(np.diff(learned.fit_report.trace) > -1e-8)
assert np.all(np.diff(half_steps) > -1e-9) and np.all(np.array(half_steps) <= np.array(log_p) + 1e-9)
assert np.allclose(half_steps[0::2], log_p[0::2])  # tight after every E step: (8.1.11)
kl = (q * (np.log(q) - log_joint(*theta) + np.logaddexp.reduce(log_joint(*theta), axis=1, keepdims=True))).sum()
assert abs(log_p[-1] - (half_steps[-1] + kl)) < 1e-9  # (8.1.9)
assert final[100].std() < final[1].std()
coins = pd.DataFrame(np.where(X == 1, "yes", "no"), columns=["a", "b", "c"])
net = gg.BayesianNetwork("z -> a; z -> b; z -> c").fit(coins, hidden=["z"], restarts=3, tol=1e-8, random_state=0)
assert net.fit_report.log_likelihood >= log_p[-1] - 0.5  # the library's EM on the same data, run to the end
