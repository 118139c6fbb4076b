r"""
Kalman's filter, the smoother, and a Gaussian process that is the same
======================================================================

Hennig, Probabilistic inference and learning, chapter "Markov chains": with linear Gaussian steps the filter and the
smoother of Rauch, Tung and Striebel are exact, in constant time for each observation. Figure 37 has A = Q = 1. (The
gain uses the *predicted* covariance :math:`P_t^-`, and the smoother's gain is :math:`G_t = P_t A^T (P_{t+1}^-)^{-1}`;
one line of the text has other indices.)

We see a random walk filtered and smoothed; the posterior of a Gaussian process with the Wiener kernel, which is the
same model; and, where steps are not linear, the extended filter (Triebel, Machine learning for computer vision,
section 1) beside particles.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg
from gramgraph.sequences import ExtendedKalmanFilter, ParticleFilter

walk = gg.KalmanFilter(A=1.0, Q=1.0, H=1.0, R=2.0, m0=0.0, P0=1.0)
y, states = walk.sample(40, random_state=3)
filtered, smoothed = walk.filter(y), walk.smooth(y)
time = np.arange(1, 41)

# %%
# The filter knows the past, the smoother all of it: its band is narrower, except at the end.
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for found, color, name in ((filtered, "#8a4b00", "filter"), (smoothed, "#1f4e9c", "smoother")):
    mean, sd = found.means[:, 0], np.sqrt(found.covariances[:, 0, 0])
    ax.fill_between(time, mean - 2 * sd, mean + 2 * sd, color=color, alpha=0.15)
    ax.plot(time, mean, color=color, label=name)
ax.plot(time, y, ".", color="black", label="observed")
ax.plot(time, states, ":", color="#1a7f37", label="truth")
ax.set(title="A random walk, seen through noise", xlabel="step", ylabel="x")
ax.legend(fontsize=8)

# %%
# The same as a Gaussian process: the walk is a Wiener process that begins at time 0.
process = gg.GaussianProcessRegressor(gg.kernels.Wiener(), alpha=2.0, optimizer=None).fit(
    time[:, None].astype(float), np.ravel(y)
)
mean, std = process.predict(time[:, None].astype(float), return_std=True)
print("largest difference of the means:", np.abs(mean - smoothed.means[:, 0]).max())


# %%
# Not linear: a walk that drifts to the right, of which only the square is seen. The start may be on either side of
# zero; the tangent follows one side, particles keep both until the drift decides.
def step(x):
    return 0.95 * x + 0.15


def square(x):
    return x**2 / 4


rng = np.random.default_rng(4)
truth = [1.2]
for _ in range(59):
    truth.append(step(truth[-1]) + 0.3 * rng.normal())
z = square(np.array(truth)) + 0.15 * rng.normal(size=60)
extended = ExtendedKalmanFilter(step, square, 0.09, 0.0225, m0=-0.5, P0=2.0).filter(z)
particles = ParticleFilter.gaussian(
    step, square, 0.09, 0.0225, -0.5, 2.0, n_particles=2000, vectorized=True, random_state=0
)
particles = particles.filter(z, keep=True)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
shown = np.repeat(np.arange(60), 40)
ax.plot(shown, particles.particles[:, ::50, 0].ravel(), ".", ms=2, color="#8fb3e0", label="particles, every fiftieth")
ax.plot(truth, color="#1a7f37", label="truth")
ax.plot(extended.means[:, 0], "--", color="#8a4b00", label=f"extended filter, log p = {extended.log_likelihood:.1f}")
ax.plot(
    particles.means[:, 0], color="#1f4e9c", label=f"mean of 2,000 particles, log p = {particles.log_likelihood:.1f}"
)
ax.set(title="A walk of which the square is seen", xlabel="step", ylabel="x")
figure.legend(loc="outside lower center", ncols=2)

# %%
# The numbers of the text
# -----------------------
# One step of the filter by hand; the smoother is the process; likelihoods agree; and so does the unrolled network.
P_minus = filtered.covariances[0, 0, 0] + 1.0
gain = P_minus / (P_minus + 2.0)
assert abs(filtered.means[1, 0] - (filtered.means[0, 0] + gain * (np.ravel(y)[1] - filtered.means[0, 0]))) < 1e-12
assert abs(filtered.covariances[1, 0, 0] - (1 - gain) * P_minus) < 1e-12
assert np.abs(mean - smoothed.means[:, 0]).max() < 1e-9
assert np.abs(std**2 - smoothed.covariances[:, 0, 0]).max() < 1e-9
assert abs(process.log_marginal_likelihood_value_ - walk.log_likelihood(y)) < 1e-8
assert np.all(smoothed.covariances[:, 0, 0] <= filtered.covariances[:, 0, 0] + 1e-12)
net = walk.to_network(6)
seen = {name: float(np.ravel(y)[i]) for i, name in enumerate(n for n in net.variables if n.startswith("y"))}
first = next(n for n in net.variables if n.startswith("x"))
assert abs(float(net.query(first, seen)[first].mean()) - walk.smooth(y[:6]).means[0, 0]) < 1e-8
assert particles.log_likelihood > extended.log_likelihood
