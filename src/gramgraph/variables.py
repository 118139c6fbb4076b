"""Variables and their domains: what a node of a graph can take as value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import index as whole
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, StateError
from gramgraph.typing import FloatArray

__all__ = [
    "Circle",
    "Counts",
    "Discrete",
    "Domain",
    "Matrix",
    "Points",
    "Positive",
    "Real",
    "Simplex",
    "Sphere",
    "Unit",
    "Var",
    "binary",
    "discrete",
    "domain_of_word",
    "join",
    "real",
]

#: Numbers of a probability vector, of counts, or rows of a matrix, at most.
LARGEST_SIZE = 1_000_000
#: Domains of up to so many states are shared between variables.
FEW_STATES = 16
_TRUE, _FALSE = ("yes", "true", "1"), ("no", "false", "0")


class Domain:
    """What values a variable may take. Kinds of domain are frozen values.

    Examples
    --------
    >>> from gramgraph.variables import real
    >>> isinstance(real("x").domain, Domain)
    True
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Discrete(Domain):
    """Finitely many labelled states, in a fixed order.

    Parameters
    ----------
    states : the labels, in order.

    Examples
    --------
    >>> Discrete(("low", "high")).states
    ('low', 'high')
    """

    states: tuple[str, ...]
    codes: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", {label: i for i, label in enumerate(self.states)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Discrete) and self.states == other.states

    def __hash__(self) -> int:
        return hash(self.states)

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.states)

    def find(self, value: object) -> int:
        """Index of a state given by its label, or -1.

        A number stands for the label it prints as (`1`, and `1.0` too, for "1" or "+1"), and a truth value for
        the one state that reads yes, true or 1 (no, false or 0). No other spelling is repaired.
        """
        if isinstance(value, str):
            return self.codes.get(value, -1)
        if isinstance(value, (bool, np.bool_)):
            return self._find_truth(bool(value))
        found = self.codes.get(str(value), -1)
        if found < 0 and isinstance(value, (float, np.floating)) and float(value).is_integer():
            found = self.codes.get(str(int(value)), -1)
        if found < 0 and isinstance(value, (int, float, np.number)) and float(value).is_integer():  # type: ignore[arg-type]
            found = self.codes.get(f"{int(value):+d}", -1)  # type: ignore[arg-type]
        return found

    def _find_truth(self, value: bool) -> int:
        words = _TRUE if value else _FALSE
        found = [i for i, label in enumerate(self.states) if label.lower() in words]
        return found[0] if len(found) == 1 else -1


