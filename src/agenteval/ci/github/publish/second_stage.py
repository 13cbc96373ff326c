"""Judges the results of another workflow run by the rules of the base branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agenteval.ci.github.publish.base_copy import BaseCommitFiles, base_copy
from agenteval.ci.github.publish.publisher import Content, PublishOptions, content_of
from agenteval.ci.github.publish.stages import Agreed, agreed
from agenteval.compare.gate import decide_gate, quarantined, rules_of
from agenteval.compare.policy import BaseNames
from agenteval.report.markdown.render import render_summary
from agenteval.report.view.view import view_of
from agenteval.results.model import Results
from agenteval.run.resolve.saved import resolve_saved
from agenteval.run.settings import Settings


@dataclass(frozen=True)
class SecondStage:
    """What the workflow says about the judgement.

    Attributes:
        options: options of the publication.
        settings: configuration, gate and templates that the workflow names.
        directory: the working directory in the repository.
        environment: environment variables of the runner; links point only to its repository.
        name: the name of the job, for the heading.
    """

    options: PublishOptions
    settings: Settings
    directory: str
    environment: Mapping[str, str]
    name: str

    def judge(self, results: Results, files: BaseCommitFiles) -> tuple[Content, Agreed]:
        """Return the texts of results, and the decision that they show.

        Args:
            results: the run; its author may have forged it.
            files: the files of the base commit.

        Raises:
            ConfigError: the configuration of the base commit is invalid.
            GithubError: GitHub refused, failed or could not be reached.
        """
        named = (self.settings.config, self.settings.comment_template, self.settings.summary_template)
        suites = [suite.path for suite in results.suites]
        with base_copy(files, suites, self.directory, [str(path) for path in named if path is not None]):
            spec = resolve_saved(results, self.settings, self.environment)
            policy = spec.gate.knowing(_base_names(results))
            out = quarantined(results, policy)
            found = agreed(decide_gate(results, policy), rules_of(policy, out), results.gate)
            view = view_of(found.gate, results)
            said = (found.contradiction,) if found.contradiction else found.warnings
            view = replace(view, warnings=(*said, *view.warnings))
            look = spec.presentation
            # The rules in the results are only a claim.
            rules = {"rules": rules_of(policy, out)}
            judged = results.model_copy(update={"gate": found.gate.model_copy(update=rules)})
            content = content_of(judged, view, self.options, name=self.name, presentation=look)
            if look.summary_template is not None:
                content = replace(content, own_summary=render_summary(judged, view, presentation=look))
        return content, found


def _base_names(results: Results) -> BaseNames:
    """Return id and name in the base commit of the cases that the change renamed, as the results tell them."""
    renamed = {item.after: item.before for item in results.run.integrity if item.kind == "renamed"}
    names = {case.id: renamed.get(case.id) for _, case in results.cases()}
    return {current: (base, base.rpartition("::")[2]) for current, base in names.items() if base}
