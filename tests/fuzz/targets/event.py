"""The payload of an event, under every name of an event. ConfigError, and only from reading it."""

from __future__ import annotations

from tests.fuzz.scratch import as_file

from agenteval.core.errors import ConfigError
from agenteval.github.event import plan, read_event

_EVENTS = (
    "pull_request",
    "pull_request_target",
    "push",
    "merge_group",
    "schedule",
    "workflow_dispatch",
    "workflow_run",
)
_RUNNER = {
    "GITHUB_REPOSITORY": "octo/agent",
    "GITHUB_SHA": "a" * 40,
    "GITHUB_REF": "refs/pull/7/merge",
    "GITHUB_RUN_ID": "1",
    "GITHUB_WORKFLOW_REF": "octo/agent/.github/workflows/agenteval.yml@refs/heads/main",
}


def target(data: bytes) -> None:
    path = as_file(data, "event/event.json")
    try:
        event = read_event({"GITHUB_EVENT_PATH": str(path)})
    except ConfigError:
        return
    for name in _EVENTS:
        planned = plan({**_RUNNER, "GITHUB_EVENT_NAME": name}, event)
        # Whatever a payload says, nothing is run with the rights of the base repository.
        assert planned.refused if name == "pull_request_target" else planned.event == name
        assert planned.may_comment or planned.reason or name == "workflow_run"
