"""The questions that every model answers; what answers them is loaded at the first one, through `_asking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from gramgraph._asking import analyses
from gramgraph._asking import ask as _ask
from gramgraph._progress import Progress
from gramgraph.data.frames import read_frame
from gramgraph.typing import FloatArray, RandomState, TargetSpec

if TYPE_CHECKING:
    from gramgraph.answers import Answer
    from gramgraph.questions.files import Posteriors


class Asking:
    """Methods `query`, `map_query`, `log_evidence`, `sample`, … for a model that offers `factors`."""

    @overload
    def query(
        self, targets: TargetSpec = None, evidence: Any = None, *, out: None = None, **options: Any
    ) -> Answer: ...

    @overload
    def query(
        self, targets: TargetSpec = None, evidence: Any = None, *, out: str | PathLike[str], **options: Any
    ) -> Posteriors: ...

    def query(
        self,
        targets: TargetSpec = None,
        evidence: Any = None,
        *,
        virtual_evidence: Any = None,
        soft_evidence: Any = None,
        engine: str = "auto",
        random_state: RandomState = None,
        budget: float | str | None = None,
        memory: float | None = None,
        n_jobs: int = 1,
        progress: Progress = False,
        keep: Any = None,
        out: str | PathLike[str] | None = None,
        client: Any = None,
        **options: Any,
    ) -> Any:
        """p(targets | evidence), exactly; the answer says where that was not possible (`exact`, `engine`).

        Parameters
        ----------
        targets : a name, a list of names, or None for every variable that is not observed. A tuple of names, alone
            or inside the list, asks for their joint table.
        evidence : a dict for one case; a data frame (or a list of dicts) for many, where missing cells are not
            observed. Values of the dict are labels; also `gg.Not("HIGH")`, a set of allowed labels,
            `gg.Likelihood({...})`, `gg.Soft({...})`. Of a real-valued variable they are numbers (vectors: a list; in a
            frame the columns `x[0]`, `x[1]`, …).
        virtual_evidence : name → weights p(observation | state), by label or in the order of the states; for a
            real-valued variable (value, sd) of a noisy reading.
        soft_evidence : name → probabilities that the belief in this variable shall become (Jeffrey's rule).
        engine : "auto" or the name of an engine. "auto" is the compiled junction tree; where that does not fit into
            memory, belief propagation, on single factors and on join graphs, with bounds of log p(evidence); where that
            does not settle, or a standard `error` is asked for, a sampler. An approximate answer says so (`exact`,
            `engine`, `details`) and warns.
        random_state, budget : seed and number of draws of engines that draw samples (also a time, such as "5s", for
            discrete models); exact engines need neither. Without a budget the answer about a model that is too wide
            comes after about eight seconds, and a longer one improves it.
        memory : bytes that may be used (default: 60 % of what is free); a `BudgetError` comes before allocation.
            Giving it insists on the exact answer, as `engine="junction_tree"` does.
        n_jobs : threads for a table of cases; -1 for all.
        progress : True shows a bar on a terminal; a function is called with (done, total).
        keep : names of columns of the table of cases that are not variables, such as an id: they stand in the answer's
            frame again.
        out : a file (.parquet, .csv) that posteriors are written to, one row per case: the kept columns,
            `log_evidence`, and a column `variable=state` for each state. Then `evidence` may also be the path of a
            Parquet or CSV file, a polars LazyFrame, an Arrow stream or a `dask.dataframe`, of any size: cases are
            answered block by block, on `n_jobs` threads, in constant memory. `dtype="float32"` halves the file. The
            same call after an interruption goes on where it was (files and Dask frames). What is returned tells where
            the file is (`Posteriors`).
        client : `distributed.Client` or the address of a scheduler: row groups of Parquet files and partitions of a
            Dask frame are read and answered on its workers, blocks of other tables are sent to them; the model once.
        options : of the approximate engines, such as `damping`, `max_iter`, `n_chains`, `error` (the standard error
            that a sampler goes on for); each engine names its own.
            Models with real-valued variables are asked exactly where that is possible, else by weighted draws or Gibbs
            sampling, and the answer says so; `engine="gibbs"` and `"laplace"` choose the way.

        >>> import gramgraph as gg
        >>> answer = gg.datasets.asia().query("lung", evidence={"xray": "yes", "smoke": "yes"})
        >>> round(answer["lung"].prob("yes"), 4)
        0.646
        """
        return _ask().query(
            self,
            targets,
            evidence,
            virtual_evidence=virtual_evidence,
            soft_evidence=soft_evidence,
            engine=engine,
            random_state=random_state,
            budget=budget,
            memory=memory,
            n_jobs=n_jobs,
            progress=progress,
            keep=keep,
            out=out,
            client=client,
            **options,
        )

    def map_query(
        self,
        evidence: Any = None,
        *,
        targets: str | Sequence[str] | None = None,
        k: int | None = None,
        virtual_evidence: Any = None,
        engine: str = "auto",
        memory: float | None = None,
        n_jobs: int = 1,
        progress: Progress = False,
        gap: float = 0.0,
        time_limit: float | None = None,
        keep: Any = None,
    ) -> Any:
        """The most probable states of all unobserved variables, with `log_prob` = log p(states, evidence).

        With `targets`, the most probable states of these when the others are summed out (marginal MAP, which may stop
        early: within `gap` of the best in log units, or after `time_limit` seconds). With `k`, a list of the k best
        assignments. A table of cases gives a data frame.

        Where an exact answer does not fit into memory (or not into `time_limit` seconds), the best that a search finds
        within `time_limit` seconds (by default 10 a case), with a warning unless it is proved best; the answer's
        `bound` is above the log_prob of every assignment. Searches by name: engine="search" (that one), "trws"
        (sequential reweighted messages), "graph_cut" (exact for attractive binary pairs), "bp" (max-product), "icm"
        (the baseline).

        >>> import gramgraph as gg
        >>> gg.datasets.asia().map_query({"xray": "yes"}).assignment["smoke"]
        'yes'
        """
        return _ask().map_query(
            self,
            evidence,
            targets=targets,
            k=k,
            virtual_evidence=virtual_evidence,
            engine=engine,
            memory=memory,
            n_jobs=n_jobs,
            progress=progress,
            gap=gap,
            time_limit=time_limit,
            keep=keep,
        )

    def log_evidence(
        self, evidence: Any = None, *, virtual_evidence: Any = None, memory: float | None = None, n_jobs: int = 1
    ) -> float | FloatArray:
        """log p(evidence), a number or one per case; for a Markov network, log of the sum of products (log Z).

        Where an exact answer does not fit into memory (and none is given), an estimate within bounds that the warning
        names; `query([], evidence)` has them as numbers, in `details["log_evidence_interval"]`.

        The log of a density where real-valued variables were observed; a Gaussian Markov network made from a precision
        matrix is normalized, so that this is the log density of the evidence too.

        >>> import gramgraph as gg
        >>> round(gg.datasets.asia().log_evidence({"smoke": "yes"}), 4)
        -0.6931
        """
        return _ask().log_evidence(  # type: ignore[no-any-return]
            self, evidence, virtual_evidence=virtual_evidence, memory=memory, n_jobs=n_jobs
        )

    def to_gaussian(self) -> Any:
        """The joint distribution of a linear-Gaussian model as a `Gaussian`, components in the order of `variables`.

        >>> import gramgraph as gg
        >>> cpds = {"x": (1.0, 1.0), "y": {"coefficients": 2.0, "sd": 1.0}}
        >>> gg.BayesianNetwork("x{real} -> y{real}", cpds=cpds).to_gaussian().cov.tolist()
        [[1.0, 2.0], [2.0, 5.0]]
        """
        return analyses().to_gaussian(self)

    def partial_correlations(self) -> Any:
        """Correlation of each pair given all other variables, −P_ij / √(P_ii P_jj): a data frame; zeros are not edges.

        >>> import gramgraph as gg
        >>> net = gg.MarkovNetwork.from_precision([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
        >>> net.partial_correlations().loc["x0"].round(3).tolist()
        [1.0, 0.5, 0.0]
        """
        return analyses().partial_correlations(self)

    def log_likelihood(self, data: Any, *, memory: float | None = None) -> FloatArray:
        """log p(row) for every row of a table of cases (a dict is one of columns); gaps are summed (integrated) out.

        >>> import gramgraph as gg
        >>> rows = gg.datasets.asia().log_likelihood([{"smoke": "yes"}, {"smoke": "yes", "lung": "no"}])
        >>> rows.round(4).tolist()
        [-0.6931, -0.7985]
        """
        from numpy import atleast_1d

        if isinstance(data, Mapping):
            data = read_frame(data)
        return atleast_1d(self.log_evidence(data, memory=memory))

    def sample(
        self,
        n: int = 1,
        evidence: Any = None,
        *,
        virtual_evidence: Any = None,
        random_state: RandomState = None,
        memory: float | None = None,
        n_jobs: int = 1,
    ) -> Any:
        """n exact, independent draws from p(all variables | evidence), as a data frame of categories.

        >>> import gramgraph as gg
        >>> draws = gg.datasets.asia().sample(1000, {"smoke": "yes"}, random_state=0)
        >>> draws.shape, set(draws["smoke"])
        ((1000, 8), {'yes'})
        """
        return _ask().sample(
            self,
            n,
            evidence,
            virtual_evidence=virtual_evidence,
            random_state=random_state,
            memory=memory,
            n_jobs=n_jobs,
        )

    def session(self, *, memory: float | None = None) -> Any:
        """A case whose observations come and go; each answer reuses what the change did not touch."""
        return _ask().session(self, memory=memory)

    def entropy(self, targets: str | Sequence[str], evidence: Any = None, *, base: float | None = None) -> float:
        """H(targets | evidence) of the joint posterior, in nats (`base=2`: bits)."""
        return analyses().entropy(self, targets, evidence, base=base)

    def mutual_information(
        self,
        a: str | Sequence[str],
        b: str | Sequence[str],
        evidence: Any = None,
        *,
        base: float | None = None,
    ) -> float:
        """I(a; b | evidence), in nats (`base=2`: bits)."""
        return analyses().mutual_information(self, a, b, evidence, base=base)

    def most_informative(
        self,
        target: str | Sequence[str],
        evidence: Any = None,
        *,
        candidates: Sequence[str] | None = None,
        base: float | None = None,
        time_limit: float | None = None,
    ) -> Any:
        """Which observation would tell most about the target: a data frame, the most telling one first.

        With `time_limit` it stops after so many seconds; `attrs["left"]` names the candidates not looked at yet.
        """
        return analyses().most_informative(
            self,
            target,
            evidence,
            candidates=candidates,
            base=base,
            time_limit=time_limit,
        )

    def explain(self, target: str, evidence: Any = None, *, state: Any = None) -> Any:
        """What each finding adds to the belief in the target when it comes last: a data frame, the strongest first.

        >>> import gramgraph as gg
        >>> gg.datasets.asia().explain("lung", {"xray": "yes", "asia": "yes"}, state="yes")["finding"].tolist()
        ['xray', 'asia']
        """
        return analyses().explain(self, target, evidence, state=state)

    def conflict(self, evidence: Any = None) -> Any:
        """Whether the findings disagree: log Π p(e_i) − log p(e), above 0 where they do; `against` names the culprit.

        >>> import gramgraph as gg
        >>> round(gg.datasets.asia().conflict({"smoke": "yes", "lung": "yes"}), 3)  # they go together
        -0.598
        """
        return analyses().conflict(self, evidence)

    def sensitivity(
        self, target: str, state: Any = None, evidence: Any = None, *, parameters: Sequence[str] | None = None
    ) -> Any:
        """Derivative of p(target = state | evidence), or of the mean of a real-valued target, by every parameter: a
        data frame, the strongest first."""
        return analyses().sensitivity(self, target, state, evidence, parameters=parameters)

    def sensitivity_function(
        self, target: str, state: Any, evidence: Any = None, *, variable: str, value: Any, given: Any = None
    ) -> Any:
        """p(target = state | evidence) as a function of the one parameter p(variable = value | given)."""
        return analyses().sensitivity_function(
            self,
            target,
            state,
            evidence,
            variable=variable,
            value=value,
            given=given,
        )

    def sum_product(self, evidence: Any = None, *, normalized: bool = True, root: str | None = None) -> Any:
        """The messages of sum-product on a tree-shaped factor graph, to be read one by one."""
        return analyses().sum_product(self, evidence, normalized=normalized, root=root)

    def max_sum(self, evidence: Any = None, *, normalized: bool = False, root: str | None = None) -> Any:
        """The messages of max-sum on a tree-shaped factor graph, with the best assignment."""
        return analyses().max_sum(self, evidence, normalized=normalized, root=root)
