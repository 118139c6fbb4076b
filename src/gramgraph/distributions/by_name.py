"""Families whose parameters are variables of a model: `Dirichlet("alpha")`, `Index("phi", by="z")`.

A family called with a name in the place of a number is not a distribution but the form of a conditional: the model
in which it stands says what the name means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from gramgraph.exceptions import ModelError

#: Families that take names: those of plate models.
FAMILIES = frozenset(
    (
        "Bernoulli",
        "Beta",
        "Categorical",
        "Dirichlet",
        "Gamma",
        "Gaussian",
        "Multinomial",
        "Normal",
        "Poisson",
        "Wishart",
    )
)
#: Other words for a parameter of a family, beside the names of its fields.
OTHER_WORDS: Mapping[str, tuple[str, ...]] = {"Normal": ("precision",), "Gaussian": ("precision",)}
#: Fields that have a value of their own when they are left out.
OPTIONAL: Mapping[str, tuple[str, ...]] = {"Multinomial": ("n_trials",)}


class Reference:
    """What stands for a number: a variable, chosen or combined with others."""

    __slots__ = ()


@dataclass(frozen=True)
class Index(Reference):
    """The member of `of` at the position that the state of `by` names: φ_z.

    `of` stands in a plate that is not the child's: its members are numbered by the states of `by` (several plates:
    several names, in the order of the plates). By itself it is the conditional w ~ φ_z of a discrete variable.

    Parameters
    ----------
    of : the variable whose member is chosen.
    by : the variable whose state is the position, or several.

    Examples
    --------
    >>> Index("phi", by="z")
    Index('phi', by='z')
    """

    of: str
    by: str | tuple[str, ...]

    def __post_init__(self) -> None:
        if isinstance(self.by, list):
            object.__setattr__(self, "by", tuple(self.by))
        if not isinstance(self.of, str) or not self.selectors or not all(isinstance(n, str) for n in self.selectors):
            raise ModelError(f'names of variables are expected, as in Index("phi", by="z"); got {self!r}')

    @property
    def selectors(self) -> tuple[str, ...]:
        """Names of the variables whose states choose."""
        return (self.by,) if isinstance(self.by, str) else tuple(self.by)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it uses."""
        return (self.of, *self.selectors)

    def __repr__(self) -> str:
        return f"Index({self.of!r}, by={self.by!r})"


@dataclass(frozen=True)
class Dot(Reference):
    """The inner product of two vectors, weightsᵀx: the mean of a regression or of factor analysis.

    Each is a name, or an `Index`.

    Parameters
    ----------
    left : the first vector.
    right : the second vector.

    Examples
    --------
    >>> Dot("weights", "x")
    Dot('weights', 'x')
    """

    left: str | Index
    right: str | Index

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            if not isinstance(side, (str, Index)):
                raise ModelError(f'two names of vectors are expected, as in Dot("weights", "x"); got {side!r}')

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it uses."""
        return (*names_of(self.left), *names_of(self.right))

    def __repr__(self) -> str:
        return f"Dot({self.left!r}, {self.right!r})"


@dataclass(frozen=True, repr=False)
class _Link(Reference):
    """A function of a real variable, of an `Index` or of a `Dot`, in the place of a parameter."""

    of: str | Index | Dot

    def __post_init__(self) -> None:
        if not isinstance(self.of, (str, Index, Dot)):
            raise ModelError(f"{type(self).__name__} takes the name of a variable, Index or Dot; got {self.of!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it uses."""
        return names_of(self.of)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.of!r})"


class Exp(_Link):
    """e^η: a rate or a precision whose logarithm is a real variable or a linear predictor.

    Parameters
    ----------
    of : the variable, or the linear predictor (`Dot`), that η is.

    Examples
    --------
    >>> from gramgraph.distributions import Poisson
    >>> Poisson(Exp(Dot("weights", "x")))
    Poisson(Exp(Dot('weights', 'x')))
    """


class Logistic(_Link):
    """1/(1 + e^−η): a probability whose logit is a real variable or a linear predictor.

    Parameters
    ----------
    of : the variable, or the linear predictor (`Dot`), that η is.

    Examples
    --------
    >>> from gramgraph.distributions import Bernoulli
    >>> Bernoulli(Logistic("ability"))
    Bernoulli(Logistic('ability'))
    """


@dataclass(frozen=True, eq=False)
class ByName:
    """A family given variables: what `gg.Dirichlet("alpha")` is, by parameter.

    Parameters
    ----------
    family : the class of distributions.
    arguments : what each parameter is: numbers, a name, an `Index` or a `Dot`.

    Examples
    --------
    >>> from gramgraph.distributions import Normal
    >>> form = Normal("mu", precision="tau")
    >>> form, form.names
    (Normal('mu', precision='tau'), ('mu', 'tau'))
    """

    family: type
    arguments: Mapping[str, Any]  # parameter → number, name, Index, Dot or a link

    @classmethod
    def of(cls, family: type, given: tuple[Any, ...], named: Mapping[str, Any]) -> ByName:
        """From the arguments of a call; a `ModelError` for words that are not parameters of the family."""
        own = [f.name for f in fields(family) if f.init]  # type: ignore[arg-type]
        known = (*own, *OTHER_WORDS.get(family.__name__, ()))
        if len(given) > len(own):
            raise ModelError(f"{family.__name__} takes {', '.join(own)}; got {len(given)} arguments")
        arguments = dict(zip(own, given, strict=False))
        for word, value in named.items():
            if word not in known or word in arguments:
                raise ModelError(f"{family.__name__} takes {', '.join(known)}; {word!r} is not expected here")
            arguments[word] = value
        spread = [w for w in ("variance", "cov", "precision") if w in arguments]
        if len(spread) > 1:
            raise ModelError(f"{family.__name__} takes one of {' and '.join(spread)}, not both")
        left = () if spread and "precision" in spread else OPTIONAL.get(family.__name__, ())
        needed = [w for w in own if w not in left and not (w in ("variance", "cov") and spread)]
        if missing := [w for w in needed if w not in arguments]:
            raise ModelError(f"{family.__name__} needs {', '.join(missing)} too")
        return cls(family, arguments)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables that it uses, in order."""
        return tuple(dict.fromkeys(name for value in self.arguments.values() for name in names_of(value)))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self.arguments.items())

    def __repr__(self) -> str:
        own = [f.name for f in fields(self.family)]  # type: ignore[arg-type]
        shown = [repr(v) if w in own[: i + 1] else f"{w}={v!r}" for i, (w, v) in enumerate(self.arguments.items())]
        return f"{self.family.__name__}({', '.join(shown)})"


def is_by_name(family: type, given: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Whether the arguments of a call name variables, or use a word that the distribution itself does not have."""
    if family.__name__ not in FAMILIES:
        return False
    other = OTHER_WORDS.get(family.__name__, ())
    return any(isinstance(v, (str, Reference)) for v in (*given, *named.values())) or any(w in other for w in named)


def names_of(value: Any) -> tuple[str, ...]:
    """Names of the variables that an argument uses; none for a number."""
    if isinstance(value, str):
        return (value,)
    return value.names if isinstance(value, (Index, Dot, _Link)) else ()
