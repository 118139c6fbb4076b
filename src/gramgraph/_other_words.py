"""Words of other libraries, answered with ours: who calls `net.get_cpds` reads that it is `net.cpt[name]` here.

Attributes and options that do not exist are errors anyway; here they are errors that help. Nothing is renamed and
nothing works under two names.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from gramgraph._signatures import InitSignature
from gramgraph.exceptions import ModelWarning

__all__ = ["DEFAULTS", "NAMES", "OPTIONS", "WORDS", "OtherWords"]

#: Attributes of other libraries' networks.
_OF_NETWORKS: Mapping[str, str] = {
    "active_trail_nodes": "net.separation(source, given), or net.is_dconnected(a, b, given=…)",
    "add_cpds": "cpds={…} when the network is made, or gg.BayesianNetwork.draft(…); a network never changes",
    "add_edge": "gg.BayesianNetwork.draft(…); a network never changes",
    "add_edges_from": "gg.BayesianNetwork.draft(…); a network never changes",
    "add_node": "gg.BayesianNetwork.draft(…); a network never changes",
    "addArc": "gg.BayesianNetwork.draft(…); a network never changes",
    "arcs": "net.edges",
    "bn_fit": "net.fit(frame)",
    "cardinality": "len(net.states(name))",
    "cpds": "net.cpt[name], or net.conditional(name)",
    "cpquery": "net.query(targets, evidence)",
    "get_cardinality": "len(net.states(name))",
    "get_children": "net.children(name)",
    "get_cpds": "net.cpt[name], or net.conditional(name) for what is not a table",
    "get_independencies": "net.independencies()",
    "get_leaves": "net.leaves",
    "get_markov_blanket": "net.markov_blanket(name)",
    "get_parents": "net.parents(name)",
    "get_roots": "net.roots",
    "get_state_probability": "net.query(names), or exp(net.log_evidence(states))",
    "is_imap": "net.is_i_map(joint)",
    "local_independencies": "net.independencies()",
    "map": "net.map_query(evidence=…)",
    "mb": "net.markov_blanket(name)",
    "names": "net.variables",
    "nbr": "net.markov_blanket(name), net.parents(name), net.children(name)",
    "nodes": "net.variables",
    "posterior": "net.query(name, evidence)",
    "predict": "net.map_query(evidence=frame) for states, net.query(evidence=frame) for probabilities",
    "predict_probability": "net.query(evidence=frame)",
    "query_all": "net.query(evidence=…)",
    "rbn": "net.sample(n)",
    "save": "gg.write(net, path)",
    "simulate": "net.sample(n, evidence=…), after net.do(…) for interventions",
    "size": "len(net)",
    "state_names": "net.states(name)",
    "to_joint_gaussian": "net.to_gaussian()",
    "to_markov_model": "net.to_markov_network()",
}

_LEARN = "gg.learn_structure(frame, method={!r})"
_ASK = 'net.query(targets, evidence, engine={!r}); "auto" chooses'
#: Names at the top of other libraries.
NAMES: Mapping[str, str] = {
    "ApproxInference": _ASK.format("likelihood_weighting"),
    "BNLearner": "gg.learn_structure(frame) and net.fit(frame)",
    "BayesNet": "gg.BayesianNetwork",
    "BayesianEstimator": 'net.fit(frame, prior="bdeu")',
    "BayesianModel": "gg.BayesianNetwork",
    "BeliefPropagation": _ASK.format("junction_tree"),
    "CRF": "gg.LinearChainCRF",
    "CascadeClassifier": "gg.vision.Cascade.read_opencv(path)",
    "CausalInference": "net.identify(y, do=x), net.adjustment_sets(x, y), net.do({x: value})",
    "DiscreteBayesianNetwork": "gg.BayesianNetwork",
    "DiscreteFactor": "gg.factors.TableFactor",
    "DiscreteMarkovNetwork": "gg.MarkovNetwork",
    "ExactGP": "gg.GaussianProcessRegressor",
    "ExpectationMaximization": "net.fit(frame): EM where cells are missing",
    "GES": _LEARN.format("ges"),
    "GMMHMM": "gg.sequences.GaussianMixtureHMM",
    "GibbsSampling": _ASK.format("gibbs"),
    "GraphicalLassoCV": 'gg.GraphicalLasso(alpha="cv")',
    "HillClimbSearch": _LEARN.format("hill_climb"),
    "LazyPropagation": _ASK.format("junction_tree"),
    "LinearGaussianBayesianNetwork": "gg.BayesianNetwork with {real} variables",
    "MarkovModel": "gg.MarkovNetwork",
    "MaximumLikelihoodEstimator": "net.fit(frame)",
    "MultinomialHMM": "gg.CategoricalHMM",
    "NuSVC": "gg.SVC(nu=…)",
    "NuSVR": "gg.SVR(nu=…)",
    "PC": _LEARN.format("pc"),
    "TabularCPD": "gg.Table, or a plain list or dict in cpds={…}",
    "TreeSearch": _LEARN.format("chow_liu"),
    "UnobservedComponents": "gg.sequences.Trend() + gg.sequences.Season(12), then .fit(y)",
    "VariableElimination": _ASK.format("elimination"),
    "bn_fit": "net.fit(frame)",
    "boot_strength": "gg.learn.bootstrap_edges(frame)",
    "cpquery": "net.query(targets, evidence)",
    "hc": _LEARN.format("hill_climb"),
    "loadBN": "gg.read(path)",
    "mmhc": _LEARN.format("mmhc"),
    "saveBN": "gg.write(net, path)",
    "tabu": _LEARN.format("tabu"),
}


_OF_HMMS: Mapping[str, str] = {
    "monitor_": "model.history_, model.converged_ and model.n_iter_",
    "n_components": "model.n_states",
    "score_samples": "model.score(X) and model.predict_proba(X)",
}
#: Class → attribute that is called otherwise → ours.
WORDS: Mapping[str, Mapping[str, str]] = {"GraphicalModel": _OF_NETWORKS, "HiddenMarkovModel": _OF_HMMS}
_KERNEL_PARAMS = "write a kernel value, such as gg.kernels.RBF(2.0)"
#: Class → keyword of the constructor → ours.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "GraphicalLasso": {"mode": "there is one solver", "covariance": "fit takes rows"},
    "HiddenMarkovModel": {
        "covars_prior": "it is covariance_prior",
        "implementation": "sums are scaled; there is no choice to make",
        "init_params": "init names the start, or is a fitted model to start from",
        "n_components": "it is n_states",
        "n_iter": "it is max_iter",
        "params": "fixed names what is not learned",
        "startprob_prior": "it is start_prior",
        "transmat_prior": "it is transition_prior",
    },
    "KernelDensity": {
        "algorithm": "the shape of the kernel says which way is the quickest",
        "breadth_first": "there is no tree",
        "leaf_size": "there is no tree",
        "metric_params": "the metrics have none",
    },
    "KernelPCA": {
        "eigen_solver": 'it is solver: "dense", "lanczos" or "auto"',
        "fit_inverse_transform": 'it is pre_image: None, "ridge" (scikit-learn\'s way) or "fixed_point"',
        "iterated_power": 'there is no randomized solver; approx="nystrom" or "features" for large n',
        "kernel_params": _KERNEL_PARAMS,
        "remove_zero_eig": "components with a zero eigenvalue are always left out",
    },
    "KernelRidge": {"kernel_params": _KERNEL_PARAMS},
}
_NAME_IT = "; name the one you mean"
_RBF = 'the kernel is "rbf" by default, in scikit-learn "linear"' + _NAME_IT
#: Class → parameter → (module of scikit-learn's class of this name, how its default differs).
DEFAULTS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "GraphicalLasso": {
        "alpha": (
            "sklearn.covariance._graph_lasso",
            'alpha is "ebic" by default (chosen by the extended BIC), in scikit-learn 0.01' + _NAME_IT,
        )
    },
    "KernelDensity": {
        "bandwidth": (
            "sklearn.neighbors._kde",
            'the bandwidth is "loo" by default (the best for left-out points), in scikit-learn 1.0' + _NAME_IT,
        )
    },
    "KernelPCA": {"kernel": ("sklearn.decomposition._kernel_pca", _RBF)},
    "KernelRidge": {"kernel": ("sklearn.kernel_ridge", _RBF)},
}


def _merged(cls: type, table: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    return {key: value for base in cls.__mro__ for key, value in table.get(base.__name__, {}).items()}


class OtherWords:
    """Base of classes that users of other libraries meet; `WORDS`, `OPTIONS` and `DEFAULTS` hold what they may call.

    Who leaves a parameter of `DEFAULTS` out is told once in a process, if the other module is imported, too: others
    have nothing to unlearn.
    """

    __signature__ = InitSignature()

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if options:
            theirs = _merged(cls, OPTIONS)
            for name in options:
                if name in theirs and name not in inspect.signature(cls).parameters:
                    raise TypeError(f"{cls.__name__} has no parameter {name!r}: {theirs[name]}")
        for name, (module, sentence) in DEFAULTS.get(cls.__name__, {}).items():
            if module in sys.modules and name not in options and (cls.__name__, name) not in _TOLD:
                _tell(cls, name, sentence, len(args))
        return super().__new__(cls)

    if not TYPE_CHECKING:  # a type checker shall still see which attributes there are

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or (word := _merged(type(self), WORDS).get(name)) is None:
                return object.__getattribute__(self, name)  # again, for the error of a property that failed
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. Here it is {word}.")


_TOLD: set[tuple[str, str]] = set()


def _tell(cls: type, name: str, sentence: str, positional: int) -> None:
    if name not in list(inspect.signature(cls).parameters)[:positional]:
        _TOLD.add((cls.__name__, name))
        warnings.warn(f"{cls.__name__}: {sentence}", ModelWarning, stacklevel=3)
