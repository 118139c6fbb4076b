"""Fields of kernels by name, parts of composed kernels with `__`, as scikit-learn names nested parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.kernels.parameters import Parametrized


def kernel_parameters(kernel: Any, *, deep: bool = True) -> dict[str, Any]:
    """Fields of a kernel by name, parts of composed kernels with `__`: `base__length_scale`, `terms__0__variance`."""
    found: dict[str, Any] = {}
    if not is_dataclass(kernel):
        return found
    for f in fields(kernel):
        if not f.init:
            continue
        value = getattr(kernel, f.name)
        found[f.name] = value
        parts = enumerate(value) if isinstance(value, tuple) else ()
        inner = {f.name: value, **{f"{f.name}__{i}": part for i, part in parts}}
        for name, part in inner.items():
            if deep and isinstance(part, Parametrized):
                found[name] = part
                found.update({f"{name}__{k}": v for k, v in kernel_parameters(part).items()})
    return found


def with_kernel_parameters(kernel: Any, changes: Mapping[str, Any]) -> Any:
    """A new kernel with some fields replaced, named as in `kernel_parameters`."""
    known = kernel_parameters(kernel)
    direct: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        if name not in known:
            raise ModelError(
                f"{name!r} is not a parameter of the kernel {kernel!r}. Parameters: {listing(known)}."
                f"{did_you_mean(name, known)}"
            )
        head, _, rest = name.partition("__")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            direct[head] = value
    for head, inner in nested.items():
        part = direct.get(head, getattr(kernel, head))
        direct[head] = _replace_parts(part, inner) if isinstance(part, tuple) else with_kernel_parameters(part, inner)
    return replace(kernel, **direct)


def _replace_parts(parts: tuple[Any, ...], changes: Mapping[str, Any]) -> tuple[Any, ...]:
    new = list(parts)
    inner: dict[int, dict[str, Any]] = {}
    for name, value in changes.items():
        head, _, rest = name.partition("__")
        if rest:
            inner.setdefault(int(head), {})[rest] = value
        else:
            new[int(head)] = value
    for i, some in inner.items():
        new[i] = with_kernel_parameters(new[i], some)
    return tuple(new)
