"""Table 3 of Carrizosa, Martin-Barragan, Romero Morales (2005): percentages right, as printed."""

from __future__ import annotations

__all__ = ["TABLE_3"]

TABLE_3 = {
    "bupa": (60.87, 57.39, 60.00, 60.87, 62.61, 67.83, 72.17, 66.96, 59.13, 58.26, 57.39, 68.70),
    "pima": (64.84, 69.14, 72.27, 72.27, 71.48, 70.31, 74.22, 38.28, 66.41, 62.89, 67.19, 64.84),
    "wdbc": (94.74, 94.21, 95.26, 95.26, 95.79, 90.53, 95.79, 94.21, 93.68, 89.47, 91.58, 63.16),
    "credit": (72.07, 70.72, 73.87, 72.52, 72.07, 72.97, 77.48, 65.32, 69.37, 59.01, 75.23, 77.48),
}
"""1- to 5-nearest neighbours, tree, SVM: linear, polynomial of grade 2 to 5, RBF."""
