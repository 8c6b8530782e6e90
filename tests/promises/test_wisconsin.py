"""The Wisconsin data in ten folds, beside the thesis and scikit-learn's calibration."""

import time

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bootprob import DEFAULT_C, BootstrapSVC
from bootprob_gpu import Status


def test_ten_folds(record):
    X, y = load_breast_cancer(return_X_y=True)
    y = 1 - y  # positive: malignant
    tuned = GridSearchCV(
        make_pipeline(StandardScaler(), SVC(kernel="linear")), {"svc__C": DEFAULT_C}
    )
    models = {
        "paper": BootstrapSVC.paper(random_state=0),
        "default, linear": BootstrapSVC(kernel="linear", random_state=0),
        "default, rbf": BootstrapSVC(kernel="rbf", random_state=0),
        "CalibratedClassifierCV, pooled": CalibratedClassifierCV(tuned, ensemble=False),
        "CalibratedClassifierCV, ensemble": CalibratedClassifierCV(tuned, ensemble=True),
    }
    p = {name: np.empty(len(y)) for name in models}
    seconds = dict.fromkeys(models, 0.0)
    gap, unsolved = 0.0, 0
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    for inside, outside in folds.split(X, y):
        for name, model in models.items():
            started = time.perf_counter()
            model.fit(X[inside], y[inside])
            p[name][outside] = model.predict_proba(X[outside])[:, 1]
            seconds[name] += time.perf_counter() - started
            if isinstance(model, BootstrapSVC):
                gap = max(gap, model.certificates_["gap"].max())
                unsolved += (model.certificates_["status"] != Status.CONVERGED).sum()
    brier = {name: brier_score_loss(y, q) for name, q in p.items()}
    # A vote of 0 or 1 has no finite log-loss; 500 votes tell it from 1/1000 at best.
    loss = {
        name: log_loss(y, np.clip(q, 1e-3, 1 - 1e-3) if name == "paper" else q)
        for name, q in p.items()
    }
    record(
        "wisconsin_ten_folds",
        {
            "Brier score": {name: round(value, 4) for name, value in brier.items()},
            "log-loss": {name: round(value, 4) for name, value in loss.items()},
            "seconds for ten folds": {name: round(value, 1) for name, value in seconds.items()},
            "largest relative duality gap": float(gap),
            "models not converged": int(unsolved),
            "Brier score in the thesis, table 3.2": 0.018,
        },
    )
    assert brier["paper"] <= 0.020
    assert loss["default, linear"] <= 0.085
    assert loss["default, linear"] <= loss["CalibratedClassifierCV, pooled"]
    assert unsolved == 0
