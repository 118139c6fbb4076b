"""
Binary images without noise
===========================

Pixels like to agree with their neighbors and with what was seen. Triebel, *Machine learning for computer vision*
(section 4, "Directed vs. undirected graphs"), motivates random fields by images, and Zhu, *Graphical models and
kernel methods* ("Example: image denoising"), writes the posterior p(X | Y) ∝ exp(Σ θ_s x_s + Σ θ_st x_s x_t) with θ_s
= ±c.

We restore one image in five ways: greedy single flips (ICM), the exact maximum by a cut, max-product, sum-product and
Gibbs sampling.
"""

# %%
# The picture is made here: 40 × 40 pixels, of which 15 % are flipped.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

rng = np.random.default_rng(1)
y, x = np.mgrid[:40, :40]
clean = (((x - 20) ** 2 + (y - 20) ** 2 < 250) & ~((abs(x - 20) < 5) & (y < 24))) | ((y > 34) & (x > 4) & (x < 35))
noisy = clean ^ (rng.random(clean.shape) < 0.15)
net = gg.models.denoising_grid(noisy, coupling=0.8, flip_probability=0.15)


def image(assignment):
    return np.array([[assignment[f"x{i}_{j}"] == "+1" for j in range(40)] for i in range(40)])


# %%
# Iterated conditional modes stop at a local maximum; the cut finds the global one, and here max-product reaches it.
icm, cut = net.map_query(engine="icm"), net.map_query(engine="graph_cut")
max_product = gg.denoise(noisy, coupling=0.8, flip_probability=0.15)
sum_product = gg.denoise(noisy, coupling=0.8, flip_probability=0.15, temperature=1.0)

# %%
# Gibbs sampling: flip every pixel by its odds given its neighbors, and average the images. The average is a
# probability of every pixel, as sum-product gives it.
c = 0.5 * np.log(0.85 / 0.15) * np.where(noisy, 1.0, -1.0)
board = (x + y) % 2 == 0
spins, mean = np.where(noisy, 1.0, -1.0), np.zeros(noisy.shape)
for sweep in range(250):
    for color in (board, ~board):
        padded = np.pad(spins, 1)
        around = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
        up = rng.random(spins.shape) < 1 / (1 + np.exp(-2 * (0.8 * around + c)))
        spins = np.where(color, np.where(up, 1.0, -1.0), spins)
    mean += (spins > 0) / 200 * (sweep >= 50)

shown = {
    "truth": clean,
    "seen": noisy,
    "ICM": image(icm.assignment),
    "cut (exact MAP)": image(cut.assignment),
    "max-product": max_product.image,
    "sum-product": sum_product.image,
    "Gibbs": mean > 0.5,
}
wrong = {name: int((pixels != clean).sum()) for name, pixels in shown.items()}
fig, axes = plt.subplots(2, 4, figsize=(7.5, 4.3), layout="constrained")
for ax, (name, pixels) in zip(axes.flat, {**shown, "Gibbs: p(white)": mean}.items(), strict=True):
    ax.imshow(pixels, cmap="gray", vmin=0, vmax=1)
    ax.set_title(f"{name}\n{wrong[name]} wrong" if name in wrong else f"{name}\n", fontsize=10)
    ax.set(xticks=[], yticks=[])
for name, count in wrong.items():
    print(f"{name:16s} {count:4d} pixels wrong")

# %%
# How strong should neighbors be? Too weak leaves noise, too strong melts the slot and the bar.
strengths = np.linspace(0.1, 2.0, 12)
errors = [(gg.denoise(noisy, coupling=J, flip_probability=0.15).image != clean).sum() for J in strengths]
fig, ax = plt.subplots(layout="constrained", figsize=(6.4, 3.6))
ax.plot(strengths, errors, "o-", color="#4c78a8", label="max-product")
ax.axhline(wrong["seen"], color="#52606d", linestyle=":", label="noisy image")
ax.set(xlabel="coupling of neighbors", ylabel="pixels wrong", title="The strength of the prior", ylim=(0, None))
ax.legend(loc="best")

# %%
# The numbers of the text
# -----------------------
names = np.array(net.variables).reshape(40, 40)
scores = {"ICM": icm.log_prob, "cut": cut.log_prob}
for name, found in (("max-product", max_product), ("sum-product", sum_product)):
    spins = np.where(found.image, "+1", "-1")
    scores[name] = net.joint_log_prob(dict(zip(names.ravel(), spins.ravel(), strict=True)))
assert scores["ICM"] < scores["cut"] and scores["sum-product"] <= scores["cut"] + 1e-8
assert abs(scores["max-product"] - scores["cut"]) < 1e-8
assert max(wrong[name] for name in wrong if name not in ("truth", "seen")) < wrong["seen"] / 4
# θ_s = ±c, θ_st = J: the weights of the model are those of the text, with spins −1 and +1.
J, h = gg.models.ising_parameters(gg.models.denoising_grid([[1, 0], [1, 1]], coupling=0.8, flip_probability=0.1))
assert np.allclose(abs(h), 0.5 * np.log(9)) and np.allclose(J[J != 0], 0.8)
