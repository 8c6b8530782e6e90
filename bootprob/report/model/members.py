"""What an ensemble is made of, in words: support vector machines, or classifiers of others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from bootprob.ensemble.estimator import BootstrapSVC
from bootprob.report.wording import count, percent

__all__ = ["called", "candidate_names", "label_of", "members_of", "weights_of"]


def called(classifier: Any) -> str:
    """The name of a classifier; of a pipeline those of its steps.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.preprocessing import StandardScaler
    >>> called(Pipeline([("scale", StandardScaler()), ("bayes", GaussianNB())]))
    'StandardScaler and GaussianNB'
    """
    if isinstance(classifier, FrozenEstimator):
        return called(classifier.estimator)
    if isinstance(classifier, Pipeline):
        steps = [type(step).__name__ for _, step in classifier.steps if hasattr(step, "fit")]
        return " and ".join((", ".join(steps[:-1]), steps[-1])) if steps[1:] else steps[0]
    return type(classifier).__name__


def label_of(model: Any) -> str:
    """What to call a model among others: its kernel, or its classifiers."""
    if isinstance(model, BootstrapSVC):
        return str(model.kernel)
    return " + ".join(dict.fromkeys(map(called, model.candidates_)))


def candidate_names(model: Any) -> list[str]:
    """Of classifiers, what tells the R models of a replicate apart: parameters, or names."""
    if isinstance(model.estimator, list) or model.param_grid is None:
        names, seen = list(map(called, model.candidates_)), Counter[str]()
        twice = {name for name, times in Counter(names).items() if times > 1}
        for at, name in enumerate(names):
            seen[name] += 1
            if name in twice:
                names[at] = f"{name} ({seen[name]})"
        return names
    return [
        ", ".join(f"{name} = {value}" for name, value in each.items())
        for each in ParameterGrid(model.param_grid)
    ]


def weights_of(model: Any) -> dict[str, float]:
    """Weights of what a model is made of, the heaviest first; of several classes their mean.

    That of the posterior is its share beside all others.
    """
    if isinstance(model, BootstrapSVC):
        return model.kernel_weights_
    names, pairs = candidate_names(model), model.pair_ensembles_ or [model]
    shares = np.array([each.posterior_share_ or 0.0 for each in pairs])
    weights = (1 - shares) @ np.stack([each.weights_ for each in pairs]) / len(pairs)
    found = dict(zip(names, weights.tolist(), strict=True))
    if shares.any():
        found["posterior"] = float(shares.mean())
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def members_of(model: Any) -> dict[str, Any]:
    """Facts for the page: "member" and "members", "judges", what it is "made_of", and how many.

    "is_frozen" says whether it is one classifier that was fitted before.
    """
    of_pairs = [each.accuracy_ for each in model.pair_ensembles_ or [model]]
    B, R = of_pairs[0].shape
    found = {"n_bootstraps": B, "n_parameter_values": R, "is_frozen": False}
    n, member = B * R, "classifier"
    if isinstance(model, BootstrapSVC):
        n, member = sum(each.size for each in of_pairs), "machine"
        found |= {"kernel": str(model.kernel), "classifier": None}
        made_of = f"a committee of {count(n)} support vector machines"
    else:
        found |= {"kernel": None, "classifier": (name := label_of(model))}
        made_of = f"a committee of {count(n)} classifiers ({name})"
        if isinstance(model.estimator, FrozenEstimator):
            n, found["is_frozen"] = 1, True
            made_of = f"a classifier that was fitted before ({name}), calibrated on these rows"
        elif model.drawn_counts_ is not None:
            made_of, member = f"a forest of {count(n)} trees", "tree"
    judges = members = f"{member}s"
    if share := weights_of(model).get("posterior"):
        made_of += f", beside a posterior that has {percent(share, 0)} of the weight"
        judges += " and a posterior"
    return found | {
        "member": member,
        "members": members,
        "judges": judges,
        "made_of": made_of,
        "n_models": n,
    }
