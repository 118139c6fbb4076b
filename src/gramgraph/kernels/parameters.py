"""Values with declared parameters: theta, bounds, names, and new values made from a theta."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from gramgraph.exceptions import did_you_mean, listing
from gramgraph.kernels.inputs import KernelError
from gramgraph.typing import FloatArray


class Transform(NamedTuple):
    """A parameter's way to the unconstrained line and back."""

    to_theta: Callable[[Any], Any]
    from_theta: Callable[[Any], Any]
    slope: Callable[[Any], Any]  # ∂ value / ∂ theta, from the value
    low: float
    high: float


TRANSFORMS: dict[str, Transform] = {
    "log": Transform(np.log, np.exp, lambda v: v, 0.0, np.inf),
    "identity": Transform(lambda v: v, lambda t: t, lambda v: np.ones_like(v), -np.inf, np.inf),
    "logit": Transform(
        lambda v: np.log(v) - np.log1p(-v), lambda t: 1.0 / (1.0 + np.exp(-t)), lambda v: v * (1.0 - v), 0.0, 1.0
    ),
}


class Declaration(NamedTuple):
    """What `parameter` says of a field."""

    bounds: tuple[float, float]
    transform: Transform
    max_ndim: int


def parameter(
    default: Any = MISSING,
    *,
    bounds: tuple[float, float] = (1e-5, 1e5),
    transform: str = "log",
    max_ndim: int = 0,
) -> Any:
    """Declare a dataclass field as a parameter that can be learned.

    `bounds` are those of the value; `transform` ("log" for positive, "logit" for values between 0 and 1, "identity")
    leads to theta; `max_ndim` is 1 where one number or a vector is allowed, 2 for a matrix too.

    Parameters
    ----------
    default : the value, if it may be left out.
    bounds : of the value.
    transform : "log", "logit" or "identity".
    max_ndim : most axes of the value.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Decay:
    ...     rate: float = parameter(1.0, bounds=(0.1, 10.0))
    >>> Decay().rate
    1.0
    """
    declared = Declaration(bounds, TRANSFORMS[transform], max_ndim)
    return field(default=default, metadata={"parameter": declared})


class Part(NamedTuple):
    """A field that holds a parameter, or a value that has parameters itself."""

    name: str  # length_scale, base, terms[0]
    field: str
    position: int | None  # place in a field that holds a tuple
    value: Any
    declared: Declaration | None  # None: a part with parameters of its own


@cache
def _declared(kind: type) -> tuple[tuple[str, Declaration | None], ...]:
    """The fields of a class, and what is declared of those that are parameters: searches ask for them all the time."""
    return tuple((f.name, f.metadata.get("parameter")) for f in fields(kind))


