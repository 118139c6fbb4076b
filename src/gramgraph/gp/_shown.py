"""How a posterior prints itself: one line instead of its matrices."""

from __future__ import annotations

from typing import Any

from gramgraph.kernels.inputs import count


class OneLine:
    """`repr` with the kernel, the number of points, the log evidence and the jitter, whatever else is stored.

    >>> import numpy as np
    >>> from gramgraph.gp import fit_exact
    >>> from gramgraph.kernels import RBF
    >>> fit_exact(RBF(), [[0.0], [1.0]], np.array([1.0, 0.0]), noise=0.01)
    ExactPosterior(kernel=RBF(length_scale=1), n=2, log_evidence=-2.39847, jitter=0)
    """

    def __repr__(self) -> str:
        process: Any = self
        n = process.data.n if hasattr(process, "data") else count(process.X)
        return (
            f"{type(self).__name__}(kernel={process.kernel!r}, n={n}, "
            f"log_evidence={process.log_evidence:.6g}, jitter={process.jitter:.2g})"
        )
