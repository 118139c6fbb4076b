"""Further questions about discrete models: sessions, k best, interventions, draws, information, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from fuzz.asked import Given, Limits, draw_given, possible
from fuzz.trials import Trial, Wrong, close
from fuzz.truth import Joint, log
from fuzz.worlds import World
from gramgraph.exceptions import GramGraphError, ImpossibleEvidenceError, ModelError, OptionError

__all__ = ["RARE", "full_states", "k_best", "marginal_map", "may_refuse", "session", "single_cell"]


def full_states(world: World, given: Given, assignment: Mapping[str, str]) -> tuple[int, ...]:
    """State numbers of an assignment of the unobserved variables, completed by what was observed."""
    missing = [var.name for i, var in enumerate(world.variables) if i not in given.hard and var.name not in assignment]
    extra = [name for name in assignment if world.model.index(name) in given.hard]
    if missing or extra:
        raise Wrong(f"the assignment lacks {missing} and holds the observed {extra}")
    return tuple(
        given.hard[i] if i in given.hard else var.index(assignment[var.name]) for i, var in enumerate(world.variables)
    )


def may_refuse(engine: str, error: Exception) -> bool:
    """Whether a search may give up here: zeros can leave it without a start, and graph cuts serve attractive pairs."""
    if not isinstance(error, ModelError | OptionError):
        return False
    return engine == "graph_cut" or "found no assignment" in str(error)


# ------------------------------------------------------------------------------------------------ every world


def session(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Observations come and go; beliefs follow."""
    steps = [draw_given(rng, world, observe=0.3, reach=reach) for _ in range(4)]
    steps = [Given(s.evidence, {}, s.hard, {i: s.weights[i] for i in _named(world, s)}) for s in steps]
    forgets = [rng.permutation(len(world.variables)).tolist()[: int(rng.integers(3))] for _ in steps]

    def check() -> None:
        case = world.model.session()
        weights: dict[int, np.ndarray] = {}
        for step, forget in zip(steps, forgets, strict=True):
            case.observe(step.evidence)
            for name in step.evidence:
                weights.pop(world.model.index(name), None)
            weights |= step.weights
            gone = [world.variables[i].name for i in forget if world.variables[i].name in case.evidence]
            if gone:
                case.retract(*gone)
            for name in gone:
                weights.pop(world.model.index(name), None)
            _check_session(world, case, world.joint.weighed(weights), limits)

    text = "; ".join(f"observe({s.evidence}), retract{tuple(f)}" for s, f in zip(steps, forgets, strict=True))
    yield Trial(f"session: {text}", check, world.about, len(steps))


def _named(world: World, given: Given) -> list[int]:
    """Variables whose weights come from the evidence itself (a session takes no virtual evidence beside it)."""
    both = [name for name in given.evidence if name in given.virtual]
    for name in both:  # the weights hold both: keep the observed state only
        i = world.model.index(name)
        given.weights[i] = log(np.arange(world.variables[i].size) == given.hard[i])
    return [i for i in given.weights if world.variables[i].name in given.evidence]


def _check_session(world: World, case: Any, joint: Joint, limits: Limits) -> None:
    limits.evidence(case.log_evidence, joint.log_z, "log p(e) of a session")
    try:
        answer = case.query()
    except ImpossibleEvidenceError:
        if joint.best > -np.inf:
            raise
        return
    if joint.best == -np.inf:
        raise Wrong("a session answered impossible evidence")
    for name in answer:
        truth = joint.belief((world.model.index(name),))
        limits.belief(answer[name].probabilities, truth, f"p({name} | e) of a session")