@dataclass(frozen=True, eq=False, repr=False)
class Parametrized:
    """Base of values whose dataclass fields are parameters, parts that have parameters, or constants."""

    #: Own parameters that theta leaves out.
    fixed: tuple[str, ...] = field(default=(), kw_only=True)
    #: Own parameters that are searched between other ends than the declared ones, (name, low, high) each; see
    #: `with_bounds`.
    limits: tuple[tuple[str, Any, Any], ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for name, declared in _declared(type(self)):  # type: ignore[arg-type]  # a class is hashable
            if declared is not None:
                object.__setattr__(self, name, self._checked(name, getattr(self, name), declared))
        own = [p.name for p in self._parts() if p.declared is not None]
        object.__setattr__(self, "fixed", (self.fixed,) if isinstance(self.fixed, str) else tuple(self.fixed))
        for name in self.fixed:
            if name not in own:
                raise self._no_parameter(name, own)
        if self.limits:
            object.__setattr__(self, "limits", tuple(self._checked_limit(*limit) for limit in self.limits))

    def _checked_limit(self, name: str, low: Any, high: Any) -> tuple[str, Any, Any]:
        part = next((p for p in self._parts() if p.declared is not None and p.name == name), None)
        if part is None or part.declared is None:
            raise self._no_parameter(name, [p.name for p in self._parts() if p.declared is not None])
        here, transform = f"{type(self).__name__}.{name}", part.declared.transform
        try:
            ends = np.array(
                [np.broadcast_to(np.asarray(end, dtype=np.float64), np.shape(part.value)) for end in (low, high)]
            )
        except (TypeError, ValueError):
            raise KernelError(f"{here}: expected bounds (low, high), got {(low, high)!r}.") from None
        if not ((ends[0] <= ends[1]) & (ends[0] >= transform.low) & (ends[1] <= transform.high)).all():
            raise KernelError(
                f"{here}: expected bounds (low, high) with {transform.low:g} ≤ low ≤ high ≤ {transform.high:g}, got "
                f"{(low, high)!r}."
            )
        return name, *(_plain(end) for end in (low, high))

    def _checked(self, name: str, value: Any, declared: Declaration) -> float | FloatArray:
        here = f"{type(self).__name__}.{name}"
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise KernelError(f"{here}: expected a number, got {value!r}.") from None
        if array.ndim > declared.max_ndim or array.size == 0:
            kinds = ("a number", "a number or a vector", "a number, a vector or a matrix")[declared.max_ndim]
            raise KernelError(f"{here}: expected {kinds}, got shape {array.shape}.")
        low, high = declared.transform.low, declared.transform.high
        if not (np.isfinite(array).all() and (array > low).all() and (array < high).all()):
            kind = {(0.0, np.inf): "positive", (0.0, 1.0): "between 0 and 1"}.get((low, high), "finite")
            raise KernelError(f"{here}: expected {kind} values, got {value!r}.")
        if array.ndim == 0:
            return float(array)
        array.flags.writeable = False
        return array

    # -- parts --------------------------------------------------------------------------------------------------

    def _parts(self) -> Iterator[Part]:
        for name, declared in _declared(type(self)):  # type: ignore[arg-type]  # a class is hashable
            value = getattr(self, name)
            if declared is not None:
                yield Part(name, name, None, value, declared)
            elif isinstance(value, Parametrized):
                yield Part(name, name, None, value, None)
            elif isinstance(value, tuple):
                for i, item in enumerate(value):
                    if isinstance(item, Parametrized):
                        yield Part(f"{name}[{i}]", name, i, item, None)

    def _rebuilt(self, change: Callable[[Part], Any]) -> Self:
        """A copy in which `change(part)` stands where each part stood."""
        news: dict[str, Any] = {}
        for part in self._parts():
            new = change(part)
            if part.position is None:
                news[part.field] = new
            else:
                items = list(news.get(part.field, getattr(self, part.field)))
                items[part.position] = new
                news[part.field] = tuple(items)
        return replace(self, **news)

    def is_free(self, name: str) -> bool:
        """Whether an own parameter is part of theta."""
        return name not in self.fixed

    # -- theta --------------------------------------------------------------------------------------------------

    def _gather(self, own: Callable[[Part], Any], nested: Callable[[Part], Any]) -> list[Any]:
        return [
            own(part) if part.declared is not None else nested(part)
            for part in self._parts()
            if part.declared is None or part.name not in self.fixed
        ]

    @property
    def theta(self) -> FloatArray:
        """Free parameters on the unconstrained line, flattened in field order, parts recursed: shape (p,)."""
        found = self._gather(
            lambda part: np.ravel(part.declared.transform.to_theta(part.value)),  # type: ignore[union-attr]
            lambda part: part.value.theta,
        )
        return np.concatenate([np.zeros(0), *found])

    def _n_free(self) -> int:
        """The length of theta."""
        return sum(self._gather(lambda part: np.size(part.value), lambda part: part.value._n_free()))

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper ends of theta, shape (p, 2)."""

        def own(part: Part) -> FloatArray:
            assert part.declared is not None
            with np.errstate(divide="ignore"):  # an end of 0 is minus infinity on the line
                return np.asarray(part.declared.transform.to_theta(self.own_ends(part)))

        return np.concatenate([np.zeros((0, 2)), *self._gather(own, lambda part: part.value.bounds)])

    def own_ends(self, part: Part) -> FloatArray:
        """Lower and upper ends of an own parameter, (entries, 2)."""
        assert part.declared is not None
        low, high = next(((a, b) for name, a, b in self.limits if name == part.name), part.declared.bounds)
        shape = np.shape(part.value)
        return np.column_stack([np.broadcast_to(end, shape).ravel().astype(np.float64) for end in (low, high)])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """One name an entry of theta, such as `terms[0].length_scale[1]`."""

        def own(part: Part) -> list[str]:
            if np.ndim(part.value) == 0:
                return [part.name]
            return [part.name + "".join(f"[{i}]" for i in at) for at in np.ndindex(np.shape(part.value))]

        found = self._gather(own, lambda part: [f"{part.name}.{name}" for name in part.value.parameter_names])
        return tuple(name for names in found for name in names)

    def with_theta(self, theta: Any) -> Self:
        """The same value with other parameters. Inverse of `theta`."""
        theta = np.asarray(theta, dtype=np.float64)
        p = self._n_free()
        if theta.shape != (p,):
            raise KernelError(
                f"theta: expected {p} numbers, shape ({p},), for {listing(self.parameter_names) or 'no parameters'}; "
                f"got shape {theta.shape}."
            )
        return self._from_theta(theta)

    def _from_theta(self, theta: FloatArray) -> Self:
        position = 0

        def change(part: Part) -> Any:
            nonlocal position
            if part.declared is None:
                size = part.value._n_free()
                new = part.value._from_theta(theta[position : position + size])
            elif part.name in self.fixed:
                return part.value
            else:
                size = np.size(part.value)
                here = theta[position : position + size]
                # exp of a log may leave the open interval by rounding: an optimizer's far step stays usable
                with np.errstate(over="ignore", under="ignore"):
                    new = part.declared.transform.from_theta(here)
                new = np.clip(new, *_inner(part.declared.transform)).reshape(np.shape(part.value))
                if self.limits:  # an end of the search is met to the last digit, not to rounding of its logarithm
                    new = self._on_ends(part, here, new)
            position += size
            return new

        return self._rebuilt(change)

    def _on_ends(self, part: Part, theta: FloatArray, new: FloatArray) -> FloatArray:
        assert part.declared is not None
        ends = self.own_ends(part)
        with np.errstate(divide="ignore"):
            low, high = part.declared.transform.to_theta(ends).T
        values = np.where(theta == high, ends[:, 1], np.where(theta == low, ends[:, 0], np.ravel(new)))
        return values.reshape(np.shape(new))

    def chain(self, gradients: dict[str, Any]) -> FloatArray:
        """Gradient by theta, from gradients by the values of own parameters and by theta of parts.

        The keys are the names of parts: `length_scale`, `base`, `terms[0]`. Fixed parameters need no entry.
        """
        found = self._gather(
            lambda part: np.ravel(gradients[part.name] * part.declared.transform.slope(np.asarray(part.value))),  # type: ignore[union-attr]
            lambda part: gradients[part.name],
        )
        return np.concatenate([np.zeros(0), *found])

    def with_bounds(self, bounds: Mapping[str, tuple[Any, Any]] | None = None, /, **named: tuple[Any, Any]) -> Self:
        """The same value whose parameters are searched between other ends: `bounds` of values, not of theta.

        Names as in `fix`; those with dots or brackets go into a dict. A vector may have ends of its own an entry.

        >>> from gramgraph.kernels import RBF
        >>> np.exp(RBF(0.5).with_bounds(length_scale=(0.1, 10.0)).bounds).round(6)
        array([[ 0.1, 10. ]])
        """
        asked = {**(bounds or {}), **named}
        known = self._all_names()
        for name, ends in asked.items():
            if not any(full == name or full.endswith("." + name) for full in known):
                raise self._no_parameter(name, known)
            if not isinstance(ends, (tuple, list)) or len(ends) != 2:
                raise KernelError(f"{name}: expected bounds (low, high), got {ends!r}.")
        return self._with_limits(asked, "")

    def _with_limits(self, asked: Mapping[str, tuple[Any, Any]], prefix: str) -> Self:
        new = self._rebuilt(
            lambda part: (
                part.value if part.declared is not None else part.value._with_limits(asked, f"{prefix}{part.name}.")
            )
        )
        limits = {name: (low, high) for name, low, high in self.limits}
        for part in self._parts():
            full = prefix + part.name
            for name, ends in asked.items() if part.declared is not None else ():
                if full == name or full.endswith("." + name):
                    limits[part.name] = (ends[0], ends[1])
        return replace(new, limits=tuple((name, *ends) for name, ends in limits.items()))

    # -- fixing -------------------------------------------------------------------------------------------------

    def fix(self, *names: str) -> Self:
        """The same value whose theta leaves these parameters out; no name: all of them.

        A name is a full one (`terms[0].length_scale`) or its end (`length_scale`: wherever it is found).
        """
        return self._refixed(names, True)

    def free(self, *names: str) -> Self:
        """The same value whose theta holds these parameters again; no name: all of them."""
        return self._refixed(names, False)

    def _refixed(self, names: tuple[str, ...], fix: bool) -> Self:
        known = self._all_names()
        for name in names:
            if not any(full == name or full.endswith("." + name) for full in known):
                raise self._no_parameter(name, known)
        return self._with_fixed(names or tuple(known), fix, "")

    def _with_fixed(self, names: tuple[str, ...], fix: bool, prefix: str) -> Self:
        def wanted(full: str) -> bool:
            return any(full == name or full.endswith("." + name) for name in names)

        new = self._rebuilt(
            lambda part: (
                part.value if part.declared is not None else part.value._with_fixed(names, fix, f"{prefix}{part.name}.")
            )
        )
        own = [part.name for part in self._parts() if part.declared is not None]
        fixed = tuple(name for name in own if (fix if wanted(prefix + name) else name in self.fixed))
        return replace(new, fixed=fixed)

    def _all_names(self, prefix: str = "") -> list[str]:
        found: list[str] = []
        for part in self._parts():
            if part.declared is not None:
                found.append(prefix + part.name)
            else:
                found.extend(part.value._all_names(f"{prefix}{part.name}."))
        return found

    def _no_parameter(self, name: object, known: list[str]) -> KernelError:
        what = f"Parameters: {listing(known)}." if known else "It has none."
        return KernelError(f"{name!r} is not a parameter of {self}. {what}{did_you_mean(name, known)}")

    # -- as a value ---------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.theta.tolist())))

    def formula(self, digits: int | None = None) -> str:
        """The value as it would be written; numbers in full or to some digits."""
        shown = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("fixed", "limits") and (value == f.default or digits is not None):
                continue
            shown.append(f"{f.name}={_show(value, digits)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __repr__(self) -> str:
        return self.formula()

    def __str__(self) -> str:
        return self.formula(4)


def _plain(end: Any) -> Any:
    """A bound as a number, or a tuple of numbers for a vector."""
    array = np.asarray(end, dtype=np.float64)
    return float(array) if array.ndim == 0 else tuple(array.ravel().tolist())


def _inner(transform: Transform) -> tuple[float, float]:
    low = 1e-300 if transform.low == 0.0 else transform.low
    return low, 1.0 - 1e-16 if transform.high == 1.0 else min(transform.high, 1e300)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; words, truth values, NaN and arrays are not."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and float(value).is_integer()


def show_number(value: float, digits: int | None = None) -> str:
    """A number as short as it can be written without loss, or to some digits."""
    if digits is not None:
        return f"{value:.{digits}g}"
    text = repr(float(value))
    return text.removesuffix(".0")


def _show(value: Any, digits: int | None) -> str:
    if isinstance(value, Parametrized):
        return value.formula(digits)
    if isinstance(value, np.ndarray):
        if value.ndim == 0 or value.size > 24:
            return f"array{value.shape}" if value.ndim else show_number(float(value), digits)
        return "[" + ", ".join(_show(v, digits) for v in value) + "]"
    if isinstance(value, (float, np.floating)):
        return show_number(float(value), digits)
    if isinstance(value, tuple) and any(isinstance(v, Parametrized) for v in value):
        return "(" + ", ".join(_show(v, digits) for v in value) + ("," if len(value) == 1 else "") + ")"
    return getattr(value, "__name__", None) or repr(value)
