"""The handwritten digits that come with scikit-learn, for all examples of this folder. Nothing is downloaded."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

#: Pictures to train on; the others are held out.
TRAINING = 1437


def load() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """(images, labels) to train on, and (images, labels) held out: 1437 and 360 pictures of 8 x 8, from 0 to 1."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.images[order].astype("float32") / 16, digits.target[order]
    return (images[:TRAINING], labels[:TRAINING]), (images[TRAINING:], labels[TRAINING:])
