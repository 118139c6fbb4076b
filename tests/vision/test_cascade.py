"""The detector: training, sliding, files, and agreement with OpenCV where it is installed."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from gramgraph.exceptions import ModelError, OptionError, ParseError
from gramgraph.plot import plot_detections
from gramgraph.vision import Cascade, overlap


@pytest.fixture(scope="module")
def trained():
    rng = np.random.default_rng(0)
    face = np.full((12, 12), 120.0)
    face[3:6, 2:10], face[8:10, 4:8] = 40, 220
    faces = np.clip(face + rng.normal(scale=20, size=(60, 12, 12)), 0, 255).astype(np.uint8)
    scenes = [np.kron(rng.integers(0, 255, (20, 25)), np.ones((4, 4))).astype(np.uint8) for _ in range(4)]
    cascade = Cascade(4, window=12, n_negatives=300, random_state=0).fit(faces[:40], scenes[:3])
    return cascade, faces, scenes


def test_row_h3_a_trained_cascade_keeps_faces_and_refuses_the_rest(trained):
    cascade, faces, scenes = trained
    table = cascade.stage_table(faces[40:], scenes[3:])
    assert (table["kept"] > 0.9).all()
    assert (np.diff(table["false windows"]) <= 0).all() and table["false windows"].iloc[-1] < 0.05
    assert (table["kept in training"] >= 0.995).all()


@pytest.mark.parametrize("scaling", ["image", "feature"])
def test_faces_are_found_at_every_size(trained, scaling):
    cascade, faces, _ = trained
    scene = np.full((90, 110), 120, dtype=np.uint8)
    scene += np.random.default_rng(1).integers(0, 12, scene.shape).astype(np.uint8)
    big = np.kron(faces[50], np.ones((3, 3))).astype(np.uint8)
    scene[10:22, 10:22], scene[40:76, 60:96] = faces[45], big
    boxes = cascade.detect(scene, 1.2, 0, scaling=scaling)
    for wanted in ([10, 10, 12, 12], [60, 40, 36, 36]):
        assert overlap([wanted], boxes).max() > 0.5


def test_training_can_go_on_from_a_checkpoint(trained, tmp_path):
    _, faces, scenes = trained
    path = tmp_path / "cascade.json"
    one = Cascade(1, window=12, n_negatives=100, random_state=0).fit(faces, scenes, checkpoint=path)
    seen = []
    two = Cascade(2, window=12, n_negatives=100, random_state=0)
    two.fit(faces, scenes, checkpoint=path, progress=lambda done, total: seen.append((done, total)))
    assert two.stages_.n_stages == 2 and len(two.reports_) == 2 and seen == [(2, 2)]
    assert (two.stages_.first(1).stage_threshold == one.stages_.stage_threshold).all()
    again = Cascade.load(path)
    assert (again.detect(scenes[0], 1.2, 0) == two.detect(scenes[0], 1.2, 0)).all()


def test_memory_is_a_bound_not_another_answer(trained):
    _, faces, scenes = trained
    a, b = (Cascade(1, window=12, n_negatives=100, random_state=0, memory=m).fit(faces, scenes) for m in (4e8, 0.0))
    assert a.stages_.to_fields() == b.stages_.to_fields()


def test_opencv_files_come_back_the_same(trained, tmp_path):
    cascade, _, scenes = trained
    cascade.write_opencv(tmp_path / "own.xml")
    again = Cascade.read_opencv(tmp_path / "own.xml")
    assert again.stages_.window == (12, 12)
    np.testing.assert_allclose(again.stages_.stage_threshold, cascade.stages_.stage_threshold, atol=1e-5)
    np.testing.assert_array_equal(again.stages_.threshold, cascade.stages_.threshold)
    a, b = (c.detect(scenes[3], 1.2, 0) for c in (cascade, again))
    assert abs(len(a) - len(b)) <= 0.02 * len(a) + 1


def test_broken_files_are_refused():
    good = b"<opencv_storage><cascade><featureType>HAAR</featureType><width>8</width><height>8</height><stages>"
    for data in (
        b"", b"no xml", b"\xff\xfe\x00", b"<a/>", good, good + b"</stages></cascade></opencv_storage>" + b"<b/>",
        good.replace(b"HAAR", b"LBP") + b"</stages></cascade></opencv_storage>",
        good + b"<_><stageThreshold>x</stageThreshold></_></stages></cascade></opencv_storage>",
        b'<!DOCTYPE a [<!ENTITY b "c">]>' + good,
    ):  # fmt: skip
        with pytest.raises(ParseError):
            Cascade.read_opencv(data)
    outside = (
        b"<_><weakClassifiers><_><internalNodes>0 -1 0 0.5</internalNodes><leafValues>1 2</leafValues></_>"
        b"</weakClassifiers><stageThreshold>0</stageThreshold></_></stages><features><_><rects><_>0 0 99 2 1</_>"
        b"<_>0 0 1 1 1</_></rects></_></features></cascade></opencv_storage>"
    )
    with pytest.raises(ParseError, match="leaves the window"):
        Cascade.read_opencv(good + outside)


def test_bad_input(trained):
    cascade, faces, scenes = trained
    assert cascade.detect(np.full((50, 50), 7, dtype=np.uint8)).shape == (0, 5)  # a constant image
    assert cascade.detect(np.zeros((5, 5), dtype=np.uint8)).shape == (0, 5)  # smaller than the window
    colored = np.stack([scenes[0]] * 3, axis=2)
    assert (cascade.detect(colored, 1.3, 0) == cascade.detect(scenes[0], 1.3, 0)).all()
    assert (cascade.detect(scenes[0].astype(np.uint16) * 257, 1.3, 0) == cascade.detect(scenes[0], 1.3, 0)).all()
    with pytest.raises(ModelError, match="NaN"):
        cascade.detect(np.full((30, 30), np.nan))
    with pytest.raises(OptionError, match="scale_factor"):
        cascade.detect(scenes[0], 1.0)
    with pytest.raises(ModelError, match="empty"):
        Cascade(window=12).fit([], scenes)
    with pytest.raises(ModelError, match="empty"):
        Cascade(window=12).fit(faces, [])
    with pytest.raises(ModelError, match="smaller than the window"):
        Cascade(window=12).fit(faces, [np.zeros((4, 4), dtype=np.uint8)])
    with pytest.raises(ModelError, match="not learned"):
        Cascade().detect(scenes[0])


# ------------------------------------------------------------------------------------------------------- OpenCV


@pytest.mark.parametrize("name", ["frontalface_default", "eye_tree_eyeglasses"])
def test_row_h3_windows_and_boxes_are_opencvs(shared_data: Path, name: str):
    cv2 = pytest.importorskip("cv2", reason="OpenCV is not installed: pip install 'opencv-python-headless<5'")
    path = Path(cv2.__file__).parent / "data" / f"haarcascade_{name}.xml"
    if not path.exists():
        pytest.skip("this OpenCV ships no cascade files: versions below 5 do")
    images = shared_data / "kernel" / "images"
    ours, peer = Cascade.read_opencv(path), cv2.CascadeClassifier(str(path))
    for file in ("camera.png", "motorcycle_left.png"):
        image = cv2.imread(str(images / file), 0)
        found, wanted = ours.detect(image, 1.2, 0), np.array(peer.detectMultiScale(image, 1.2, 0)).reshape(-1, 4)
        assert len(found) == len(wanted)
        if len(wanted):
            agree = overlap(wanted, found)
            assert agree.max(axis=0).min() >= 0.95 and agree.max(axis=1).min() >= 0.95
        merged = ours.detect(image, 1.2, 3)[:, :4]
        boxes = np.array(peer.detectMultiScale(image, 1.2, 3)).reshape(-1, 4)
        assert len(merged) == len(boxes)
        for box in boxes:
            assert np.abs(merged - box).max(axis=1).min() <= 2


@pytest.mark.slow
def test_row_h3_two_features_of_real_faces(shared_data: Path):
    import matplotlib.image

    images = shared_data / "kernel" / "images"
    with gzip.open(images / "lfw_subset.npy.gz") as stream:
        patches = np.load(stream)
    backgrounds = [matplotlib.image.imread(images / f"{name}.png") for name in ("motorcycle_left", "text")]
    backgrounds += list(patches[100:175])
    order = np.random.default_rng(0).permutation(100)
    faces, held = patches[:100][order[:75]], patches[:100][order[75:]]
    cascade = Cascade(1, most_features=2, random_state=0).fit(faces, backgrounds)
    assert cascade.stage_table(held)["kept"].iloc[0] >= 0.98
    assert cascade.stage_table(patches[175:])["kept"].iloc[0] <= 0.4


def test_a_picture_without_detections_has_no_frames():
    ax = plot_detections(np.zeros((20, 30)), np.empty((0, 5)))
    assert len(ax.patches) == 0 and len(ax.images) == 1
