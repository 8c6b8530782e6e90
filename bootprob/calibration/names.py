"""The calibrators on offer: their names, and where each is found."""

__all__ = ["CALIBRATIONS", "HOMES"]

HOMES = {
    "sigmoid": ("sigmoid", "Sigmoid"),
    "sigmoid-votes": ("votes", "VoteSigmoid"),
    "sigmoid-both": ("votes", "ScoreAndVoteSigmoid"),
    "isotonic": ("isotonic", "Isotonic"),
    "beta": ("beta", "Beta"),
    "venn-abers": ("venn_abers", "VennAbers"),
}
"""Module of this folder, and class, of each; the command line imports neither."""

CALIBRATIONS = (*HOMES, "auto")
"""What `calibration` of `BootstrapSVC` may be, beside None."""
