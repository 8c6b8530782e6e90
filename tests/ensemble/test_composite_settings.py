"""Which settings of a composite posterior are kept, and looked at."""

from itertools import product

import numpy as np

from bootprob.ensemble.uncertainty.composite_model import STRAIGHT, Setting
from bootprob.ensemble.uncertainty.composite_settings import with_most, with_weight
from bootprob.ensemble.uncertainty.curves import Curve
from bootprob.ensemble.uncertainty.link_tails import LOGIT

LEVELLED = (0.0, 0.0, 0.1, 0.0)


def ranked():
    """120 settings whose evidence falls by a tenth from each to the next."""
    kernels = (), (Curve("rbf", "columns", 0.1),)
    kinds = product(STRAIGHT, STRAIGHT[:5], kernels, (LOGIT, LEVELLED))
    every = [Setting(k, (a, b), (1.0,) * len(k), tails) for a, b, k, tails in kinds]
    return {each: -0.1 * place for place, each in enumerate(every)}


def numbers(settings):
    levelled = sum(each.tails == LEVELLED for each in settings)
    curved = sum(bool(each.kernel) and each.tails == LOGIT for each in settings)
    return levelled, curved, len(settings) - levelled - curved


def test_the_best_of_each_kind():
    evidence = ranked()
    assert numbers(evidence) == (60, 30, 30)
    for times, expected in ((1, (40, 24, 16)), (2, (60, 30, 30))):
        found = with_most(evidence, times)
        assert numbers(found) == expected
        values = [evidence[each] for each in found]
        assert values == sorted(values, reverse=True)
    straight = [each for each in evidence if not each.kernel and each.tails == LOGIT]
    assert [each for each in with_most(evidence) if each in straight] == straight[:16]


def test_those_are_kept_that_have_a_thousandth_of_the_weight():
    evidence = ranked()
    most, found = with_most(evidence), with_weight(evidence)
    share = np.exp([evidence[each] for each in most])
    share /= share.sum()
    assert found == [each for each, own in zip(most, share, strict=True) if own > 0.001]
    assert len(found) < len(most)