@dataclass(frozen=True, slots=True)
class Real(Domain):
    """Real numbers (`dimension` 1), or real vectors of a fixed length.

    Parameters
    ----------
    dimension : number of components.

    Examples
    --------
    >>> Real().read(2, "x").tolist(), Real(2).read([1.0, 3.0], "x").tolist()
    ([2.0], [1.0, 3.0])
    """

    dimension: int = 1

    def __post_init__(self) -> None:
        try:
            size = whole(self.dimension)
        except TypeError:
            size = 0
        if size < 1 or isinstance(self.dimension, bool):
            raise ModelError(f"the dimension of a real variable is a whole number from 1, not {self.dimension!r}")
        object.__setattr__(self, "dimension", size)

    def read(self, value: Any, name: str) -> FloatArray:
        """A value as a vector of `dimension` finite numbers; a `StateError` that names the variable otherwise."""
        wanted = "a number" if self.dimension == 1 else f"{self.dimension} numbers"
        if isinstance(value, (str, bytes, bool, np.bool_)):
            raise StateError(f"{name} is real-valued: {wanted} expected, not {value!r}")
        try:
            found = np.asarray(value, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise StateError(f"{name} is real-valued: {wanted} expected, not {value!r}") from None
        if len(found) != self.dimension:
            raise StateError(f"{name} takes {wanted}, got {len(found)}: {value!r}")
        if not np.isfinite(found).all():
            raise StateError(
                f"{name} takes finite numbers, got {value!r}. Leave out what was not observed (or give None)"
            )
        return found

    def __repr__(self) -> str:
        return "real" if self.dimension == 1 else f"real^{self.dimension}"


@dataclass(frozen=True, slots=True)
class Positive(Real):
    """Numbers above 0, whose noise multiplies.

    Parameters
    ----------
    dimension : number of components.

    Examples
    --------
    >>> Var("income", Positive())
    income{positive}
    """

    def read(self, value: Any, name: str) -> FloatArray:
        """As `Real.read`, and above 0."""
        found = Real.read(self, value, name)
        if (found <= 0.0).any():
            raise StateError(f"{name} takes numbers above 0 (domain 'positive'); it was given {value!r}.")
        return found

    def __repr__(self) -> str:
        return "positive"


@dataclass(frozen=True, slots=True)
class Circle(Real):
    """Angles in radians: the ends of a turn are one value.

    Parameters
    ----------
    dimension : 1.

    Examples
    --------
    >>> Var("direction", Circle())
    direction{circle}
    """

    def __repr__(self) -> str:
        return "circle"


@dataclass(frozen=True, slots=True)
class Sphere(Real):
    """Directions: vectors of length 1, as a rule of three numbers.

    Parameters
    ----------
    dimension : number of components.

    Examples
    --------
    >>> Var("heading", Sphere()), Sphere().read([0.0, 0.0, 2.0], "heading").tolist()
    (heading{sphere}, [0.0, 0.0, 1.0])
    """

    dimension: int = 3

    def read(self, value: Any, name: str) -> FloatArray:
        """As `Real.read`, divided by its length."""
        found = Real.read(self, value, name)
        length = float(np.linalg.norm(found))
        if not length > 0.0:
            raise StateError(f"{name} takes directions (domain 'sphere'); {value!r} has none.")
        return np.asarray(found / length)

    def __repr__(self) -> str:
        return "sphere" if self.dimension == 3 else f"sphere^{self.dimension}"


@dataclass(frozen=True, slots=True)
class Unit(Real):
    """Numbers from 0 to 1, such as the probability of a success.

    Parameters
    ----------
    dimension : number of components.

    Examples
    --------
    >>> Var("bias", Unit())
    bias{unit}
    """

    def read(self, value: Any, name: str) -> FloatArray:
        """As `Real.read`, and from 0 to 1."""
        found = Real.read(self, value, name)
        if (found < 0.0).any() or (found > 1.0).any():
            raise StateError(f"{name} takes numbers from 0 to 1 (domain 'unit'); it was given {value!r}.")
        return found

    def __repr__(self) -> str:
        return "unit"


@dataclass(frozen=True, slots=True)
class Simplex(Real):
    """Probabilities of `dimension` states: numbers from 0 that sum to 1.

    Parameters
    ----------
    dimension : number of states.

    Examples
    --------
    >>> Var("theta", Simplex(3)), Simplex(2).read([0.25, 0.75], "theta").tolist()
    (theta{simplex 3}, [0.25, 0.75])
    """

    dimension: int = 2

    def read(self, value: Any, name: str) -> FloatArray:
        """As `Real.read`, and a distribution."""
        found = Real.read(self, value, name)
        if (found < 0.0).any() or abs(float(found.sum()) - 1.0) > 1e-6:
            raise StateError(f"{name} takes probabilities that sum to 1 (domain 'simplex'); it was given {value!r}.")
        return np.asarray(found / found.sum())

    def __repr__(self) -> str:
        return f"simplex {self.dimension}"


@dataclass(frozen=True, slots=True)
class Counts(Real):
    """Whole numbers from 0, or vectors of them.

    Parameters
    ----------
    dimension : number of components.

    Examples
    --------
    >>> Var("visits", Counts()), Var("words", Counts(5))
    (visits{count}, words{counts 5})
    """

    def read(self, value: Any, name: str) -> FloatArray:
        """As `Real.read`, and whole numbers from 0."""
        found = Real.read(self, value, name)
        if (found < 0.0).any() or (found != np.floor(found)).any():
            raise StateError(f"{name} takes whole numbers from 0 (domain 'count'); it was given {value!r}.")
        return found

    def __repr__(self) -> str:
        return "count" if self.dimension == 1 else f"counts {self.dimension}"


@dataclass(frozen=True, slots=True)
class Matrix(Real):
    """Symmetric positive definite matrices of `side` rows, such as a precision; kept as side² numbers, row by row.

    Parameters
    ----------
    dimension : side².
    side : number of rows.

    Examples
    --------
    >>> Var("precision", Matrix(side=2))
    precision{matrix 2}
    """

    dimension: int = 1
    side: int = 1

    def __post_init__(self) -> None:
        Real(self.side)  # checks
        object.__setattr__(self, "dimension", self.side * self.side)

    def read(self, value: Any, name: str) -> FloatArray:
        """As `Real.read`, and symmetric with positive eigenvalues."""
        found = Real.read(self, value, name)
        square = found.reshape(self.side, self.side)
        if not np.allclose(square, square.T) or np.linalg.eigvalsh(square)[0] <= 0.0:
            raise StateError(f"{name} takes positive definite matrices (domain 'matrix'); it was given {value!r}.")
        return found

    def __repr__(self) -> str:
        return f"matrix {self.side}"


@dataclass(frozen=True, slots=True)
class Points(Domain):
    """Points of a space with a kernel, which says how alike they are: `kind` is vector, sphere, set or string.

    Parameters
    ----------
    kind : "vector", "sphere", "set" or "string".

    Examples
    --------
    >>> Var("word", Points("string"))
    word{string}
    """

    kind: str

    def __repr__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A named variable with its domain; a list of labels stands for the discrete domain of these states.

    Parameters
    ----------
    name : how it is called.
    domain : a domain, or a list of labels.

    Examples
    --------
    >>> discrete("HR", ["LOW", "NORMAL", "HIGH"]).index("HIGH")
    2
    >>> Var("HR", ["LOW", "HIGH"]), Var("height", Real())
    (HR{LOW|HIGH}, height{real})
    """

    name: str
    domain: Domain

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            object.__setattr__(self, "domain", _domain(self.name, self.domain))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Var) and self.name == other.name and self.domain == other.domain

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def discrete(self) -> Discrete:
        """The labelled states; a `ModelError` for a variable of another kind."""
        if isinstance(self.domain, Discrete):
            return self.domain
        raise ModelError(f"{self.name} is not a discrete variable but {self.domain!r}")

    @property
    def dimension(self) -> int:
        """Length of the vectors of a real variable; a `ModelError` for a variable of another kind."""
        if isinstance(self.domain, Real):
            return self.domain.dimension
        raise ModelError(f"{self.name} is not a real-valued variable but {self!r}")

    @property
    def is_discrete(self) -> bool:
        """Whether the variable has labelled states."""
        return isinstance(self.domain, Discrete)

    @property
    def is_real(self) -> bool:
        """Whether its values are numbers, or vectors of a fixed length."""
        return isinstance(self.domain, Real)

    @property
    def states(self) -> tuple[str, ...]:
        """The labels, in order."""
        return self.discrete.states

    @property
    def size(self) -> int:
        """Number of states."""
        domain = self.domain
        return len(domain.states if isinstance(domain, Discrete) else self.discrete.states)

    def index(self, value: object) -> int:
        """Index of a state given by its label; `StateError` with the nearest label when there is none."""
        found = self.discrete.find(value)
        if found < 0:
            raise StateError.unknown(value, self.name, self.states)
        return found

    def __repr__(self) -> str:
        shown = "|".join(self.states) if isinstance(self.domain, Discrete) else repr(self.domain)
        return f"{self.name}{{{shown}}}"


#: Words in the place of labels that name a domain; a number of components may follow, as in real^3.
_WORDS: dict[str, type[Real]] = {"real": Real, "positive": Positive, "circle": Circle, "sphere": Sphere}


def domain_of_word(word: str, name: str) -> Domain | None:
    """The domain that a word in an edge string names: real, real^3, positive, circle, sphere, unit, simplex 3,
    count, counts 3, matrix 2, set, string; None for a label.

    Parameters
    ----------
    word : as it stands in the string.
    name : of the variable, for errors.

    Examples
    --------
    >>> domain_of_word("circle", "wind"), domain_of_word("real^3", "x"), domain_of_word("open", "site")
    (circle, real^3, None)
    """
    if (sized := _sized(word, name)) is not None:
        return sized
    kind, _, size = word.partition("^")
    if word in ("set", "string"):
        return Points(word)
    if kind not in _WORDS:
        return None
    if kind in ("positive", "circle") and size:
        raise ModelError(f"{name}: {kind} is a domain of single numbers; got {word!r}")
    if "^" in word and not size.isdecimal():
        raise ModelError(f"{name}: {kind}^3 means vectors of 3 reals; got {word!r}")
    if kind in ("positive", "circle"):
        return _WORDS[kind]()
    return _WORDS[kind](int(size)) if size else _WORDS[kind]()


def _sized(word: str, name: str) -> Domain | None:
    """Domains whose size follows after a space: simplex 3, counts 3, matrix 2; also count and unit."""
    kind, *size = word.split() or ("",)
    if kind in ("count", "unit") and not size:
        return Counts() if kind == "count" else Unit()
    if kind not in ("simplex", "counts", "matrix") or (not size and kind != "simplex"):
        return None
    if len(size) != 1 or not size[0].isdecimal() or not 1 <= int(size[0]) <= LARGEST_SIZE:
        raise ModelError(f"{name}: a size is written {kind} 3; got {word!r}")
    if kind == "matrix":
        return Matrix(side=int(size[0]))
    return Counts(int(size[0])) if kind == "counts" else Simplex(int(size[0]))


def _domain(name: str, given: Any) -> Domain:
    """The domain that labels stand for; a `ModelError` that says how domains are written otherwise."""
    if isinstance(given, (list, tuple, np.ndarray)):
        return _labelled(tuple(map(str, given)))
    raise ModelError(f"{name}: expected a domain, got {given!r}. Try: a list of labels, or Real() (a vector: Real(3)).")


def discrete(name: str, states: Iterable[object] | int) -> Var:
    """A discrete variable from its labels, or from their number (labels "0", "1", …).

    Parameters
    ----------
    name : of the variable.
    states : the labels, or their number.

    Examples
    --------
    >>> discrete("sky", ["sun", "rain"]), discrete("die", 6).states
    (sky{sun|rain}, ('0', '1', '2', '3', '4', '5'))
    """
    labels = tuple(map(str, range(states)) if isinstance(states, int) else map(str, states))
    return Var(name, _labelled(labels))


def real(name: str, dimension: int = 1) -> Var:
    """A real-valued variable, or a vector of `dimension` reals.

    Parameters
    ----------
    name : how it is called.
    dimension : components of the vector.

    Examples
    --------
    >>> real("height"), real("position", 3)
    (height{real}, position{real^3})
    """
    return Var(name, Real(dimension))


def binary(name: str) -> Var:
    """A variable with the states no and yes, in this order.

    Parameters
    ----------
    name : of the variable.

    Examples
    --------
    >>> binary("wet")
    wet{no|yes}
    """
    return Var(name, _shared(("no", "yes")))


def _labelled(labels: tuple[str, ...]) -> Discrete:
    return _shared(labels) if len(labels) <= FEW_STATES else Discrete(labels)


@lru_cache(maxsize=1024)
def _shared(labels: tuple[str, ...]) -> Discrete:
    """One domain for all variables with these labels: a million of them would take a quarter of a gigabyte."""
    return Discrete(labels)


def join(*scopes: tuple[Var, ...]) -> tuple[Var, ...]:
    """Union of scopes in first-seen order (never through a set: the order must not depend on the hash seed).

    Parameters
    ----------
    *scopes : tuples of variables.

    Examples
    --------
    >>> a, b, c = map(binary, "abc")
    >>> join((a, b), (b, c))
    (a{no|yes}, b{no|yes}, c{no|yes})
    """
    return tuple(dict.fromkeys(var for scope in scopes for var in scope))
