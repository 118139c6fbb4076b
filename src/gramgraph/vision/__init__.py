"""Detectors of the kind of Viola and Jones: integral images, Haar-like features, cascades that slide over images."""

from gramgraph.vision.cascade import Cascade
from gramgraph.vision.haar import HaarFeatures
from gramgraph.vision.images import grey_image, integral_image, resize_image
from gramgraph.vision.merging import merge_boxes, overlap

__all__ = ["Cascade", "HaarFeatures", "grey_image", "integral_image", "merge_boxes", "overlap", "resize_image"]
