"""Draw: chance for the generator, in two streams: one decides the shape of a statement, the other its literals.

The same shape with another stream of literals is the same statement with other literals; that is what the fingerprint is held to.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """`shape` may be hypothesis' own Random, which then shrinks the statement."""

    def __init__(self, shape: Random, literals: Random) -> None:
        self.shape = shape
        self.literals = literals

    def chance(self, probability: float) -> bool:
        return self.shape.random() < probability

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.shape.randrange(len(choices))]

    def upto(self, most: int, least: int = 0) -> int:
        """A number from `least` to `most`, small ones more often."""
        return least + min(self.shape.randrange(most - least + 1), self.shape.randrange(most - least + 1))

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Between one and `most` different ones, in a random order."""
        left = list(choices)
        return [left.pop(self.shape.randrange(len(left))) for _ in range(min(len(left), self.upto(most, 1)))]

    def weighted(self, choices: Sequence[tuple[float, Callable[[], T]]]) -> T:
        """The result of one of the calls, by weight."""
        at = self.shape.random() * sum(weight for weight, _ in choices)
        for weight, make in choices:
            at -= weight
            if at < 0:
                return make()
        return choices[-1][1]()

    def literal(self, choices: Sequence[T]) -> T:
        return choices[self.literals.randrange(len(choices))]
