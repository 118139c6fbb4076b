r"""
Kernels on sets, words and models
=================================

Triebel, Machine learning for computer vision, section 6, needs no feature vector where a kernel says how alike two
things are: :math:`2^{|A_1 \cap A_2|}` for sets, counts of common pieces for words. OuYang, Probabilistic machine
learning, section 4.2, adds kernels of generative models, :math:`\sum_i p(x \mid i)\,p(x' \mid i)\,p(i)`, and
Fisher's, :math:`g(x)^T F^{-1} g(x')` with the score g of a model.

We see the Gram matrix of a shelf of recipes, words of two languages told apart by their pieces, and cases of a
Bayesian network that are alike when they pull its tables the same way.
"""

from itertools import chain, combinations

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

# %%
# Sets: the kernel is the number of common subsets.
recipes = {
    "bread": {"flour", "water", "salt", "yeast"},
    "pizza": {"flour", "water", "salt", "yeast", "tomato", "cheese"},
    "pancake": {"flour", "milk", "egg", "salt"},
    "omelet": {"egg", "salt", "butter", "cheese"},
    "salad": {"tomato", "cheese", "oil", "salt"},
}
K = gg.kernels.SetKernel().gram(list(recipes.values()))
figure, ax = plt.subplots(figsize=(5.5, 4.4), layout="constrained")
ax.imshow(np.log2(K), cmap="Blues", vmax=8)
for i, j in np.ndindex(K.shape):
    ax.text(j, i, f"{K[i, j]:.0f}", ha="center", va="center", color="black")
ax.set_xticks(range(5), recipes)
ax.set_yticks(range(5), recipes)
ax.set_title("2^|A ∩ B|")

# %%
# Words: pieces of one to three letters, and a support vector machine on strings.
english = ["water", "house", "light", "morning", "friend", "winter", "child", "bread"]
english += ["night", "river", "stone", "young", "thought", "garden", "weather", "window"]
italian = ["acqua", "casa", "luce", "mattina", "amico", "inverno", "bambino", "pane"]
italian += ["notte", "fiume", "pietra", "giovane", "pensiero", "giardino", "tempo", "finestra"]
words, language = english + italian, np.repeat(["English", "Italian"], 16)
pieces = gg.kernels.Spectrum(3, blended=True).normalized()
machine = gg.SVC(pieces, C=10.0).fit(words, language)
unseen = ["brother", "evening", "kitchen", "fratello", "serata", "cucina"]
print({word: str(said) for word, said in zip(unseen, machine.predict(unseen), strict=True)})
ax = gg.plot.plot_kernel_pca(gg.KernelPCA(2, kernel=pieces).fit(words), labels=language)
ax.set(title="Words by their pieces", xlabel="component 1", ylabel="component 2")

# %%
# A generative model: two hidden causes of a state, and how probable it is that two states come from the same one.
cause, table = np.array([0.3, 0.7]), np.array([[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]])
common = gg.kernels.LatentVariable(cause, table)
print(common.gram([0, 1, 2]).round(3))

# %%
# Fisher's kernel of a network: cases with gaps are points, too.
net = gg.datasets.asia()
cases = [
    {"smoke": "yes", "dysp": "yes"},
    {"smoke": "yes", "bronc": "yes"},
    {"asia": "yes", "tub": "yes"},
    {"xray": "yes"},
]
fisher = gg.kernels.Fisher(gg.kernels.NetworkScore(net), information="model").normalized()
print(fisher.gram(cases).round(2))

# %%
# The numbers of the text
# -----------------------
# Common subsets counted one by one; words that share pieces; Fisher's kernel of a coin; the sum over hidden causes.
A, B = recipes["bread"], recipes["pizza"]


def subsets(s):
    return set(chain.from_iterable(combinations(sorted(s), n) for n in range(len(s) + 1)))


assert K[0, 1] == len(subsets(A) & subsets(B)) == 2 ** len(A & B)
assert gg.kernels.Spectrum(2).gram(["banana"], ["bandana"])[0, 0] == 7
assert np.mean(machine.predict(unseen) == np.repeat(["English", "Italian"], 3)) >= 5 / 6
assert np.allclose(common.gram([0, 1, 2]), (table.T * cause) @ table)
coin = gg.kernels.NetworkScore(gg.BayesianNetwork("A", cpds={"A": 0.25}))
score = coin.fisher_score([{"A": "yes"}, {"A": "no"}])[:, 1]
assert np.allclose(score, [0.75, -0.25])  # by the log odds of "yes": x − p, of variance p(1 − p)
assert np.allclose(
    gg.kernels.Fisher(coin, information="model").gram([{"A": "yes"}, {"A": "no"}]), [[3, -1], [-1, 1 / 3]]
)
assert np.linalg.eigvalsh(fisher.gram(cases)).min() > -1e-10
