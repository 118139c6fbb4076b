"""
The alarm and the radio
=======================

Your alarm sends a message. A burglar? Earthquakes set it off as well, now and then, and the radio reports every one
of them. Hennig, *Probabilistic inference and learning* ("The earthquake and the burglar"), finds p(B | A) = 0.495,
and 0.08 once the radio has spoken. (The text divides by p(A) there; it has to be p(A, R), which the number 0.08
agrees with.)

We see how an observation about something else lowers the belief in a burglar, and when it does.
"""

# %%
# The alarm is a noisy-or: it is silent if every cause fails to set it off. Domain knowledge removes arrows: 8
# parameters are left of 15.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

f, alpha_B, alpha_E = 0.001, 0.99, 0.01


def model(alpha_E=alpha_E):
    silent = {(b, e): (1 - f) * (1 - b * alpha_B) * (1 - e * alpha_E) for b in (0, 1) for e in (0, 1)}
    alarm = {(("no", "yes")[b], ("no", "yes")[e]): 1 - p for (b, e), p in silent.items()}
    return gg.BayesianNetwork(
        "B -> A <- E; E -> R", cpds={"B": 1e-3, "E": 1e-3, "A": alarm, "R": {"no": 0.0, "yes": 1.0}}
    )


net = model()
seen = {"A": "yes", "R": "yes"}
net.plot(net.query(evidence=seen), evidence=seen)

# %%
# Message by message. The radio alone says nothing about burglars; together with the alarm it does.
cases = {"nothing": {}, "radio": {"R": "yes"}, "alarm": {"A": "yes"}, "alarm and radio": seen}
belief = {name: net.query("B", given)["B"].prob("yes") for name, given in cases.items()}
for name, p in belief.items():
    print(f"p(B | {name}) = {p:.4f}")

# %%
# How well does the earthquake explain the alarm? If earthquakes never set it off, the radio is irrelevant; the more
# they do, the less is left for the burglar.
strength = np.logspace(-4, 0, 81)
answers = [model(a).query("B", seen)["B"].prob("yes") for a in strength]
alone = [model(a).query("B", {"A": "yes"})["B"].prob("yes") for a in strength]
fig, ax = plt.subplots(layout="constrained")
ax.semilogx(strength, alone, color="#4c78a8", label="p(B | alarm)")
ax.semilogx(strength, answers, color="#b03a2e", label="p(B | alarm, radio)")
ax.plot([alpha_E], [belief["alarm and radio"]], "o", color="#b03a2e", label="the text's example")
ax.set(
    xlabel="p(alarm | earthquake alone), without false alarms", ylabel="belief in a burglar", title="Explaining away"
)
ax.set_ylim(0, 1.02)
ax.legend(loc="upper right")

# %%
# The numbers of the text
# -----------------------
assert np.allclose(net.cpt["A"].values[..., 1], [[0.001, 0.01099], [0.99001, 0.9901099]], atol=1e-12)
assert net.n_parameters == 4 + 2 + 1 + 1
assert abs(belief["alarm"] - 0.495) < 5e-4
assert abs(belief["alarm and radio"] - 0.083) < 5e-4  # 0.08 in the text
assert abs(belief["radio"] - belief["nothing"]) < 1e-12
noisy = gg.datasets.alarm_radio()  # the same with gg.NoisyOr
assert abs(noisy.query("B", seen)["B"].prob("yes") - belief["alarm and radio"]) < 1e-12
