"""The types of all variables of a function, found with less repetition than Numba's own way.

Numba asks every statement again and again for the types that follow from it, until a whole round brings nothing new.
Here a statement is asked again only when a type has changed that it looked at.
"""

from __future__ import annotations

from typing import Any

from numba.core import errors, types, utils
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NopythonTypeInference
from numba.core.typeinfer import ConstraintNetwork, TypeInferer, TypeVarMap

__all__ = ["Inference"]


class _Variables(TypeVarMap):  # type: ignore[misc]
    """The variables by name; it knows which ones were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        self.seen.append(found)
        return found


class _Network(ConstraintNetwork):  # type: ignore[misc]
    """What the statements say of types."""

    def __init__(self) -> None:
        super().__init__()
        self._settled: dict[int, list[tuple[Any, Any]]] = {}  # number → the variables it looked at, and their types

    def propagate(self, typeinfer: Any) -> list[Any]:
        """Ask all statements that have not been asked since something changed; what went wrong is returned."""
        found: list[Any] = []
        where = typeinfer.func_ir.loc
        with typeinfer.warnings.catch_warnings(filename=where.filename, lineno=where.line):
            for number, constraint in enumerate(self.constraints):
                if not self._is_settled(number):
                    self._ask(number, constraint, typeinfer, found)
        return found

    def _is_settled(self, number: int) -> bool:
        known = self._settled.get(number)
        return known is not None and all(variable.type is kind for variable, kind in known)

    def _ask(self, number: int, constraint: Any, typeinfer: Any, found: list[Any]) -> None:
        seen = typeinfer.typevars.seen
        seen.clear()
        typeinfer.refined = False
        self._settled.pop(number, None)
        try:
            constraint(typeinfer)
        except errors.ForceLiteralArg as error:
            found.append(error)
        except errors.TypingError as error:
            again = errors.TypingError(str(error), loc=constraint.loc, highlighting=False)
            found.append(utils.chain_exception(again, error))
        else:
            if not typeinfer.refined and not any(isinstance(each.type, types.RecursiveCall) for each in seen):
                self._settled[number] = [(each, each.type) for each in seen]


class _Inferer(TypeInferer):  # type: ignore[misc]
    """Numba's own, with these variables and this network."""

    refined = False

    def __init__(self, context: Any, func_ir: Any, warnings: Any) -> None:
        super().__init__(context, func_ir, warnings)
        self.typevars = _Variables()
        self.typevars.set_context(context)
        self.constraints = _Network()

    def propagate_refined_type(self, updated_var: str, updated_type: Any) -> None:
        """A type became more precise than what follows from the statement that gave it."""
        if updated_var in self.refine_map:
            self.refined = True
        super().propagate_refined_type(updated_var, updated_type)


@register_pass(mutates_CFG=False, analysis_only=False)
class Inference(NopythonTypeInference):  # type: ignore[misc]
    """Numba's step that finds the types of a function."""

    _name = "type_inference_of_what_changed"

    def run_pass(self, state: Any) -> bool:
        """Find them from those of the arguments."""
        caught = errors.WarningsFixer(errors.NumbaWarning)  # type: ignore[attr-defined]
        inferer = _Inferer(state.typingctx, state.func_ir, caught)
        calls = state.typingctx.callstack
        with calls.register(state.targetctx.target, inferer, state.func_ir.func_id, state.args), caught:
            for number, (name, kind) in enumerate(zip(state.func_ir.arg_names, state.args, strict=True)):
                inferer.seed_argument(name, number, kind)
            if state.return_type is not None:
                inferer.seed_return(state.return_type)
            for name, kind in state.locals.items():
                inferer.seed_type(name, kind)
            inferer.build_constraint()
            state.typing_errors = inferer.propagate()
            state.typemap, state.return_type, state.calltypes = inferer.unify()
        return False
