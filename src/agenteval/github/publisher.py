"""Publishes a run on GitHub: a section of the pull request's comment, and a check run with annotations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, Self

from agenteval.core.errors import AgentEvalError
from agenteval.core.escape import one_line
from agenteval.core.records import dataclass, field, replace
from agenteval.github.check_run import TEXT_LIMIT, CheckRun, Conclusion
from agenteval.github.client import GitHubClient
from agenteval.github.comment import Mode, StepName
from agenteval.github.comment_sections import Origin, Revision, Section
from agenteval.github.comment_update import CommentOutcome, Pacing
from agenteval.github.workflow_runs import RunJobs
from agenteval.report.facts import Report
from agenteval.report.overview import Annotation, annotate, render_running, render_unfinished, running_note
from agenteval.report.parts import utf8_bytes
from agenteval.results.verdict import Verdict

CommentMode = Literal["always", "changes", "failures", "never"]

# Reserve for the hidden lines around a section.
_SECTION_LIMIT = 64_000
# Lines that begin neither a table nor a list nor a paragraph.
_NO_TABLE = ("<", "```", "#", "~~~")
_TITLE_LIMIT = 250
# A notice is not worth waiting for; texts of other jobs are still repaired.
_AT_ONCE = Pacing(settle_s=0.1, jitter_s=0.2)


@dataclass(frozen=True)
class PublicationTarget:
    """Target of a publication.

    Attributes:
        revision: workflow run and attempt; a text of a later one is never overwritten.
        jobs: reads the jobs of the workflow run that publishes; ``None`` as its result if they are unknown.
    """

    repository: str
    commit: str
    run_url: str
    step: StepName
    revision: Revision
    pull_request: int | None = None
    takes_checks: bool = True
    jobs: Callable[[], RunJobs | None] = lambda: None

    @property
    def external_id(self) -> str:
        """Return an id of this attempt of this job."""
        return f"{self.revision.run_id}/{self.revision.attempt}/{self.step.key}"


@dataclass(frozen=True)
class PublishOptions:
    """Options of a publication.

    Attributes:
        comment: when to create a comment. An existing one is always updated, except with ``never``.
        comment_id: distinguishes several comments on one pull request.
    """

    comment: CommentMode = "always"
    comment_id: str = ""
    check_name: str = ""
    annotations: bool = True


@dataclass(frozen=True)
class Content:
    """Texts of a run.

    Attributes:
        markdown: the comment; its first two paragraphs stay if space is limited.
        details: text of the check run after its summary.
        verdict: the gate's verdict; ``error`` also without results.
        is_change: whether any case broke or was repaired.
        note: what the texts say below the numbers, as Markdown.
        row: its row in the table of all jobs; empty without results.
        own_summary: the job summary that a user's template makes; empty without one.
    """

    title: str
    markdown: str
    details: str
    conclusion: Conclusion
    verdict: Verdict = "error"
    is_change: bool = False
    annotations: tuple[Annotation, ...] = ()
    note: str = ""
    row: str = ""
    own_summary: str = ""

    @property
    def summary(self) -> str:
        """Return the summary of the check run: what follows the heading up to the first fold."""
        head, detail = self.parts
        title, _, rest = head.partition("\n\n")
        text = rest if title.startswith("### ") and rest else head
        return "\n\n".join(filter(None, (text, _up_to_folds(detail)))) if self.row else head

    @property
    def parts(self) -> tuple[str, str]:
        """Return the part that always stays, and the rest."""
        verdict, _, rest = self.markdown.strip().partition("\n\n")
        numbers, _, detail = rest.partition("\n\n")
        return "\n\n".join(filter(None, (verdict, numbers, self.note))).strip(), detail.strip()

    @property
    def job_summary(self) -> str:
        """Return what the job that publishes the run shows: the comment, if the user has no template for it."""
        if self.own_summary:
            return "\n\n".join(filter(None, (self.own_summary.strip(), self.note)))
        return "\n\n".join(self.parts)

    def accepted(self, note: str) -> Self:
        """Return the content with who accepted it."""
        return replace(self, note=note)

    def awaiting_acceptance(self, note: str) -> Self:
        """Return the content as long as nobody has accepted it: its check run satisfies no rule that requires it.

        ``neutral`` and ``skipped`` would satisfy one, as ``success`` does.
        """
        satisfies = self.conclusion in {"success", "neutral", "skipped"}
        return replace(self, conclusion="action_required" if satisfies else self.conclusion, note=note)

    def calls_for(self, mode: CommentMode) -> bool:
        """Return whether to create a missing comment."""
        failed = self.conclusion == "failure" or (self.conclusion == "action_required" and self.verdict != "passed")
        return (
            mode == "always" or (mode == "changes" and (self.is_change or failed)) or (mode == "failures" and failed)
        )


def section_of(place: PublicationTarget, content: Content, jobs: RunJobs | None) -> Section:
    """Return the section of a comment with this content."""
    step = place.step
    origin = None if jobs is None else Origin.of(step.origin, jobs.own, step.step)
    head, detail = content.parts
    return Section(step.key, head, detail, place.revision, verdict=content.verdict, origin=origin, row=content.row)


def _up_to_folds(markdown: str) -> str:
    """Return the tables and lists at the beginning of a text."""
    lines = itertools.takewhile(lambda line: not line.startswith(_NO_TABLE), markdown.splitlines())
    return "\n".join(lines).strip()


def revision_of(run_id: str | None, attempt: str | None) -> Revision:
    """Return the revision of a workflow run; 0 for values that are not numbers."""
    run, times = (int(text) if text and text.isascii() and text.isdigit() else 0 for text in (run_id, attempt))
    return Revision(run, times)


def _conclusion(report: Report) -> Conclusion:
    if report.verdict == "unproven":
        return "action_required" if report.gate.exit_status else "neutral"
    return "success" if report.passed else "failure"


def heading_of(name: str, comment_id: str) -> str:
    """Return what a heading says of the section besides the verdict: the job, and the comment's id."""
    return f"{name} ({comment_id})" if name and comment_id else name or comment_id


