"""Fixtures of the ensembles' tests."""

import pytest

from bootprob.ensemble.uncertainty import composite_search


@pytest.fixture
def one_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Composite posteriors try one link besides the logit, of what is not about links."""
    monkeypatch.setattr(composite_search, "TAILS", composite_search.TAILS[:1])
