"""Names for the shapes that signatures speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Evidence", "FloatArray", "IntArray", "RandomState", "TargetSpec"]

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
RandomState: TypeAlias = int | np.random.Generator | None
Evidence: TypeAlias = Mapping[str, Any]
TargetSpec: TypeAlias = str | tuple[str, ...] | Sequence[str | tuple[str, ...]] | None
