"""Directions of a plane that put enough rows of two classes on their sides: all of them."""

from __future__ import annotations

import math

import numpy as np

from bootprob.runtime.arrays import Floats
from bootprob_gpu.hardware.compiled import compiled, inner

__all__ = ["separating_direction"]


_SHRUNK = 1e-9  # radians: what rounding may do to an angle
_SAME = 1e-12


@inner()
def _octant(dx: float, dy: float) -> int:
    """0 to 7, counter-clockwise from the direction (1, 0)."""
    if dy >= 0:
        if dx > 0:
            return 0 if dx > dy else 1
        return 2 if -dx < dy else 3
    if dx < 0:
        return 4 if -dx > -dy else 5
    return 6 if dx < -dy else 7


@compiled("the search for separating planes", seconds=2)
def separating_direction(
    held: Floats, held_mass: Floats, other: Floats, other_mass: Floats, lost: float, spared: float
) -> tuple[bool, float]:
    """A direction of the plane in which the points held lie above the others, but for a few.

    If there is one, there also is one whose line goes through a point of those that are above,
    with all the others of them strictly above it. So each point held is the pivot of a line that
    turns, and the points above and below it are counted: O(k log k) for k points. A pivot is left
    out if in every octant of directions the octants that are wholly on the wrong side hold too
    many points.

    Parameters
    ----------
    held, other : ndarray, shape (k, 2) and (l, 2)
        Points of two classes.
    held_mass, other_mass : ndarray, shape (k,) and (l,)
        How many rows each stands for.
    lost, spared : float
        Mass of `held` that may lie on or below the line, of `other` that may lie on or above.

    Returns
    -------
    found : bool
    angle : float
        Of the direction: points of `held` have the larger scores.
    """
    k, n = len(held), len(held) + len(other)
    starts, ends, mass = np.empty(n), np.empty(n), np.empty(n)
    angles, changes = np.empty(2 * n), np.empty((2 * n, 2))
    sectors = np.empty((8, 2))
    turn = 2 * math.pi
    for pivot in range(k):
        sectors[:] = 0.0
        below, above = 0.0, 0.0  # on the wrong side
        size = 0
        for i in range(n):
            is_held = i < k
            if is_held:
                dx, dy = held[i, 0] - held[pivot, 0], held[i, 1] - held[pivot, 1]
            else:
                dx, dy = other[i - k, 0] - held[pivot, 0], other[i - k, 1] - held[pivot, 1]
            weight = held_mass[i] if is_held else other_mass[i - k]
            if abs(dx) + abs(dy) < _SAME:
                if not is_held:
                    above += weight  # in the place of the pivot, hence never below
                continue
            sector = _octant(dx, dy)
            sectors[sector, 0 if is_held else 1] += weight
            starts[size], ends[size] = dx, dy
            mass[size] = weight if is_held else -weight
            size += 1
        possible = False
        for sector in range(8):
            under = above_it = 0.0
            for step in range(3):
                under += sectors[(sector + 3 + step) % 8, 0]
                above_it += sectors[(sector + 7 + step) % 8, 1]
            if below + under <= lost and above + above_it <= spared:
                possible = True
                break
        if not possible:
            continue
        # A point is on its right side while the direction is in an open half turn; at the start
        # every point is wrong, but for those whose half turn is under way.
        for i in range(size):
            towards = math.atan2(ends[i], starts[i])
            if mass[i] < 0:
                towards += math.pi
            starts[i] = (towards - math.pi / 2 + _SHRUNK) % turn
            ends[i] = (towards + math.pi / 2 - _SHRUNK) % turn
            column = 0 if mass[i] > 0 else 1
            weight = abs(mass[i])
            if starts[i] < ends[i]:
                if column == 0:
                    below += weight
                else:
                    above += weight
            angles[2 * i], angles[2 * i + 1] = starts[i], ends[i]
            changes[2 * i, column], changes[2 * i, 1 - column] = -weight, 0.0
            changes[2 * i + 1, column], changes[2 * i + 1, 1 - column] = weight, 0.0
        if size == 0:
            if above <= spared:
                return True, 0.0
            continue
        order = np.argsort(angles[: 2 * size])
        before = 0.0
        for place in order:
            if below <= lost and above <= spared and angles[place] - before > _SAME:
                return True, 0.5 * (before + angles[place])
            below += changes[place, 0]
            above += changes[place, 1]
            before = angles[place]
        if below <= lost and above <= spared and turn - before > _SAME:
            return True, 0.5 * (before + turn)
    return False, 0.0
