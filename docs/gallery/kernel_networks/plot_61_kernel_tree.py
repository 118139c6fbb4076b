r"""
A tree of operators, with third-order ones inside
=================================================

Parikh, Kernel graphical models (supplement: kernel belief propagation on trees): a leaf holds the matrix P[X_s |
X_π], an inner node the third-order tensor :math:`P[\emptyset X_s \mid X_\pi]` with the copies of X_s on its diagonal,
the root a diagonal matrix. Messages are :math:`m_s = P[\emptyset X_s | X_\pi] \bar\times_2 m_r \bar\times_1 m_\ell`,
and at the root the evidence comes out. With kernels, :math:`C_{ss|\pi} = C_{ss\pi} C_{\pi\pi}^{-1}` takes the place
of the tensor.

We see the tree, a message as a function of its receiver, and p(evidence) at the root, by tensors, by operators and by
the network.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.embeddings import OperatorTree, diagonal_tensor, partly_diagonal_tensor
from gramgraph.kernels import RBF, Delta

net = gg.BayesianNetwork("r[2] -> s[3]; r -> w[2]; s -> u[2]; s -> v[2]").random_tables(3)
gg.plot.plot_network(net)

# %%
# Tables as tensors: messages from the leaves u, v, w to the root r.


def table(child, parent):
    """Columns are states of the parent."""
    return np.column_stack([net.query(child, {parent: s})[child].probabilities for s in net.states(parent)])


seen = {"u": 1, "v": 0, "w": 1}
m_u, m_v = (table(x, "s")[seen[x]] for x in "uv")
inner = partly_diagonal_tensor(table("s", "r"))  # (s, s, r)
m_s = np.einsum("ijk,i,j->k", inner, m_u, m_v)
m_w = table("w", "r")[seen["w"]]
root = diagonal_tensor(net.query("r")["r"].probabilities)
by_tensors = m_s @ root @ m_w
exact = np.exp(net.log_evidence({x: net.states(x)[i] for x, i in seen.items()}))
print(f"p(evidence): tensors {by_tensors:.12f}, network {exact:.12f}")

# %%
# The same tree from samples with delta kernels, where it is the network with counted tables.
cases = net.sample(3000, random_state=0)
codes = {x: cases[x].astype(str).map({s: i for i, s in enumerate(net.states(x))}).to_numpy() for x in net.variables}
parents = {"s": "r", "w": "r", "u": "s", "v": "s"}
pairs = {(p, c): (codes[p], codes[c]) for c, p in parents.items()}
counted = OperatorTree(parents, {"r": codes["r"], **pairs}, kernels=dict.fromkeys("rswuv", Delta()), reg=0.0)
fitted = np.exp(net.fit(cases).log_evidence({x: net.states(x)[i] for x, i in seen.items()}))

# %%
# And with numbers: r drives s and w, s drives u and v. The message from s to r, given u and v, as a function of r.
rng = np.random.default_rng(0)


def drawn(n):
    r = rng.normal(size=n)
    s, w = np.sin(2 * r) + 0.3 * rng.normal(size=n), r**2 / 2 + 0.3 * rng.normal(size=n)
    return {"r": r, "s": s, "w": w, "u": s + 0.3 * rng.normal(size=n), "v": -s + 0.3 * rng.normal(size=n)}


data, many, k = drawn(400), drawn(200000), RBF(0.5)
samples = {"r": data["r"], **{(p, c): (data[p], data[c]) for c, p in parents.items()}}
tree = OperatorTree(parents, samples, kernels=dict.fromkeys("rswuv", k), reg=1e-3)
evidence = {"u": 0.8, "v": -0.9, "w": 0.3}
grid = np.linspace(-2.5, 2.5, 120)
message = tree.message("s", evidence)(grid)
weight = {x: np.exp(-((many[x] - evidence[x]) ** 2) / 0.5) for x in "uvw"}
bins = np.digitize(many["r"], np.linspace(-2.55, 2.55, 52))
truth = [np.mean((weight["u"] * weight["v"])[bins == b]) for b in range(1, 52)]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(np.linspace(-2.5, 2.5, 51), truth, color="#1a7f37", label="E[k(U, u) k(V, v) | r], 200,000 draws")
ax.plot(grid, message, "--", color="#b3261e", label="message of the operators, 400 draws")
ax.set(title="What u = 0.8 and v = −0.9 tell about r", xlabel="r", ylabel="m(r)", ylim=(-0.1, 0.95))
ax.legend(loc="upper center")

# %%
# The numbers of the text
# -----------------------
assert abs(by_tensors - exact) < 1e-12
assert abs(counted.evidence(seen) - fitted) < 1e-9
at_root, by_draws = tree.evidence(evidence), np.mean(weight["u"] * weight["v"] * weight["w"])
print(f"at the root: operators {at_root:.4f}, draws {by_draws:.4f}")
assert abs(at_root / by_draws - 1) < 0.15
