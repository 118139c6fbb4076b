"""
Topics by collapsed Gibbs sampling and by variational inference
===============================================================

Zhu, *Graphical models and kernel methods* ("Latent Dirichlet allocation"), draws the topic of every word from
P(z_i = j | z_−i, w) ∝ (n^w_j + β)/(n_j + Wβ) · (n^d_j + α)/(n^d + Tα), with counts that leave the word itself out; the
distributions of words and of topics are integrated out. (The transcription runs the two fractions together.)

We see the model as plates, its posterior on two documents of three words, where all 64 assignments can be summed, and
the same model on a collection of drawn documents, by sampling and by a variational bound.
"""

# %%
# The model: documents hold words; every word has a topic; topics are distributions of words.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

lda = gg.BayesianNetwork(
    """
    alpha* -> theta{simplex 2};  beta* -> phi{simplex 3}
    theta -> z[2] -> w[3] <- phi
    plate documents: theta, z, w
    plate words in documents: z, w
    plate topics: phi
    """,
    cpds={"theta": gg.Dirichlet("alpha"), "phi": gg.Dirichlet("beta"), "w": gg.Index("phi", by="z")},
    alpha=0.5,
    beta=0.5,
)
lda.plot()

# %%
# Documents (0, 0, 1) and (2, 2, 1). Topics have no names of their own, so one asks whether two words share one.
documents = [[0, 0, 1], [2, 2, 1]]
pairs = [("z[0,0]", "z[0,1]"), ("z[0,0]", "z[0,2]"), ("z[0,0]", "z[1,0]"), ("z[0,2]", "z[1,2]")]
exact = lda.query(pairs, {"w": documents})
drawn = lda.query(pairs, {"w": documents}, engine="collapsed_gibbs", random_state=0)
same = [float(np.trace(exact[pair].probabilities)) for pair in pairs]
for pair, p in zip(pairs, same, strict=True):
    print(f"P({pair[0]} = {pair[1]}) = {p:.6f}; drawn: {np.trace(drawn[pair].probabilities):.3f}")
print(f"log p(w) = {exact.log_evidence:.10f}")

# %%
# A collection: 200 documents of 60 words from three topics, bars of a small image of words.
rng = np.random.default_rng(0)
truth = np.full((3, 12), 0.02)
for k in range(3):
    truth[k, 4 * k : 4 * k + 4] = 1.0
truth /= truth.sum(axis=1, keepdims=True)
shares = rng.dirichlet([0.2] * 3, size=200)
counts = np.array([rng.multinomial(60, share @ truth) for share in shares])
models = {
    method: gg.LatentDirichletAllocation(3, method=method, random_state=0).fit(counts)
    for method in ("gibbs", "variational")
}
fig, axes = plt.subplots(1, 3, figsize=(7.2, 2.8), layout="constrained", sharey=True)
found = {}
for ax, (name, table) in zip(axes, [("truth", truth), *((m, models[m].components_) for m in models)], strict=True):
    table = table / table.sum(axis=1, keepdims=True)
    found[name] = table[np.argsort(table.argmax(axis=1))]
    ax.imshow(found[name], cmap="Blues", vmin=0, aspect="auto")
    ax.set(title=name, xlabel="word", xticks=range(0, 12, 4), yticks=range(3))
axes[0].set_ylabel("topic")

# %%
# The numbers of the text
# -----------------------
# Sums over all assignments, and topics that come back.
assert abs(exact.log_evidence + 7.5795090602) < 1e-9
assert np.allclose(same, [0.873551, 0.695985, 0.266867, 0.548013], atol=1e-6)
for pair, p in zip(pairs, same, strict=True):
    assert abs(np.trace(drawn[pair].probabilities) - p) < 0.05
for method in models:
    assert abs(found[method] - truth).max() < 0.05
