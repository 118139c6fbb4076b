"""
Very many cases: Parquet in, posteriors out, on a Dask cluster
==============================================================

The texts ask one question at a time. In practice there is a file of cases, each with its own observations and gaps,
and one posterior is wanted for every row. A network is compiled once; a block of rows is one pass through compiled
code.

We see three ways that share one function: a frame in memory, batches of a Parquet file one after the other (memory
stays that of one batch), and partitions of a Dask frame on a cluster. The page uses 20,000 rows; set
``GRAMGRAPH_CASES=1000000`` for a million: time grows in proportion to the rows and falls with the workers, as
partitions do not depend on each other.
"""

import os
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import gramgraph as gg

n_cases = int(os.environ.get("GRAMGRAPH_CASES", "20000"))
net = gg.datasets.asia()
folder = Path(tempfile.mkdtemp())

# %%
# A file of cases: symptoms and habits, a third of the cells unknown, and an id that has to come back.
rng = np.random.default_rng(0)
cases = net.sample(n_cases, random_state=0)[["asia", "smoke", "xray", "dysp"]].astype(object)
cases = cases.mask(rng.uniform(size=cases.shape) < 1 / 3, None)
cases.insert(0, "id", np.arange(n_cases))
cases.to_parquet(folder / "cases.parquet", row_group_size=5000)


def posteriors(part):
    """One row for each case: id and p(lung = yes | what is known of it)."""
    p = net.query("lung", part, keep=["id"])["lung"].prob("yes")
    return pd.DataFrame({"id": part["id"].to_numpy(), "lung": p})


# %%
# In memory.
start = time.perf_counter()
whole = posteriors(cases)
seconds = {"one frame": time.perf_counter() - start}

# %%
# Batch by batch from the file: nothing but one batch is ever held.
start = time.perf_counter()
batches = pq.ParquetFile(folder / "cases.parquet").iter_batches(batch_size=5000)
pieces = pd.concat([posteriors(batch.to_pandas()) for batch in batches], ignore_index=True)
seconds["batches of a file"] = time.perf_counter() - start

# %%
# On a cluster: the same function on every partition. ``Client()`` starts workers on this machine;
# ``Client("tcp://…")`` finds yours. Learning takes the Dask frame itself: ``net.fit(frame, client=client)``. Without
# Dask this step is left out.
try:
    import dask.dataframe as dd
    from distributed import Client
except ImportError:
    print("Dask is not installed: pip install 'gramgraph[scale]'")
    spread = pieces
else:
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0") as client:
        frame = dd.read_parquet(folder / "cases.parquet", split_row_groups=True)
        start = time.perf_counter()
        spread = (
            frame.map_partitions(posteriors, meta={"id": "i8", "lung": "f8"})
            .compute()
            .sort_values("id", ignore_index=True)
        )
        seconds["a cluster"] = time.perf_counter() - start

# %%
# What came out, and how long it took (the first way also paid for compiling).
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.hist(whole["lung"], bins=40, color="#1f4e9c")
left.set(title=f"{n_cases:,} posteriors", xlabel="p(lung cancer | case)", ylabel="cases", yscale="log")
right.barh(list(seconds), list(seconds.values()), color="#1f4e9c")
right.set(title="Time", xlabel="seconds")

# %%
# Numbers that hold
# -----------------
# All ways agree, and single cases are what a single question answers.
assert np.allclose(whole["lung"], pieces["lung"], atol=1e-12) and np.allclose(whole["lung"], spread["lung"], atol=1e-12)
for i in (0, 7, 4321 % n_cases):
    known = {name: value for name, value in cases.iloc[i].drop("id").items() if value is not None}
    assert abs(net.query("lung", known)["lung"].prob("yes") - whole["lung"][i]) < 1e-12
