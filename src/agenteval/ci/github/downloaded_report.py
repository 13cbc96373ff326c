"""The report directory of a workflow run, from its artifact; nothing is written to disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from agenteval.ci.github.api.artifacts import DownloadLimits, UnusableArtifactError, download, read_member
from agenteval.ci.github.api.client import Client
from agenteval.ci.github.api.workflow_runs import Artifact
from agenteval.ci.github.api.zip_member import MemberLimits
from agenteval.core.errors import ConfigError
from agenteval.results.store import RESULTS_FILE

_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class DownloadedReport:
    """A downloaded artifact with a report directory; its content is untrusted.

    Attributes:
        zipped: the zip file.
        limits: limits of one file.
    """

    zipped: bytes = field(repr=False)
    limits: MemberLimits = field(default_factory=MemberLimits)

    @classmethod
    def download(
        cls,
        client: Client,
        repository: str,
        artifact: Artifact,
        limits: DownloadLimits | None = None,
        member: MemberLimits | None = None,
    ) -> DownloadedReport:
        """Download an artifact.

        Args:
            client: connection to GitHub.
            repository: ``owner/name``.
            artifact: the artifact.
            limits: limits of the download.
            member: limits of one file.

        Raises:
            UnusableArtifactError: expired, deleted, too large, too slow, or a different digest.
            GithubError: GitHub refused, failed or could not be reached.
        """
        if artifact.expired:
            raise UnusableArtifactError("it has expired")
        return cls(download(client, repository, artifact.id, artifact.digest, limits), member or MemberLimits())

    def file(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            UnusableArtifactError: the file is missing or unsafe.
        """
        return read_member(self.zipped, name, self.limits)

    def results(self, parse: Callable[[bytes, str], _Parsed]) -> _Parsed:
        """Return the results, as a parser of results.json returns them.

        Args:
            parse: parses the content of a file with a name.

        Raises:
            UnusableArtifactError: the file is missing, unsafe or no results file.
        """
        data = self.file(RESULTS_FILE)
        try:
            return parse(data, RESULTS_FILE)
        except ConfigError as error:
            raise UnusableArtifactError(str(error)) from None
