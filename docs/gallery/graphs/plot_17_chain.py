"""
A chain, and messages along it
==============================

A chain of M variables with K states needs K − 1 + (M − 1) K (K − 1) numbers, not K^M − 1, and its marginals follow
from one forward and one backward pass of messages in O(M K²), not K^M. Triebel, *Machine learning for computer
vision* (section 4, "Inference on a chain"), and OuYang, *Probabilistic machine learning* (sections 7.1.3 and 7.4.1),
derive both. (For a fully connected network OuYang has N^K − 1; it is K^N − 1. In (7.4.11) the message on the right is
μ_β.)

We count, pass messages by hand, and compare with the library's answer.
"""

# %%
# Parameters: linear in the length for a chain.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

lengths = np.arange(1, 13)
fig, ax = plt.subplots(layout="constrained")
for K, color in ((2, "#4c78a8"), (5, "#b03a2e")):
    chain = [gg.models.markov_chain(int(M), K).n_parameters for M in lengths]
    ax.semilogy(lengths, chain, color=color, label=f"chain, K = {K}")
    ax.semilogy(lengths, float(K) ** lengths - 1, color=color, linestyle=":", label=f"joint, K = {K}")
ax.set(xlabel="number of variables M", ylabel="free parameters", title="A chain against a joint table")
ax.legend(loc="upper left")

# %%
# A chain of 30 places with 12 states each; the first and the last are observed. Forward messages carry what the left
# end says, backward messages what the right end says.
K, N = 12, 30
steps = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
T = np.exp(-1.5 * steps)
T /= T.sum(axis=1, keepdims=True)
net = gg.models.markov_chain(N, K, initial=np.full(K, 1 / K), transition=T)
seen = {"x0": "1", f"x{N - 1}": "9"}

alpha, beta = np.zeros((N, K)), np.zeros((N, K))
alpha[0, 1], beta[N - 1, 9] = 1 / K, 1.0
for n in range(1, N):
    alpha[n] = alpha[n - 1] @ T
for n in range(N - 2, -1, -1):
    beta[n] = T @ beta[n + 1]
Z = (alpha * beta).sum(axis=1)  # the same at every place
marginals = alpha * beta / Z[:, None]

fig, axes = plt.subplots(3, 1, sharex=True, figsize=(6.4, 6.6), layout="constrained")
shown = (("forward messages", alpha), ("backward messages", beta), ("marginals given both ends", marginals))
for ax, (title, values) in zip(axes, shown, strict=True):
    ax.imshow((values / values.max(axis=1, keepdims=True)).T, aspect="auto", origin="lower", cmap="Blues")
    ax.set(title=title, ylabel="state")
axes[-1].set_xlabel("place in the chain")

# %%
# Work: two passes of N products of a vector with a K × K table against a sum over all K^N paths.
print(f"messages: {2 * (N - 1) * K**2:,} multiplications; all paths: {float(K) ** N:.0e}")
print(gg.plan(net, given=list(seen)))

# %%
# The numbers of the text
# -----------------------
for K_, M in ((2, 6), (3, 4), (5, 12)):
    assert gg.models.markov_chain(M, K_).n_parameters == K_ - 1 + (M - 1) * K_ * (K_ - 1)
assert np.allclose(Z, Z[0])
answer = net.query(evidence=seen)
for n in range(1, N - 1):
    assert np.allclose(answer[f"x{n}"].probabilities, marginals[n], atol=1e-12)
assert abs(answer.log_evidence - np.log(Z[0])) < 1e-10
two = net.query(("x14", "x15"), evidence=seen)[("x14", "x15")].probabilities
assert np.allclose(two, alpha[14][:, None] * T * beta[15] / Z[0], atol=1e-12)  # (7.4.12), normalized
