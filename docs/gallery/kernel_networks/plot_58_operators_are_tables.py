r"""
Operators are tables when the kernel only says "same or not"
============================================================

Parikh, Kernel graphical models, writes the rules of probability as products of matrices, so that they can be carried
over to operators: the sum rule :math:`P[X] = P[X|Y]\,P[Y]`, the chain rule :math:`P[X, Y] = P[X|Y]\,P[\emptyset Y]`
with the probabilities on the diagonal, and asks what :math:`P[B|A]\,P[\emptyset A]\,P[C|A]^T` is: P[B, C], but *only
if* B and C are independent given A.

We see both sides of this question, once with a common cause alone and once with an arrow from B to C; and that
covariance and conditional operators with the delta kernel are these tables to the last digit. (The last term of the
text's chain rule is P[Y|X] P[X].)
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.embeddings import ConditionalOperator, CovarianceOperator, MeanEmbedding, diagonal_tensor, sum_rule
from gramgraph.kernels import Delta

fork = gg.BayesianNetwork("A[2] -> B[3]; A -> C[2]").random_tables(1)
arrow = gg.BayesianNetwork("A[2] -> B[3]; A -> C[2]; B -> C").random_tables(4)

# %%
# The product and the joint table, for both graphs.
figure, axes = plt.subplots(2, 2, figsize=(7, 4.6), layout="constrained")
gaps = []
for row, net, name in zip(axes, (fork, arrow), ("B ← A → C", "B ← A → C ← B"), strict=True):
    P_A = net.query("A")["A"].probabilities
    given = {x: np.column_stack([net.query(x, {"A": a})[x].probabilities for a in net.states("A")]) for x in "BC"}
    product = given["B"] @ diagonal_tensor(P_A) @ given["C"].T
    joint = net.query(("B", "C"))[("B", "C")].probabilities
    gaps.append(np.abs(product - joint).max())
    for ax, table, title in zip(row, (product, joint), ("P[B|A] P[∅A] P[C|A]ᵀ", "P[B, C]"), strict=True):
        ax.imshow(table, cmap="Blues", vmin=0, vmax=1.4)
        for i, j in np.ndindex(table.shape):
            ax.text(j, i, f"{table[i, j]:.3f}", ha="center", va="center")
        ax.set(title=f"{name}:  {title}", xlabel="C", ylabel="B", xticks=[0, 1], yticks=[0, 1, 2])
        ax.title.set_fontsize(9)

# %%
# From 600 cases: operators with the delta kernel, and the same tables by counting.
cases = fork.sample(600, random_state=0)
a, b, c = (cases[name].to_numpy() for name in "ABC")
C_BA = CovarianceOperator(b, a, kernel_x=Delta(), kernel_y=Delta())
C_BgA = ConditionalOperator(a, b, kernel_x=Delta(), kernel_y=Delta(), reg=0.0)
C_CgA = ConditionalOperator(a, c, kernel_x=Delta(), kernel_y=Delta(), reg=0.0)
C_AA = CovarianceOperator(a, kernel_x=Delta())
C_BC = C_BgA @ C_AA @ C_CgA.T
states = {x: list(fork.states(x)) for x in "ABC"}
print("joint of B and C by operators\n", C_BC(states["B"], states["C"]).round(3))

# %%
# The numbers of the text
# -----------------------
table = np.array([[np.mean((a == s) & (b == t)) for s in states["A"]] for t in states["B"]])
assert gaps[0] < 1e-12 and gaps[1] > 0.01
assert np.allclose(C_BA(states["B"], states["A"]), table, atol=1e-12)
assert np.allclose(C_BgA(states["B"], states["A"]), table / table.sum(axis=0), atol=1e-10)
mu_A = MeanEmbedding.of(a, kernel=Delta())
assert np.allclose(sum_rule(C_BgA, mu_A)(states["B"]), table.sum(axis=1), atol=1e-10)  # sum rule
assert np.allclose((C_BgA @ C_AA)(states["B"], states["A"]), table, atol=1e-10)  # chain rule
by_tables = (table / table.sum(axis=0)) @ np.diag(table.sum(axis=0)) @ C_CgA(states["C"], states["A"]).T
assert np.allclose(C_BC(states["B"], states["C"]), by_tables, atol=1e-10)
