"""
The fuel gauge
==============

A gauge depends on the battery and on the tank. It says empty. Triebel, *Machine learning for computer vision*
(section 4, "The head-to-head node"), computes p(empty gauge) = 0.315 and p(empty tank | empty gauge) ≈ 0.257; when
the battery turns out to be flat, 0.111 remain: the battery explains the gauge away.

We ask for these numbers, and see how unreliable parts move them.
"""

# %%
# Battery and tank are independent causes of one reading.
import matplotlib.pyplot as plt
import numpy as np

import gramgraph as gg

net = gg.BayesianNetwork(
    "battery{flat|charged} -> gauge{empty|full} <- fuel{empty|full}",
    cpds={
        "battery": [0.1, 0.9],
        "fuel": [0.1, 0.9],
        "gauge": {
            ("flat", "empty"): [0.9, 0.1],
            ("flat", "full"): [0.8, 0.2],
            ("charged", "empty"): [0.8, 0.2],
            ("charged", "full"): [0.2, 0.8],
        },
    },
)
seen = {"gauge": "empty", "battery": "flat"}
net.plot(net.query(evidence=seen), evidence=seen)

# %%
# The tank is probably full, even though the gauge says empty; and surely more so once we know that the battery is
# flat.
gauge = net.query("gauge")["gauge"].prob("empty")
given_tank = net.query("gauge", {"fuel": "empty"})["gauge"].prob("empty")
tank = net.query("fuel", {"gauge": "empty"})["fuel"].prob("empty")
explained = net.query("fuel", seen)["fuel"].prob("empty")
print(f"p(¬c) = {gauge:.3f}, p(¬c | ¬b) = {given_tank:.3f}, p(¬b | ¬c) = {tank:.3f}, p(¬b | ¬c, ¬a) = {explained:.3f}")

# %%
# How do the answers depend on how often batteries are flat? ``sensitivity_function`` gives the exact curve for any
# number of any table.
curve = net.sensitivity_function("fuel", "empty", {"gauge": "empty"}, variable="battery", value="flat")
share = np.linspace(0, 1, 101)
fig, ax = plt.subplots(layout="constrained")
ax.plot(share, curve(share), color="#4c78a8", label="p(tank empty | gauge empty)")
ax.axhline(explained, color="#b03a2e", linestyle="--", label="battery known to be flat")
ax.axhline(0.1, color="#52606d", linestyle=":", label="before looking")
ax.plot([0.1], [tank], "o", color="#4c78a8", label="the text's example")
ax.set(
    xlabel="p(battery flat)",
    ylabel="belief in an empty tank",
    title="What a bad battery does to a gauge",
    ylim=(0, 0.4),
)
ax.legend(loc="upper right")

# %%
# The numbers of the text
# -----------------------
assert abs(gauge - 0.315) < 1e-12
assert abs(given_tank - 0.81) < 1e-12
assert abs(tank - 0.257) < 5e-4
assert abs(explained - 0.111) < 5e-4
assert abs(curve(0.1) - tank) < 1e-12 and abs(curve(1.0) - explained) < 1e-12
assert net.is_dseparated("battery", "fuel") and net.is_dconnected("battery", "fuel", given="gauge")
