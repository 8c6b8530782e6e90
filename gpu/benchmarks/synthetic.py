"""Data made by formula, in the shape and with the awkwardness of well-known tables."""

from __future__ import annotations

import numpy as np

from bootprob.runtime.arrays import Bools, Floats

__all__ = ["adult_like", "gene_like", "mixed_columns"]

Data = tuple[Floats, Bools]

# Levels of the categories of the Adult census table: work class, education, marital status,
# occupation, relationship, race, sex, country. With six numbers that makes 100 columns.
_ADULT_LEVELS = (8, 16, 7, 14, 6, 5, 2, 36)


def adult_like(n: int = 29_000, seed: int = 1994) -> Data:
    """Rows like the Adult census table: 6 numbers and 94 dummies, 24 % positives.

    Three hidden factors of a person tie the columns together. Levels of a category have
    frequencies that fall like 1 / rank, so that some dummies are nearly empty; two of the numbers
    are zero for nine persons in ten. The label follows a logistic model of factors and columns, so
    the classes overlap about as much as they do in the census.

    Parameters
    ----------
    n : int, default 29,000
        Number of rows.
    seed : int
        Of everything random in it.

    Returns
    -------
    X : ndarray, shape (n, 100)
    y : ndarray of bool, shape (n,)
    """
    rng = np.random.default_rng(seed)
    person = rng.normal(size=(n, 3))
    age = np.clip(np.rint(39 + 13 * _mix(rng, person)), 17, 90)
    schooling = np.clip(np.rint(10 + 2.5 * _mix(rng, person)), 1, 16)
    hours = np.clip(np.rint(40 + 12 * _mix(rng, person)), 1, 99)
    sampling = np.exp(12 + 0.6 * rng.normal(size=n))
    gain = np.exp(8 + _mix(rng, person)) * (rng.uniform(size=n) < 0.08)
    loss = np.exp(7.5 + 0.3 * rng.normal(size=n)) * (rng.uniform(size=n) < 0.05)
    dummies = [_category(rng, person, levels) for levels in _ADULT_LEVELS]
    X = np.column_stack([age, schooling, hours, sampling, gain, loss, *dummies])
    centred = X - X.mean(axis=0)
    columns = centred / np.where(centred.std(axis=0) > 0, centred.std(axis=0), 1)
    odds = columns @ rng.normal(scale=0.3, size=X.shape[1]) + person @ [1.0, 0.7, 0.3]
    latent = odds + rng.logistic(size=n)
    return X, latent > np.quantile(latent, 0.76)


def gene_like(n: int = 65, genes: int = 7_129, seed: int = 1999) -> Data:
    """Rows like a gene expression study: few persons, thousands of correlated log-normal genes.

    Eight hidden factors shared by all genes, noise of each gene, and a shift of the class in 40
    informative ones; then ``exp``.

    Parameters
    ----------
    n, genes : int
        Rows and columns.
    seed : int
        Of everything random in it.

    Returns
    -------
    X : ndarray, shape (n, genes)
    y : ndarray of bool, shape (n,)
        About 38 % positives.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) < round(0.38 * n)
    factors = rng.normal(size=(n, 8)) @ rng.normal(scale=0.35, size=(8, genes))
    level = rng.normal(5, 1.5, size=genes)
    shift = np.where(np.arange(genes) < 40, rng.normal(0, 1.2, size=genes), 0)
    expression = np.exp(level + factors + 0.5 * rng.normal(size=(n, genes)) + np.outer(y, shift))
    return expression[:, rng.permutation(genes)], y


def mixed_columns(n: int, p: int, seed: int = 2024) -> Data:
    """Numbers with heavy tails and dummies in equal parts, for looking at growth.

    Parameters
    ----------
    n, p : int
        Rows and columns.
    seed : int
        Of everything random in it.

    Returns
    -------
    X : ndarray, shape (n, p)
    y : ndarray of bool, shape (n,)
        A logistic model of ten columns at most, about half of them positive.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) @ rng.normal(scale=0.5, size=(3, p)) + rng.normal(size=(n, p))
    X[:, ::2] = np.exp(0.5 * X[:, ::2])
    X[:, 1::2] = X[:, 1::2] > rng.normal(size=X[:, 1::2].shape[1])
    told = min(p, 10)
    odds = X[:, :told] @ rng.normal(scale=2 / np.sqrt(told), size=told)
    return X, odds - np.median(odds) + rng.logistic(size=n) > 0


def _mix(rng: np.random.Generator, person: Floats) -> Floats:
    """A standard normal number of each person, half of it from the hidden factors."""
    direction = rng.normal(size=person.shape[1])
    shared = person @ (direction / np.linalg.norm(direction))
    return np.sqrt(0.5) * (shared + rng.normal(size=len(person)))


def _category(rng: np.random.Generator, person: Floats, levels: int) -> Floats:
    """Dummies of one category, one column a level."""
    appeal = person @ rng.normal(scale=0.6, size=(person.shape[1], levels))
    appeal += -np.log1p(np.arange(levels)) + rng.gumbel(size=(len(person), levels))
    return np.eye(levels)[appeal.argmax(axis=1)]