def content_of(report: Report, options: PublishOptions, *, name: str = "") -> Content:
    """Return the texts of a finished run; ``name`` is the job's, for the heading of the comment."""
    from agenteval.report.markdown import render_comment
    from agenteval.report.overview import overview_row

    job = heading_of(name, options.comment_id)
    markdown = render_comment(report, job, limit=_SECTION_LIMIT)
    fits = utf8_bytes(markdown) <= TEXT_LIMIT
    text = markdown if fits else render_comment(report, limit=TEXT_LIMIT, size=utf8_bytes)
    return Content(
        title=one_line(report.heading.title, _TITLE_LIMIT),
        markdown=markdown,
        details=_after(text),
        conclusion=_conclusion(report),
        verdict=report.verdict,
        is_change=report.base is not None and report.base.is_changed,
        annotations=annotate(report) if options.annotations else (),
        row=overview_row(report, job),
    )


def _after(markdown: str) -> str:
    """Return what follows the heading, the sentence and the tables of a comment."""
    rest = markdown.strip().partition("\n\n")[2].partition("\n\n")[2].strip()
    return rest.removeprefix(_up_to_folds(rest)).strip()


@dataclass
class Publisher:
    """Publishes one run. Errors are collected instead of raised, and the other steps continue."""

    client: GitHubClient
    place: PublicationTarget
    options: PublishOptions
    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    check: CheckRun | None = None

    @property
    def comments(self) -> bool:
        """Return whether a pull request exists and comments are enabled."""
        return self.place.pull_request is not None and self.options.comment != "never"

    def begin(self) -> None:
        """Announce that the evaluation is running, in a check run and in an existing comment."""
        self.start_check()
        if self.comments:
            with self._going_on():
                from agenteval.github.comment import mark_running

                note = running_note(self.place.commit, self.place.run_url)
                mark_running(*self._where, self._note(note), pacing=_AT_ONCE)

    def start_check(self) -> None:
        """Create a check run in progress, if it is enabled and the token can."""
        if not (self.options.check_name and self.place.takes_checks):
            return
        with self._going_on():
            # PyGithub is slow to import.
            from agenteval.github.pygithub import start_check

            self.check = start_check(
                self.client,
                self.place.repository,
                self.place.commit,
                self.options.check_name,
                details_url=self.place.run_url,
                external_id=self.place.external_id,
                summary=render_running(self.place.commit, self.place.run_url),
            )

    def finish(self, content: Content) -> str:
        """Publish the result; return the address of the comment, or an empty text."""
        with self._going_on():
            self._finish_check(content)
        if not self.comments:
            return ""
        with self._going_on():
            return self._comment(content).url
        return ""

    def abandon(self) -> None:
        """Replace "in progress" notes by a note that the evaluation did not finish."""
        with self._going_on():
            self._abandon_check()
        if self.comments:
            with self._going_on():
                from agenteval.github.comment import mark_running

                outcome = mark_running(*self._where, self._note(self._unfinished))
                self.done.append(f"comment {outcome.action}: {outcome.url}".rstrip(": "))

    def _abandon_check(self) -> None:
        if self.check is None:
            return
        from agenteval.github.pygithub import abandon_check

        if abandon_check(self.client, self.place.repository, self.check.id, self._unfinished):
            self.done.append("check run closed")

    @property
    def _unfinished(self) -> str:
        return render_unfinished(self.place.commit, self.place.run_url, self.place.step.title)

    @property
    def _where(self) -> tuple[GitHubClient, str, int, str]:
        return self.client, self.place.repository, self.place.pull_request or 0, self.options.comment_id

    def _note(self, text: str) -> Section:
        return Section(self.place.step.key, text, revision=self.place.revision)

    def _comment(self, content: Content) -> CommentOutcome:
        from agenteval.github.comment import publish_section

        mode: Mode = "always" if content.calls_for(self.options.comment) else "existing"
        jobs = self.place.jobs()
        section = section_of(self.place, content, jobs)
        # Otherwise a job without a change may write no section.
        waiting = self.options.comment == "always"
        outcome = publish_section(*self._where, section, mode=mode, jobs=jobs, waiting=waiting)
        self.done.append(f"comment {outcome.action}: {outcome.url}".rstrip(": "))
        return outcome

    def _finish_check(self, content: Content) -> None:
        if self.check is None:
            return
        from agenteval.github.pygithub import finish_check

        try:
            finish_check(
                self.client,
                self.place.repository,
                self.check,
                conclusion=content.conclusion,
                title=content.title,
                summary=content.summary,
                text=content.details,
                annotations=content.annotations,
            )
        except BaseException:
            # Also if the job is cancelled now: nobody else would complete it.
            with suppress(Exception):
                self._abandon_check()
            raise
        self.done.append(f"check run {content.conclusion}: {self.check.url}")

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        try:
            yield
        except AgentEvalError as error:
            self.problems.append(str(error))
        except Exception as error:  # noqa: BLE001 - PyGithub raises assertions too; the gate is already decided
            self.problems.append(f"{type(error).__name__}: {error}")
