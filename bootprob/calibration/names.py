"""The calibrators on offer: their names, where each is found, and what is said of it."""

from typing import NamedTuple

__all__ = ["CALIBRATIONS", "HOMES"]


class Home(NamedTuple):
    """Module of this folder, class, and what the documentation of `BootstrapSVC` says."""

    module: str
    calibrator: str
    doc: str


# The command line imports this, and no calibrator.
HOMES = {
    "sigmoid": Home("sigmoid", "Sigmoid", "of the mean score."),
    "sigmoid-votes": Home("votes", "VoteSigmoid", "of the logit of the vote share."),
    "sigmoid-both": Home("votes", "ScoreAndVoteSigmoid", "of the two together."),
    "isotonic": Home("isotonic", "Isotonic", "of the mean score, rising and piecewise linear."),
    "beta": Home("beta", "Beta", "of the mean score, steeper on one side than on the other."),
    "venn-abers": Home("venn_abers", "VennAbers", "between two isotonic regressions."),
}

CALIBRATIONS = (*HOMES, "auto")
"""What `calibration` of `BootstrapSVC` may be, beside None."""
