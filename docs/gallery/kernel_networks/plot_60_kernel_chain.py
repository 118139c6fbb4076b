r"""
A chain of operators: from A to D without a table
=================================================

Parikh, Kernel graphical models, takes the chain A → B → C → D: for tables :math:`P(A, D) = P(\emptyset A)\,P(B|A)^T
P(C|B)^T P(D|C)^T`, and with kernels :math:`C_{AD} = C_{AA}\,C_{B|A}^T\,C_{C|B}^T\,C_{D|C}^T` (the text swaps the
indices of the last two). Evidence enters as columns of kernel values, and every operator becomes a finite matrix:
:math:`D_A = K_{AA}/N`, :math:`D_B = (K_{AA} + \lambda N I)^{-1} K_{BB}`, …

We see the operator written as in the text, evaluated on a grid, beside the density of pairs (A, D) that were really
drawn.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.embeddings import ConditionalOperator, CovarianceOperator, reparameterize

rng = np.random.default_rng(0)
n, lam, k = 300, 1e-3, gg.kernels.RBF(0.5)


def draw(n):
    a = rng.normal(size=n)
    b = np.sin(2 * a) + 0.2 * rng.normal(size=n)
    c = b**2 + 0.2 * rng.normal(size=n)
    return a, b, c, c + 0.3 * rng.normal(size=n)


A, B, C, D = draw(n)

# %%
# The operators, and their product. Names are checked where operators meet.
C_AA = CovarianceOperator(A, A, kernel_x=k, kernel_y=k, names=("A", "A"))
C_BgA = ConditionalOperator(A, B, kernel_x=k, kernel_y=k, reg=lam, names=("A", "B"))
C_CgB = ConditionalOperator(B, C, kernel_x=k, kernel_y=k, reg=lam, names=("B", "C"))
C_DgC = ConditionalOperator(C, D, kernel_x=k, kernel_y=k, reg=lam, names=("C", "D"))
C_AD = C_AA @ C_BgA.T @ C_CgB.T @ C_DgC.T

# %%
# Evaluated on a grid, it is like a kernel density of (A, D), though no pair (A, D) was used to make it.
a, d = np.linspace(-2.5, 2.5, 60), np.linspace(-1, 2.2, 50)
many = draw(20000)
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
left.contourf(a, d, C_AD(a, d).T, levels=12, cmap="Blues")
left.set(title="φ(a)ᵀ C_AD φ(d)", xlabel="a", ylabel="d")
truth = np.array([[np.mean(np.exp(-((many[0] - s) ** 2 + (many[3] - t) ** 2) / 0.5)) for s in a[::3]] for t in d[::3]])
right.contourf(a[::3], d[::3], truth, levels=12, cmap="Blues")
right.set(title="from 20,000 pairs (A, D)", xlabel="a")

# %%
# The finite form: four matrices of size N, and a column of kernel values at each end.
matrices = reparameterize(C_AA, C_BgA.T, C_CgB.T, C_DgC.T)
print([M.shape for M in matrices])

# %%
# The numbers of the text
# -----------------------
# The product of the matrices, the formulas of D_A and D_B, and the same chain with delta kernels as tables.
ends = k.gram([[0.4]], A[:, None]), k.gram(D[:, None], [[0.2]])
by_matrices = (ends[0] @ np.linalg.multi_dot(matrices) @ ends[1])[0, 0]
assert abs(by_matrices - C_AD(0.4, 0.2)) < 1e-9
K = {name: k.gram(v[:, None]) for name, v in zip("ABC", (A, B, C), strict=True)}
ridge = {name: np.linalg.inv(G + lam * n * np.eye(n)) for name, G in K.items()}
text = ends[0] / n @ K["A"] @ ridge["A"] @ K["B"] @ ridge["B"] @ K["C"] @ ridge["C"] @ ends[1]
assert abs(text[0, 0] - C_AD(0.4, 0.2)) < 1e-9
assert np.allclose(matrices[0], K["A"] / n, atol=1e-12)
estimate, exact = C_AD(a[::3], d[::3]).T, truth
assert np.corrcoef(estimate.ravel(), exact.ravel())[0, 1] > 0.98
net = gg.BayesianNetwork("A[3] -> B[3] -> C[2] -> D[2]").random_tables(0)
cases = net.sample(800, random_state=0)
chain = CovarianceOperator(cases["A"].to_numpy(), kernel_x=gg.kernels.Delta())
for s, t in ("AB", "BC", "CD"):
    chain = (
        chain
        @ ConditionalOperator(
            cases[s].to_numpy(), cases[t].to_numpy(), kernel_x=gg.kernels.Delta(), kernel_y=gg.kernels.Delta(), reg=0.0
        ).T
    )
fitted = net.fit(cases)
table = fitted.query(("A", "D"))[("A", "D")].probabilities
assert np.allclose(chain(list(net.states("A")), list(net.states("D"))), table, atol=1e-9)
