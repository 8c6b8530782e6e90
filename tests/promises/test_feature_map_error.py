"""What an error of the feature map's kernel does to probabilities, and so where `fit` warns."""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification, make_moons
from sklearn.preprocessing import StandardScaler

from bootprob import BootstrapSVC
from bootprob_gpu import median_gamma

WARNED = 0.1  # relative error from which on `fit` warns


def _tables():
    """Name, training rows and labels, new rows."""
    X, y = load_breast_cancer(return_X_y=True)
    yield "wisconsin", X[:400], y[:400], X[400:]
    for p, informative in ((10, 5), (30, 10)):
        X, y = make_classification(
            1200, p, n_informative=informative, flip_y=0.1, n_clusters_per_class=4,
            random_state=0,
        )  # fmt: skip
        yield f"clusters in {informative} of {p} columns", X[:800], y[:800], X[800:]
    X, y = make_moons(1200, noise=0.3, random_state=0)
    yield "moons", X[:800], y[:800], X[800:]


def test_a_coarse_map_moves_probabilities_more_than_another_seed(record):
    measured = []
    for name, X, y, new in _tables():
        median = median_gamma(StandardScaler().fit_transform(X))
        for multiple in (0.25, 1.0, 4.0):

            def fit(seed=0, **params):
                model = BootstrapSVC(
                    kernel="rbf", gamma=median * multiple, C=[0.1, 1.0, 10.0],  # noqa: B023
                    standardize="global", n_bootstraps=20, random_state=seed, **params,
                )  # fmt: skip
                model.fit(X, y)  # noqa: B023
                return model, model.predict_proba(new)[:, 1]  # noqa: B023

            exact = fit()[1]
            by_seed = np.sqrt(np.square(fit(seed=1)[1] - exact).mean())
            for kind in ("nystroem", "random-features"):
                for D in (20, 50, 100, 200):
                    with warnings.catch_warnings():
                        warnings.filterwarnings("ignore", "The feature map's kernel is off")
                        model, p = fit(feature_map=kind, n_components=D)
                    measured.append(
                        {
                            "table": name,
                            "gamma / median rule": multiple,
                            "map": f"{kind}, {D} columns",
                            "relative error": round(model.feature_map_error_["relative"], 4),
                            "probabilities off by": round(
                                float(np.sqrt(np.square(p - exact).mean())), 4
                            ),
                            "by another seed": round(float(by_seed), 4),
                        }
                    )
    warned = [m for m in measured if m["relative error"] >= WARNED]
    close = [m for m in measured if m["relative error"] < WARNED]
    summary = {
        side: {
            "maps": len(maps),
            "probabilities off by, root mean square": {
                "least": min(m["probabilities off by"] for m in maps),
                "median": float(np.median([m["probabilities off by"] for m in maps])),
                "most": max(m["probabilities off by"] for m in maps),
            },
            "off by more than another seed": len(
                [m for m in maps if m["probabilities off by"] > m["by another seed"]]
            ),
        }
        for side, maps in (("warned", warned), ("not warned", close))
    }
    record("feature_map_error", {**summary, "single maps": measured})
    assert len(warned) > 30
    assert summary["warned"]["off by more than another seed"] == len(warned)
    assert summary["not warned"]["probabilities off by, root mean square"]["median"] < 0.03
