"""One case as the page writes it: a list of findings, read into evidence and interventions of the library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gramgraph.evidence import Likelihood, Not
from gramgraph.exceptions import OptionError, StateError, VariableError
from gramgraph.variables import Circle, Var

#: What a finding can be: seen, not one of some states, uncertain (a likelihood), set from outside.
TYPES = ("see", "not", "like", "do")


@dataclass(frozen=True)
class Case:
    """Evidence as `query` takes it, and what was set (`do`)."""

    evidence: dict[str, Any] = field(default_factory=dict)
    do: dict[str, Any] = field(default_factory=dict)
    findings: tuple[dict[str, Any], ...] = ()

    @property
    def hard(self) -> dict[str, Any]:
        """Variables whose value is known, by observation or by setting them."""
        seen = {f["name"]: f["value"] for f in self.findings if f["type"] in ("see", "do")}
        return seen

    def texts(self, names: Any = None) -> list[str]:
        """The findings in words, all or those of these names."""
        wanted = None if names is None else set(names)
        return [finding_text(f) for f in self.findings if wanted is None or f["name"] in wanted]

    def to_python(self, source: str | None, target: str | None = None) -> str:
        """The same question in Python; `source` is the expression that makes the model, where there is one."""
        lines = ["import gramgraph as gg", ""]
        lines.append(f"net = {source}" if source else "# net is the model that was explored")
        if self.do:
            lines.append(f"net = net.do({_literal(self.do)})")
        asked = repr(target) if target else "None"
        lines.append(f"answer = net.query({asked}, evidence={_literal(self.evidence)})")
        lines.append(f"answer[{target!r}].to_dict(), answer.log_evidence" if target else "answer")
        return "\n".join(lines) + "\n"


def read_case(model: Any, findings: Any) -> Case:
    """The findings of the page, checked; an error of the library names what is wrong."""
    if not isinstance(findings, list):
        raise OptionError("a case is a list of findings")
    evidence: dict[str, Any] = {}
    do: dict[str, Any] = {}
    kept = []
    for finding in findings:
        if not isinstance(finding, Mapping) or finding.get("type") not in TYPES:
            raise OptionError(f"a finding has a name and a type ({', '.join(TYPES)}), not {finding!r}")
        name = finding.get("name")
        if not isinstance(name, str):
            raise VariableError(f"a finding has the name of a variable, not {name!r}")
        var = model.var(name)
        if name in evidence or name in do:
            raise VariableError(f"{name} has two findings")
        read = _read_finding(var, finding)
        (do if finding["type"] == "do" else evidence)[name] = read
        kept.append({"name": name, "type": finding["type"], "value": finding.get("value"), "w": finding.get("w")})
    return Case(evidence, do, tuple(kept))


def _read_finding(var: Var, finding: Mapping[str, Any]) -> Any:
    kind, value = finding["type"], finding.get("value")
    if kind == "like":
        weights = finding.get("w")
        if not isinstance(weights, list) or not all(_is_number(w) for w in weights):
            raise StateError(f"uncertain evidence about {var.name} needs one number for each state")
        return Likelihood([float(w) for w in weights])
    if kind == "not":
        labels = value if isinstance(value, list) else [value]
        if not all(isinstance(label, str) for label in labels):
            raise StateError(f"states of {var.name} are labels, not {value!r}")
        return Not(*labels)
    if var.is_discrete:
        if not isinstance(value, str):
            raise StateError(f"a state of {var.name} is a label, not {value!r}")
        return value
    if value is None or not _is_number(value):
        raise StateError(f"{var.name} takes a number, not {value!r}")
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def finding_text(finding: Mapping[str, Any]) -> str:
    """A finding in words, such as `lung = yes`."""
    name, value = finding["name"], finding["value"]
    if finding["type"] == "like":
        return f"{name} uncertain"
    labels = ", ".join(map(str, value)) if isinstance(value, list) else value_text(value)
    if finding["type"] == "not":
        return f"{name} not {labels}"
    return f"{name} {'set to' if finding['type'] == 'do' else '='} {labels}"


def value_text(value: Any) -> str:
    """A value as it is shown: a label, or a number of about four digits."""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value)


def is_circle(var: Var) -> bool:
    """Whether the values are angles."""
    return isinstance(var.domain, Circle)


def _literal(values: Mapping[str, Any]) -> str:
    parts = []
    for name, value in values.items():
        if isinstance(value, Not):
            text = f"gg.Not({', '.join(map(repr, value.states))})"
        elif isinstance(value, Likelihood):
            text = f"gg.Likelihood({list(value.weights)!r})"
        else:
            text = repr(value)
        parts.append(f"{name!r}: {text}")
    return "{" + ", ".join(parts) + "}"