def k_best(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """The k best assignments: their values, all different, all attained."""
    given, k = draw_given(rng, world, observe=0.2, reach=reach), int(rng.integers(1, 9))

    def check() -> None:
        joint = given.truth(world)
        found = possible(world, given, joint, partial(world.model.map_query, given.evidence, k=k, **given.options))
        if found is None:
            return
        limits.value([best.log_prob for best in found], joint.best_values(k), f"values of the {k} best")
        states = [full_states(world, given, best.assignment) for best in found]
        if len(set(states)) != len(states):
            raise Wrong(f"one of the {k} best came twice")
        limits.value([joint.logs[s] for s in states], joint.best_values(k), f"values at the {k} best")

    yield Trial(f"map_query({given}, k={k})", check, world.about)


def marginal_map(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """The best states of some variables, the others summed out."""
    given = draw_given(rng, world, observe=0.2, reach=reach)
    free = [i for i in rng.permutation(len(world.variables)).tolist() if i not in given.hard]
    wanted = free[: int(rng.integers(1, 4))]
    if not wanted:
        return
    names = [world.variables[i].name for i in wanted]

    def check() -> None:
        joint = given.truth(world)
        ask = partial(world.model.map_query, given.evidence, targets=names, **given.options)
        found = possible(world, given, joint, ask)
        if found is None:
            return
        best, table = joint.best_of(wanted)
        limits.value(found.log_prob, best, "value of the marginal MAP")
        at = tuple(world.variables[i].index(found.assignment[world.variables[i].name]) for i in wanted)
        limits.value(table[at], best, "value at the marginal MAP")
        if not found.exact:
            raise Wrong("exact is False")

    yield Trial(f"map_query({given}, targets={names})", check, world.about)


def single_cell(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """log p of full assignments."""
    cells = [tuple(int(rng.integers(var.size)) for var in world.variables) for _ in range(3)]

    def check() -> None:
        for cell in cells:
            full = {var.name: var.states[s] for var, s in zip(world.variables, cell, strict=True)}
            limits.evidence(world.model.joint_log_prob(full), world.joint.logs[cell], "joint_log_prob")

    yield Trial(f"joint_log_prob at {cells}", check, world.about, len(cells))


# ------------------------------------------------------------------------------------------------ now and then


def draws(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Draws lie where the joint is positive, and are spread as it is (false alarm: 1e-9 a trial)."""
    given, seed = draw_given(rng, world, observe=0.2, reach=reach), int(rng.integers(1 << 30))
    i = int(rng.integers(len(world.variables)))

    def check() -> None:
        joint = given.truth(world)
        ask = partial(world.model.sample, 400, given.evidence, random_state=seed, **given.options)
        frame = possible(world, given, joint, ask)
        if frame is None:
            return
        columns = [frame[var.name].map(var.index).to_numpy(dtype=int) for var in world.variables]
        if not (joint.logs[tuple(columns)] > -np.inf).all():
            raise Wrong("a draw lies where the probability is zero")
        p = joint.belief((i,))
        share = np.bincount(columns[i], minlength=len(p)) / 400.0
        # |share − p| > 6.6 sd + 12 / n has probability below 1e-9 for a mean of n Bernoulli draws (Bernstein).
        off = np.abs(share - p) > 6.6 * np.sqrt(np.maximum(p * (1.0 - p), 0.0) / 400.0) + 14.0 / 400.0
        if off.any():
            raise Wrong(f"shares of draws: {share.tolist()}, probabilities {p.tolist()}")

    yield Trial(f"sample(400, {given}, random_state={seed})", check, world.about)


def intervention(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """do(x = state): the conditional of x is replaced, all others stay."""
    if not world.directed:
        return
    i, given = int(rng.integers(len(world.variables))), draw_given(rng, world, observe=0.2, reach=reach)
    var = world.variables[i]
    state = int(rng.integers(var.size))

    def check() -> None:
        parts = [
            part if place != i else ((i,), log(np.arange(var.size) == state)) for place, part in enumerate(world.parts)
        ]
        joint = Joint(world.joint.sizes, parts).weighed(given.weights)
        model = world.model.do({var.name: var.states[state]})
        limits.evidence(model.log_evidence(given.evidence, **given.options), joint.log_z, "log p(e) after do")
        if joint.best > -np.inf:
            for j, other in enumerate(world.variables):
                found = model.query(other.name, given.evidence, **given.options)[other.name].probabilities
                limits.belief(found, joint.belief((j,)), f"p({other.name} | e) after do")

    yield Trial(f"do({{{var.name!r}: {var.states[state]!r}}}) and evidence {given}", check, world.about)


def _hard_only(rng: np.random.Generator, world: World) -> Given:
    return draw_given(rng, world, observe=0.2, plain=1.0)


def information(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Entropies and mutual information of posteriors."""
    given = _hard_only(rng, world)
    free = [i for i in rng.permutation(len(world.variables)).tolist() if i not in given.hard]
    if len(free) < 2:
        return
    a, b = free[:2]
    x, y = world.variables[a].name, world.variables[b].name

    def h(p: np.ndarray) -> float:
        inside = p[p > 0]
        return float(-(inside * np.log(inside)).sum())

    def check() -> None:
        joint = world.joint.weighed(given.weights)
        if possible(world, given, joint, partial(world.model.entropy, x, given.evidence)) is None:
            return
        h_x, h_y, h_xy = (h(joint.belief(scope)) for scope in ((a,), (b,), (a, b)))
        close(world.model.entropy(x, given.evidence), h_x, "entropy", atol=1e-8)
        close(world.model.entropy([x, y], given.evidence), h_xy, "joint entropy", atol=1e-8)
        close(world.model.mutual_information(x, y, given.evidence), h_x + h_y - h_xy, "information", atol=1e-8)
        frame = world.model.most_informative(x, given.evidence, candidates=[y])
        close(frame["reduction"].iloc[0], h_x + h_y - h_xy, "reduction", atol=1e-8)
        close(frame["expected_entropy"].iloc[0], h_xy - h_y, "expected entropy", atol=1e-8)

    yield Trial(f"entropy and information of {x}, {y} given {given}", check, world.about, 4)


def sensitivity(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Answers as functions of one parameter, against the joint with that parameter changed."""
    if not world.directed or limits.p_relative:
        return
    given = _hard_only(rng, world)
    free = [i for i in range(len(world.variables)) if i not in given.hard]
    if not free:
        return
    t, i = int(rng.choice(free)), int(rng.integers(len(world.variables)))
    target, var = world.variables[t], world.variables[i]
    scope, logs = world.parts[i]
    cell = tuple(int(rng.integers(n)) for n in logs.shape)
    state, theta = int(rng.integers(target.size)), float(rng.uniform(0.05, 0.95))
    if var.size < 2:
        return
    parents = {world.variables[j].name: world.variables[j].states[s] for j, s in zip(scope[:-1], cell, strict=False)}

    def check() -> None:
        if world.joint.weighed(given.weights).best == -np.inf:
            return
        f = world.model.sensitivity_function(
            target.name,
            target.states[state],
            given.evidence,
            variable=var.name,
            value=var.states[cell[-1]],
            given=parents,
        )
        table = np.exp(logs)
        row = table[cell[:-1]].copy()
        rest = 1.0 - row[cell[-1]]
        others = row / rest if rest > 1e-12 else np.full(var.size, 1.0 / (var.size - 1))
        row = others * (1.0 - theta)
        row[cell[-1]] = theta
        table[cell[:-1]] = row
        parts = list(world.parts)
        parts[i] = (scope, log(table))
        changed = Joint(world.joint.sizes, parts).weighed(given.weights)
        if np.exp(changed.log_z) > 1e-6 and np.exp(world.joint.weighed(given.weights).log_z) > 1e-6:
            close(f(theta), changed.belief((t,))[state], "sensitivity function", atol=1e-7)

    yield Trial(
        f"sensitivity_function({target.name!r}, {target.states[state]!r}, {given}, variable={var.name!r}, "
        f"value={var.states[cell[-1]]!r}, given={parents})({theta})",
        check,
        world.about,
    )


def files(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Written as JSON and read back, the model gives the same answers."""
    from gramgraph.io.registry import load_format

    given = draw_given(rng, world, observe=0.3, reach=reach)

    def check() -> None:
        module = load_format("json")
        again = module.loads(module.dumps(world.model), source="<written>", normalize=True)
        if again.variables != world.model.variables:
            raise Wrong(f"variables after reading: {again.variables}")
        found = again.log_evidence(given.evidence, **given.options)
        limits.evidence(found, given.truth(world).log_z, "log p(e) after reading")

    yield Trial(f"write, read, log_evidence({given})", check, world.about)


def forms(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """The same model as a Markov network, a factor graph and a calibrated tree."""
    given = draw_given(rng, world, observe=0.3, reach=reach)

    def check() -> None:
        truth = given.truth(world)
        for form in ("to_markov_network", "to_factor_graph"):
            made = getattr(world.model, form)()
            limits.evidence(made.log_evidence(given.evidence, **given.options), truth.log_z, f"log p(e) after {form}")

    yield Trial(f"to_markov_network, to_factor_graph: log_evidence({given})", check, world.about, 2)


def plans(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """A plan is made for every engine, and holds what the question needs."""
    import gramgraph as gg
    from fuzz.asked import exact_engines

    n = len(world.variables)
    wanted = rng.permutation(n)[: int(rng.integers(1, 4))].tolist()
    names = [world.variables[i].name for i in wanted]
    given = [var.name for i, var in enumerate(world.variables) if i not in wanted and rng.random() < 0.3]

    def check() -> None:
        for engine in exact_engines():
            plan = gg.plan(world.model, [tuple(names)], given, engine=engine)
            if not (plan.bytes >= 0 and 0 <= plan.width <= n + 64 and str(plan)):
                raise Wrong(f"plan of {engine}: {plan}")

    yield Trial(f"plan({names}, given={given})", check, world.about)


def divergence(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Σ p log(p / q) of a network and the same network with other tables."""
    if not world.directed or limits.p_relative:
        return
    from gramgraph.analysis.information import kl_divergence

    other = world.model.random_tables(int(rng.integers(1 << 30)))

    def check() -> None:
        parts = []
        for part, var in zip(world.parts, world.variables, strict=True):
            parts.append((part[0], log(other.conditional(var.name).table())))
        p, q = world.joint.logs, Joint(world.joint.sizes, parts).logs
        inside = p > -np.inf
        truth = float((np.exp(p[inside]) * (p[inside] - q[inside])).sum())
        close(kl_divergence(world.model, other), truth, "kl_divergence", atol=1e-8, rtol=1e-9)

    yield Trial("kl_divergence from other tables", check, world.about)


def messages(rng: np.random.Generator, world: World, limits: Limits, reach: float) -> Iterator[Trial]:
    """Sum-product and max-sum, message by message, where the factor graph has no loops."""
    given = _hard_only(rng, world)

    def check() -> None:
        joint = world.joint.weighed(given.weights)
        try:
            best = world.model.max_sum(given.evidence)
        except ImpossibleEvidenceError:
            if joint.best > -np.inf:
                raise
            return
        except GramGraphError as error:
            if "loop" in str(error) or "tree" in str(error):
                return
            raise
        limits.value(best.assignment.log_prob, joint.best, "max_sum")
        sums = world.model.sum_product(given.evidence)
        limits.evidence(sums.log_evidence, joint.log_z, "log p(e) of sum_product")
        for i, var in enumerate(world.variables):
            if i not in given.hard:
                limits.belief(
                    sums.belief(var.name).probabilities, joint.belief((i,)), f"p({var.name} | e) of sum_product"
                )

    yield Trial(f"max_sum({given})", check, world.about)


#: Questions that are not asked in every world.
RARE: tuple[Callable[..., Iterator[Trial]], ...] = (
    draws,
    intervention,
    information,
    sensitivity,
    files,
    forms,
    plans,
    divergence,
    messages,
)
