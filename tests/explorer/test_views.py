"""What the page is told equals what the library answers, for every kind of model, without a browser."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.explorer import view_of
from gramgraph.explorer.network import NetworkView
from gramgraph.explorer.server import dumps
from gramgraph.explorer.workbench import Workbench


def see(**values):
    return [{"name": name, "type": "see", "value": value} for name, value in values.items()]


@pytest.fixture(scope="module")
def asia():
    return NetworkView(gg.datasets.asia(), "asia")


def test_all_kinds_of_findings_reach_the_library(asia):
    case = [
        *see(xray="yes"),
        {"name": "asia", "type": "like", "w": [0.25, 1.0]},
        {"name": "bronc", "type": "do", "value": "no"},
        {"name": "dysp", "type": "not", "value": ["no"]},
    ]
    evidence = {"xray": "yes", "asia": gg.Likelihood([0.25, 1.0]), "dysp": gg.Not("no")}
    net = asia.model.do({"bronc": "no"})
    answer = net.query(["lung", "tub"], evidence)
    found = asia.request("ask", {"case": case})
    assert found["beliefs"]["lung"] == pytest.approx(answer["lung"].probabilities, abs=1e-12)
    assert found["log_evidence"] == pytest.approx(answer.log_evidence, abs=1e-12)
    assert found["conflict"] == pytest.approx(net.conflict(evidence), abs=1e-12)
    adds = asia.request("explain", {"case": case, "target": "lung", "state": "yes"})
    wanted = net.explain("lung", evidence, state="yes").set_index("finding")["contribution"]
    assert {name: moved for name, moved, _ in adds["rows"] if name != "bronc"} == pytest.approx(dict(wanted), abs=1e-9)
    best = asia.request("next", {"case": case, "target": "lung", "seconds": 5})
    ranked = net.most_informative("lung", evidence).set_index("variable")["reduction"]
    for name, _, gain in best["rows"]:
        if name in ranked:
            assert gain == pytest.approx(ranked[name], abs=1e-9)


def test_impossible_findings_are_named_and_nothing_else(asia):
    found = asia.request("ask", {"case": see(either="no", lung="yes", smoke="yes")})
    assert found["impossible"] == ["either", "lung"]
    assert found["text"] == "These cannot all hold: either = no, lung = yes. Nothing was changed."


def test_separation_counts_uncertain_findings_as_readings(asia):
    like = [{"name": "dysp", "type": "like", "w": [1.0, 2.0]}]
    open_ = asia.request("separation", {"case": like, "source": "asia"})["reached"]
    assert "smoke" in open_ and "dysp" in open_
    assert "smoke" not in asia.request("separation", {"case": [], "source": "asia"})["reached"]


def test_stories_are_the_best_assignments(asia):
    found = asia.request("story", {"case": see(xray="yes")})
    best = asia.model.map_query({"xray": "yes"}, k=3)
    total = asia.model.log_evidence({"xray": "yes"})
    for story, wanted in zip(found["stories"], best, strict=True):
        assert story["p"] == pytest.approx(np.exp(wanted.log_prob - total))


def test_the_program_gives_the_same_answer(asia):
    case = [
        *see(xray="yes"),
        {"name": "bronc", "type": "do", "value": "no"},
        {"name": "asia", "type": "like", "w": [1, 4]},
    ]
    view = NetworkView(asia.model, "asia", "gg.datasets.asia()")
    text = view.request("python", {"case": case, "target": "lung"})["text"]
    place: dict = {}
    exec(text, place)  # our own text
    assert place["answer"]["lung"].prob("yes") == pytest.approx(
        view.request("ask", {"case": case})["beliefs"]["lung"][1]
    )


def test_saved_models_read_back(asia, tmp_path):
    import base64

    for suffix, _ in asia.request("model", {})["formats"]:
        found = asia.request("save", {"format": suffix})
        path = tmp_path / f"net.{suffix}"
        path.write_bytes(base64.b64decode(found["data"]))
        assert len(gg.read(path)) == 8
    assert "error" in asia.request("save", {"format": "../../x"})


def test_messages_are_those_of_sum_product():
    net = gg.BayesianNetwork("cloudy -> rain -> wet").random_tables(0)
    view = view_of(net)
    found = view.request("messages", {"case": see(wet="yes")})
    passed = net.sum_product({"wet": "yes"}, normalized=False)
    assert [(s["from"], s["to"]) for s in found["steps"]] == list(passed.schedule)
    frame = passed.to_frame()
    assert [v for s in found["steps"] for _, v in s["values"]] == pytest.approx(frame["value"].tolist())
    assert [n["name"] for n in found["nodes"] if n["value"] is not None] == ["wet"]
    assert len(found["edges"]) == 5
    best = view.request("messages", {"case": see(wet="yes"), "method": "max_sum"})
    assert dict(best["assignment"]) == net.map_query({"wet": "yes"}).assignment


@pytest.mark.parametrize("method", ["sum_product", "max_sum"])
def test_messages_show_what_they_are_made_of(method):
    net = gg.BayesianNetwork("cloudy -> rain -> wet; sun -> rain; rain -> mood{bad|fair|good}").random_tables(0)
    case = [
        *see(wet="yes"),
        {"name": "cloudy", "type": "like", "w": [1.0, 3.0]},
        {"name": "mood", "type": "not", "value": ["bad"]},
        {"name": "sun", "type": "do", "value": "yes"},
    ]
    found = view_of(net).request("messages", {"case": case, "method": method})
    assert {n["name"] for n in found["nodes"] if n["kind"] == "factor"} >= {"likelihood(cloudy)", "likelihood(mood)"}
    assert ["cloudy", "likelihood(cloudy)"] in found["edges"]
    for step in found["steps"]:
        for (_, value), terms in zip(step["values"], step["made"], strict=True):
            if method == "sum_product":
                made = sum(np.prod(term) for term in terms)
            else:
                made = max(sum(-np.inf if x is None else x for x in term) for term in terms)
            assert made == pytest.approx(-np.inf if value is None else value, abs=1e-12)


def test_messages_wait_for_the_loops_to_be_opened(asia):
    said = asia.request("ask", {"case": []})["no_messages"]
    assert said == asia.request("model", {})["cannot"]["messages"]
    assert "has a loop" in said and "engine" not in said
    assert asia.request("ask", {"case": see(smoke="yes")})["no_messages"] is None


def test_numbers_and_angles(rng):
    phi = rng.vonmises(np.pi, 2.0, 300)
    tree = gg.learn_tree({"phi": phi, "w": np.cos(phi) + 0.3 * rng.normal(size=300)}, domains={"phi": "circle"})
    view = view_of(tree)
    info = view.request("model", {})
    json.loads(dumps(info))
    assert {n["name"]: n["kind"] for n in info["scene"]["nodes"]} == {"phi": "circle", "w": "real"}
    assert "do" in info["cannot"]
    found = view.request("ask", {"case": see(w=-0.5)})
    belief = tree.query("phi", {"w": -0.5})["phi"]
    assert found["beliefs"]["phi"]["dir"] == pytest.approx(belief.mean_direction(), abs=1e-9)
    assert found["beliefs"]["w"] == {"value": -0.5}
    low, high = found["beliefs"]["phi"]["lo"], found["beliefs"]["phi"]["hi"]
    assert low < high  # the interval wraps: upper above lower, perhaps above π
    assert (low, high) == pytest.approx(belief.interval(0.9))


def test_hostile_names_are_only_text():
    name, state = "<img src=x onerror=alert(1)>", "</script>"
    from gramgraph.variables import discrete

    a, b = discrete(name, [state, "ok"]), discrete("b", ["0", "1"])
    net = gg.BayesianNetwork(cpds=[gg.Table(a, (), [0.2, 0.8]), gg.Table(b, (a,), [[0.1, 0.9], [0.5, 0.5]])])
    from gramgraph.explorer.static import static_page

    text = static_page(view_of(net))
    assert "<img" not in text and text.count("</script>") == 1


def test_a_large_model_is_shown_by_neighborhoods(rng):
    names = [f"v{i}" for i in range(400)]
    net = gg.BayesianNetwork("; ".join(f"{names[i // 3]} -> {names[i]}" for i in range(1, 400))).random_tables(0)
    view = view_of(net)
    info = view.request("model", {})
    assert info["large"] and len(info["names"]) == 400
    assert 1 < len(info["scene"]["nodes"]) <= 150
    scene = view.request("scene", {"center": "v200"})
    assert "v200" in [n["name"] for n in scene["nodes"]]
    found = view.request("ask", {"case": see(v5=net.states("v5")[0]), "show": ["v200", "v1"]})
    assert set(found["beliefs"]) == {"v200", "v1"}
    assert found["beliefs"]["v1"] == pytest.approx(net.query("v1", {"v5": net.states("v5")[0]})["v1"].probabilities)


def test_sequences_are_those_of_the_recursions():
    casino = gg.CategoricalHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]])
    X = casino.sample(20, random_state=0)[0]
    view = view_of(casino, data=X)
    assert view.request("model", {})["steps"] == 20
    found = view.request("ask", {"t": 7})
    assert found["filtered"][0] == pytest.approx(casino.filter_proba(X[:7]))
    assert np.array(found["smoothed"][0]) == pytest.approx(casino.predict_proba(X[:7]))
    assert found["log_evidence"] == pytest.approx(casino.score(X[:7]))
    assert "error" in view.request("ask", {"t": 21})


def test_a_table_is_learned_from_with_a_forbidden_arc(tmp_path):
    path = tmp_path / "upload"
    frame = gg.datasets.asia().sample(1500, random_state=0)
    frame.to_csv(path, index=False)
    bench = Workbench()
    assert bench.request("model", {})["kind"] == "empty"
    table = bench.upload(path, "asia%20data.csv")
    assert table["rows"] == 1500 and len(table["columns"]) == 8
    job = bench.request(
        "learn", {"table": table["table"], "forbidden": [["smoke", "bronc"]], "required": [["asia", "tub"]]}
    )
    bench._jobs[job["job"]].wait()
    key = bench.request("job", job)["result"]["model"]
    net = bench._views[key].model
    assert ("smoke", "bronc") not in net.edges and ("asia", "tub") in net.edges
    again = bench.request("refit", {"model": key, "prior": "bdeu"})
    bench._jobs[again["job"]].wait()
    fitted = bench._views[bench.request("job", again)["result"]["model"]].model
    assert fitted.edges == net.edges
    text = bench.request("python", {"model": bench.request("job", again)["result"]["model"], "case": []})["text"]
    assert "gg.learn_structure('asia data.csv', required=[('asia', 'tub')]" in text
    assert ".fit('asia data.csv', prior='bdeu')" in text
    table = net.query("asia")["asia"].probabilities
    edited = bench.request("edit", {"model": key, "name": "asia", "rows": [[1.0, 1.0]]})
    assert bench._views[edited["model"]].model.query("asia")["asia"].probabilities == pytest.approx([0.5, 0.5])
    assert net.query("asia")["asia"].probabilities == pytest.approx(table)  # the old model is as it was
    for rows in ([[1.0]], [[-1.0, 2.0]], [[0.0, 0.0]], "x", [["a", "b"]], [[1e400, 1.0]]):
        assert "error" in bench.request("edit", {"model": key, "name": "asia", "rows": rows})
    assert "error" in bench.request("learn", {"table": "nothing"})
    for name in ("x.exe", "../../etc/passwd", "x.pkl"):
        bad = tmp_path / "bad"
        bad.write_text("x")
        with pytest.raises(gg.GramGraphError):
            bench.upload(bad, name)


def test_every_model_opens_by_its_method():
    with gg.datasets.asia().explore(browser=False) as running:
        assert running.url.endswith(running.token)
        assert running.view.request("model", {})["size"] == [8, 8]
    with pytest.raises(gg.ModelError, match="cannot be explored"):
        view_of(object())


def test_filters_are_those_of_the_kalman_recursions():
    model = gg.KalmanFilter([[1.0, 1.0], [0.0, 1.0]], 0.01 * np.eye(2), [[1.0, 0.0]], [[0.5]], [0.0, 0.0], np.eye(2))
    y = model.sample(12, random_state=0)[0]
    found = view_of(model, data=y).request("ask", {"t": 5})
    filtered = model.filter(y[:5])
    assert found["filtered"][1][0] == pytest.approx(filtered.means[:, 1])
    assert found["smoothed"][0][1] == pytest.approx(np.sqrt(model.smooth(y[:5]).covariances[:, 0, 0]))
    assert found["log_evidence"] == pytest.approx(model.log_likelihood(y[:5]))


def test_dynamic_networks_are_filtered_by_their_own_recursions():
    cpds = {"rain": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.8, 0.2], [0.1, 0.9]]}
    net = gg.DynamicBayesianNetwork("rain' -> rain{no|yes} -> umbrella{no|yes}", cpds=cpds)
    rows = [{"umbrella": value} for value in ("yes", "yes", "no", "yes")]
    found = view_of(net, data=rows).request("ask", {"t": 3})
    assert np.array(found["filtered"][0]) == pytest.approx(net.filter(rows[:3])["rain"].probabilities)
    assert np.array(found["smoothed"][0]) == pytest.approx(net.smooth(rows[:3])["rain"].probabilities)
    assert view_of(net).request("model", {})["steps"] > 10


def test_a_process_equals_predict():
    x = np.array([-3.0, -1.0, 0.5, 2.0])
    gp = gg.GaussianProcessRegressor(1.0 * gg.kernels.RBF(1.0), alpha=0.01, optimizer=None).fit(x[:, None], np.sin(x))
    view = view_of(gp)
    points = [*view.points, [1.0, 0.3]]
    found = view.request("ask", {"points": points, "at": [0.25]})
    wanted = gg.GaussianProcessRegressor(gp.kernel_, alpha=0.01, optimizer=None).fit(*_columns(points))
    mean, sd = wanted.predict([[0.25]], return_std=True)
    assert found["at"][0] == pytest.approx([mean[0], sd[0]], abs=1e-9)
    assert found["log_evidence"] == pytest.approx(wanted.log_marginal_likelihood(gp.kernel_.theta))
    assert view.request("ask", {"points": []})["log_evidence"] is None
    for bad in ([[1.0]], [["x", 1.0]], "points", [[1.0, 2.0]] * 1000):
        assert "error" in view.request("ask", {"points": bad})


def test_a_process_with_normalized_targets_is_shown_on_their_scale():
    x, y = np.array([-3.0, -1.0, 0.5]), [10.1, -0.8, 40.4]
    kernel = 1.0 * gg.kernels.RBF(1.0) + gg.kernels.White(0.05)
    gp = gg.GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(x[:, None], y)
    view = view_of(gp)
    assert np.array(view.points) == pytest.approx(np.column_stack([x, y]))
    found = view.request("ask", {"at": [0.25]})
    mean, sd = gp.predict([[0.25]], return_std=True)
    assert found["at"][0] == pytest.approx([mean[0], sd[0]], abs=1e-9)
    # What is drawn is the function: it is smooth, whatever the noise of its observations.
    steps = np.abs(np.diff(found["draws"], n=2)).max()
    assert steps < 0.05 * np.ptp(y)


def _columns(points):
    table = np.array(points)
    return table[:, :1], table[:, 1]


def test_a_page_gets_its_first_beliefs_with_the_model():
    """One request opens a page; a scene is drawn once."""
    view = view_of(gg.datasets.asia())
    case = [{"name": "smoke", "type": "see", "value": "yes"}]
    found = view.request("model", {"case": case, "center": "no such variable"})
    assert found["answer"] == view.request("ask", {"case": case})
    assert view.request("model", {})["scene"] is found["scene"]
    assert "error" in view.request("model", {"case": [{"name": "gone", "type": "see", "value": "yes"}]})["answer"]
