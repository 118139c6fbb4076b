"""
One network: a table, a Gaussian, a kernel and a boosted arrow
==============================================================

The texts have tables (all of them), linear Gaussian arrows (Zhu, Triebel, Hennig, OuYang), kernels in the place of
tables (Parikh) and boosted trees (Triebel), each in a chapter of its own. Nothing says that a graph must use one kind
only.

We see a weather station: a category and numbers. The season is a table, the temperature a Gaussian for each season,
the power of a turbine a kernel on the wind, the alarm of the operator a boosted arrow on temperature and power. All
are learned at once, and the network is asked in any direction.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gramgraph as gg

rng = np.random.default_rng(0)
n = 2000
season = rng.choice(["summer", "winter"], p=[0.6, 0.4], size=n)
temperature = np.where(season == "summer", 18, 3) + 4 * rng.normal(size=n)
wind = np.abs(6 + 3 * rng.normal(size=n))
power = 10 / (1 + np.exp(-(wind - 7))) + 0.4 * rng.normal(size=n)
risk = (temperature < 2) & (power > 5) | (temperature > 24) & (power < 3)
alarm = np.where(rng.uniform(size=n) < np.where(risk, 0.95, 0.03), "yes", "no")
frame = pd.DataFrame({"season": season, "temperature": temperature, "wind": wind, "power": power, "alarm": alarm})

# %%
# The graph, and how each arrow is to be learned; what is not named is a table or a Gaussian.
graph = gg.BayesianNetwork(
    "season{summer|winter} -> temperature{real}; wind{positive} -> power{real};"
    "temperature -> alarm{no|yes}; power -> alarm"
)
net = graph.fit(
    frame,
    conditional={"wind": gg.KernelConditional(), "power": gg.KernelConditional(), "alarm": gg.Boosted(n_estimators=60)},
)
print({name: type(net.conditional(name)).__name__ for name in net.variables})

# %%
# Forward, backward and across: what an alarm says about the season, and about the wind.
answer = net.query(["season", "wind", "temperature"], {"alarm": "yes"})
print(answer)
quiet = net.query(["season", "wind"], {"alarm": "no"})
grid = np.linspace(0, 16, 200)
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for found, label, color in ((answer, "alarm", "#b3261e"), (quiet, "no alarm", "#1f4e9c")):
    left.plot(grid, found["wind"].density(grid), color=color, label=label)
left.set(title="Wind", xlabel="m/s", ylabel="density")
left.legend(fontsize=8)
shares = [found["season"].prob("winter") for found in (quiet, answer)]
right.bar(["no alarm", "alarm"], shares, color=["#1f4e9c", "#b3261e"])
right.set(title="p(winter)", ylabel="probability", ylim=(0, 1))

# %%
# The answer says what it is worth. Trees jump between the nodes of the quadrature, so that the stated error is large
# here; weighted draws are the second opinion.
drawn = net.query(["season", "wind"], {"alarm": "yes"}, engine="likelihood_weighting", budget=50_000, random_state=0)
print(f"{answer.quality}: {answer.reason}")
print(
    "winter",
    round(answer["season"].prob("winter"), 3),
    "by nodes,",
    round(drawn["season"].prob("winter"), 3),
    "by draws",
)

# %%
# The kernel arrow by itself: power for each wind, without any formula for it.
winds = np.linspace(1, 13, 13)
beliefs = [net.query("power", {"wind": float(w)})["power"] for w in winds]
low, middle, high = np.array([[b.quantile(q) for b in beliefs] for q in (0.05, 0.5, 0.95)])
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
ax.plot(wind, power, ".", ms=2, color="#9aa4ae", label="data")
ax.fill_between(winds, low, high, color="#cfe0f5", label="90 %")
ax.plot(winds, middle, color="#1f4e9c", label="median")
ax.set(title="A kernel arrow", xlabel="wind in m/s", ylabel="power in MW", xlim=(0, 14))
ax.legend(fontsize=8)

# %%
# Numbers that hold
# -----------------
# The answers are near those that are counted among the rows with an alarm.
counted = pd.Series(season)[alarm == "yes"].eq("winter").mean()
assert abs(shares[1] - counted) < 0.08 and shares[1] > shares[0] + 0.1
assert abs(answer["wind"].mean() - wind[alarm == "yes"].mean()) < 0.4
assert np.abs(middle - 10 / (1 + np.exp(-(winds - 7)))).max() < 0.6
assert (
    abs(answer["wind"].mean() - drawn["wind"].mean()) < 0.5 and abs(shares[1] - drawn["season"].prob("winter")) < 0.06
)
