"""Train the full ensemble on every data set at hand and report what was not solved.

    python -m gpu.benchmarks.convergence [--kernel linear|rbf] [NAME ...]

Writes docs/results/convergence.json: for each data set and kernel the largest relative duality gap
of the 5,500 models, how many did not converge, and the seconds taken. RBF beyond 2,000 rows is
left out (its Gram matrices are made for each of the 500 samples).
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np

from bootprob import BootstrapSVC
from bootprob_gpu import Status
from gpu.benchmarks.common.datasets import LOADERS
from gpu.benchmarks.common.places import DOCS

OUT = DOCS / "results" / "convergence.json"
RBF_ROWS = 2000


def main(names: list[str], kernels: list[str]) -> None:
    measured = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in names or LOADERS:
        X, y = LOADERS[name]()
        for kernel in kernels:
            if kernel == "rbf" and len(X) > RBF_ROWS:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what did not converge is counted below
                model = BootstrapSVC(kernel=kernel, random_state=0).fit(X, y)
            status = model.certificates_["status"]
            row = {
                "rows": len(X),
                "columns": X.shape[1],
                "models": status.size,
                "not converged": int((status != Status.CONVERGED).sum()),
                "largest relative gap": float(model.certificates_["gap"].max()),
                "largest number of iterations": int(model.certificates_["n_iter"].max()),
                "all finite": bool(np.isfinite(model.bootstrap_intercept_).all()),
                "seconds": round(model.fit_seconds_, 1),
            }
            measured[f"{name}, {kernel}"] = row
            print(f"{name:14s} {kernel:6s} {row}", flush=True)
            OUT.parent.mkdir(exist_ok=True)
            OUT.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*LOADERS, []])
    parser.add_argument("--kernel", action="append", choices=["linear", "rbf"])
    arguments = parser.parse_args()
    main(arguments.names, arguments.kernel or ["linear", "rbf"])
