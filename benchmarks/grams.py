"""RBF Gram matrices: ours, scikit-learn's `rbf_kernel`, and the floor "matrix product + exp", on one thread.

python -m benchmarks.grams [n]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def best_of(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    times, value = [], None
    for _ in range(repeats):
        value = None  # two results at once would double the memory
        start = time.perf_counter()
        value = run()
        times.append(time.perf_counter() - start)
    return min(times), value


def product_and_exp(X: np.ndarray) -> np.ndarray:
    K = X @ X.T
    return np.exp(K, out=K)


def main(n: int = 5000) -> None:
    from gramgraph.kernels import RBF

    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        sys.exit("threadpoolctl is not installed: the comparison on one thread needs it.")
    try:
        from sklearn.metrics.pairwise import rbf_kernel
    except ImportError:
        rbf_kernel = None
    print(
        f"{'n':>6} {'d':>4} {'ours s':>8} {'sklearn s':>10} {'ratio':>6} {'floor s':>8} {'of floor':>8} {'max diff':>9}"
    )
    for d in (10, 100):
        X = np.random.default_rng(0).normal(size=(n, d)) / np.sqrt(d)
        kernel = RBF(length_scale=1.0)
        kernel.gram(X[:200])  # compiled code is loaded before the clock runs
        with threadpool_limits(1):
            ours, K = best_of(lambda X=X, kernel=kernel: kernel.gram(X))
            floor, _ = best_of(lambda X=X: product_and_exp(X))
            if rbf_kernel is None:
                print(f"{n:>6} {d:>4} {ours:8.3f} scikit-learn is not installed; floor {floor:.3f} s")
                continue
            peer, L = best_of(lambda X=X: rbf_kernel(X, gamma=0.5))
        gap = np.abs(K - L).max()
        print(f"{n:>6} {d:>4} {ours:8.3f} {peer:10.3f} {peer / ours:6.2f} {floor:8.3f} {ours / floor:8.2f} {gap:9.1e}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
