"""Rows of a composite posterior whose logit is bent by a product of two columns."""

from __future__ import annotations

import numpy as np
import torch
from numpy.random import Generator
from scipy.special import expit

from bootprob.ensemble.uncertainty.composite_model import Model
from bootprob.ensemble.uncertainty.composite_stage import Stage
from bootprob.ensemble.uncertainty.curves import Landmarks, candidates
from bootprob.ensemble.uncertainty.labelled_rows import LabelledRows
from bootprob.ensemble.uncertainty.straight import straight_columns
from bootprob.preparation.views import view_kernels

__all__ = ["stage_of_a_product"]


def stage_of_a_product(rng: Generator, n: int, n_landmarks: int) -> Stage:
    """Nothing is known yet of n rows with four columns; the first rows are landmarks."""
    rows = rng.normal(size=(n, 4))
    positive = rng.uniform(size=n) < expit(rows[:, 0] + 2 * rows[:, 1] * rows[:, 2])
    weight = rng.uniform(0.5, 1.5, size=n)
    data = LabelledRows.of(rows, positive, weight, torch.device("cpu"))
    kernels = view_kernels(rows, np.ones(n))
    landmarks = Landmarks(data.rows[:n_landmarks], kernels.of_columns)
    straight = straight_columns(data, kernels.of_columns)
    return Stage(data, Model(landmarks, straight, candidates(kernels, landmarks)))
