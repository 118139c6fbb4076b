r"""
One model with four names
=========================

A hidden state that moves step by step and is seen through noise is a hidden Markov model (Triebel, section 5), a
dynamic Bayesian network (Triebel, section 1), a Kalman filter when all is Gaussian (Hennig, "Markov chains"), and a
Gaussian process with a Markov kernel (Hennig, "Gaussian processes"). The words differ, the sums are the same.

We see them agree: discrete states as HMM, as DBN and as an unrolled network; Gaussian states as filter, as process,
as unrolled network; and the bridge between both worlds, an HMM on a fine grid that becomes the Kalman filter.
"""

import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

# %%
# Discrete: rain that is seen by umbrellas.
A, B, start = [[0.7, 0.3], [0.3, 0.7]], [[0.8, 0.2], [0.1, 0.9]], [0.5, 0.5]
hmm = gg.CategoricalHMM.from_parameters(start, A, B, symbols=["no", "yes"])
dbn = gg.DynamicBayesianNetwork("rain' -> rain{no|yes} -> umbrella{no|yes}", cpds={"rain": A, "umbrella": B})
seen = ["yes", "yes", "no", "yes", "yes"]
rows = [{"umbrella": s} for s in seen]
by_hmm = hmm.predict_proba(np.array(seen))[:, 1]
by_dbn = dbn.smooth(rows)["rain"].prob("yes")
net = hmm.to_network(5)
observed = dict(zip([v for v in net.variables if v.startswith("x")], seen, strict=True))
hidden = [v for v in net.variables if v.startswith("z")]
by_net = np.array([net.query(v, observed)[v].probabilities[1] for v in hidden])

# %%
# Gaussian: an Ornstein–Uhlenbeck process, x' = 0.8 x + noise, which is the Matérn kernel ½.
a, r = 0.8, 0.3
kalman = gg.KalmanFilter(A=a, Q=1 - a**2, H=1.0, R=r, m0=0.0, P0=1.0)
y, _ = kalman.sample(30, random_state=1)
y = np.ravel(y)
time = np.arange(30.0)[:, None]
process = gg.GaussianProcessRegressor(gg.kernels.Matern(-1 / np.log(a), nu=0.5), alpha=r, optimizer=None).fit(time, y)
smooth = kalman.smooth(y)
mean, std = process.predict(time, return_std=True)

# %%
# The bridge: the same process as an HMM with K states on a grid. Its filter comes to Kalman's as K grows.


def on_grid(K):
    x = np.linspace(-6, 6, K)
    move = np.exp(-0.5 * (x[None, :] - a * x[:, None]) ** 2 / (1 - a**2))
    filter_ = gg.sequences.BayesFilter(np.exp(-0.5 * x**2) / np.exp(-0.5 * x**2).sum())
    means = []
    for t, value in enumerate(y):
        if t:
            filter_.act(move / move.sum(axis=1, keepdims=True))
        filter_.sense(np.exp(-0.5 * (value - x) ** 2 / r))
        means.append(filter_.belief @ x)
    return np.array(means)


sizes = (7, 13, 25, 49, 97)
exact = kalman.filter(y).means[:, 0]
gaps = [np.abs(on_grid(K) - exact).max() for K in sizes]
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
left.fill_between(time[:, 0], mean - 2 * std, mean + 2 * std, color="#cfe0f5", label="Gaussian process")
left.plot(time, smooth.means[:, 0], color="#b3261e", label="Kalman smoother")
left.plot(time, y, ".", color="black", label="observed")
left.set(title="The same curve twice", xlabel="time", ylabel="x")
left.legend(fontsize=8)
right.semilogy(sizes, np.maximum(gaps, 1e-16), "o-", color="#1f4e9c")
right.set(title="HMM on a grid → Kalman filter", xlabel="states", ylabel="largest difference of the means")

# %%
# Numbers that hold
# -----------------
# The smoothed probabilities of the umbrella world agree to rounding, and so do the Gaussian ones.
assert np.allclose(by_hmm, by_dbn, atol=1e-12) and np.allclose(by_hmm, by_net, atol=1e-12)
assert abs(dbn.filter(rows)["rain"].prob("yes")[1] - 0.883) < 1e-3  # the well-known number of this example
assert abs(hmm.score(np.array(seen)) - net.log_evidence(observed)) < 1e-12
assert np.allclose(mean, smooth.means[:, 0], atol=1e-8) and np.allclose(std**2, smooth.covariances[:, 0, 0], atol=1e-8)
assert abs(process.log_marginal_likelihood_value_ - kalman.log_likelihood(y)) < 1e-8
assert gaps[0] > gaps[2] > gaps[-1] and gaps[-1] < 1e-6
