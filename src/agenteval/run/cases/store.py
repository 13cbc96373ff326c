"""What a run counts while cases finish."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.results.model import CaseResult


@dataclass
class Retries:
    """How often agents had to be asked again."""

    turns: int = 0
    attempts: int = 0
    answered: int = 0

    def add(self, case: CaseResult) -> None:
        """One more case."""
        for iteration in case.iterations:
            for turn in iteration.turns:
                if turn.retries:
                    self.turns += 1
                    self.attempts += turn.retries
                    self.answered += turn.error is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What there is to say about it."""
        if not self.turns:
            return ()
        what = "1 turn was" if self.turns == 1 else f"{self.turns} turns were"
        attempts = "1 further attempt" if self.attempts == 1 else f"{self.attempts} further attempts"
        return (f"{what} asked again after a failure that may pass ({attempts}); {self.answered} got an answer",)
