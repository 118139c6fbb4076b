"""A detector of faces from 75 of them: the stages, what they keep and what they let pass, and what it cannot do.

Run `python examples/face_detector.py` (about two minutes; reads lfw_subset and backgrounds from GRAMGRAPH_DATA, default
../shared/data). The faces of lfw_subset were cut out by a detector of this family, so that another one's success on
them is no evidence; ours is judged on 25 faces and on background images that it was not trained on. With so few faces
it is a demonstration: hundreds of windows per image pass that are not faces. For real detection read a cascade that
ships with OpenCV: `gg.vision.Cascade.read_opencv(path)`.
"""

from __future__ import annotations

import gzip
import os
import sys
from pathlib import Path

import matplotlib
import numpy as np

import gramgraph as gg


def main(n_stages: int = 6) -> None:
    images = Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data")) / "kernel" / "images"
    if not images.exists():
        sys.exit(f"{images} is not there: set GRAMGRAPH_DATA to the folder with the data")
    matplotlib.use("agg")
    from matplotlib.image import imread

    with gzip.open(images / "lfw_subset.npy.gz") as stream:
        patches = np.load(stream)
    order = np.random.default_rng(0).permutation(100)
    faces, held = patches[order[:75]], patches[order[75:]]
    backgrounds = [imread(images / name) for name in ("motorcycle_left.png", "text.png", "horse.png")]
    unseen = [imread(images / "motorcycle_right.png")[:, -200:], imread(images / "bw_text.png")]

    backgrounds += list(patches[100:175])  # patches of the same photographs without a face

    cascade = gg.vision.Cascade(n_stages, random_state=0).fit(faces, backgrounds)
    print("trained on 75 faces; judged on 25 other faces and on background images not used in training\n")
    print(cascade.stage_table(held, unseen).round(4).to_string())
    first = cascade.stage_table(patches[175:])["kept"].iloc[0]
    print(f"\nfirst stage on 25 patches of lfw_subset without a face, held out: {first:.0%} pass\n")

    scene = imread(images / "camera.png")
    boxes = cascade.detect(scene, min_neighbors=3)
    print(f"{len(boxes)} boxes in camera.png: a demonstration, not a product")
    Path("demo").mkdir(exist_ok=True)
    gg.plot.plot_detections(scene, boxes[:20]).figure.savefig("demo/face_detector.png", dpi=100)
    gg.plot.plot_features(cascade.stages_, 2)[0].figure.savefig("demo/first_features.png", dpi=100)
    print("pictures in demo/face_detector.png and demo/first_features.png")


if __name__ == "__main__":
    main()
