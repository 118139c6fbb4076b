"""
Weather, and logic as probabilities
===================================

If it rains at six there were clouds before: R ⇒ C. Logic allows two conclusions from this, and is silent about the
other two cases. Hennig, *Probabilistic inference and learning* ("Reasoning about the weather"), shows that
probability contains both conclusions and adds the two that logic cannot draw.

We see all four statements as numbers, and how they fade when the rule has exceptions.
"""

# %%
# R ⇒ C is a table with a zero: no rain without clouds. How cloudy and how rainy the place is, is our choice.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg


def climate(rain_without_clouds):
    return gg.BayesianNetwork("cloudy -> rain", cpds={"cloudy": 0.6, "rain": {"no": rain_without_clouds, "yes": 0.5}})


def p(net, name, state="yes", **given):
    return net.query(name, evidence=given)[name].prob(state)


strict = climate(0.0)
strict

# %%
# The first two lines are deduction, the last two are plausible reasoning.
print(f"rain, so clouds:            p(C | R)   = {p(strict, 'cloudy', rain='yes'):.3f}")
print(f"no clouds, so no rain:      p(¬R | ¬C) = {p(strict, 'rain', 'no', cloudy='no'):.3f}")
print(f"no rain, clouds less sure:  p(C | ¬R)  = {p(strict, 'cloudy', rain='no'):.3f} < {p(strict, 'cloudy'):.3f}")
print(f"clouds, rain more sure:     p(R | C)   = {p(strict, 'rain', cloudy='yes'):.3f} > {p(strict, 'rain'):.3f}")

# %%
# Let the rule have exceptions: rain from a clear sky with probability q. Certainty goes at once, the directions stay,
# until at q = 0.5 rain says nothing about clouds.
exceptions = np.linspace(0, 0.5, 26)
nets = [climate(q) for q in exceptions]
fig, ax = plt.subplots(layout="constrained")
ax.plot(exceptions, [p(net, "cloudy", rain="yes") for net in nets], color="#4c78a8", label="p(C | R)")
ax.plot(exceptions, [p(net, "cloudy") for net in nets], color="#52606d", linestyle=":", label="p(C)")
ax.plot(exceptions, [p(net, "cloudy", rain="no") for net in nets], color="#b03a2e", label="p(C | ¬R)")
ax.set(
    xlabel="q = p(rain | no clouds)", ylabel="belief in clouds", title="From logic to plausibility", ylim=(0.3, 1.02)
)
ax.legend(loc="upper right")

# %%
# The numbers of the text
# -----------------------
# The text states relations; they hold for every table with p(R | C) ≥ p(R | ¬C).
assert p(strict, "cloudy", rain="yes") == 1.0 and p(strict, "rain", "no", cloudy="no") == 1.0
for net in nets:
    assert p(net, "cloudy", rain="yes") >= p(net, "cloudy") - 1e-12
    assert p(net, "cloudy", rain="no") <= p(net, "cloudy") + 1e-12
    assert p(net, "rain", cloudy="yes") >= p(net, "rain") - 1e-12
    assert p(net, "rain", "no", cloudy="no") >= p(net, "rain", "no") - 1e-12
