"""The commands for newcomers and projects: ``demo``, ``init``, ``explain``, ``schema`` and ``plugins``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agenteval.cli.arguments import Choices, add_command


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    add_command(commands, "demo", _demo, "show the gate stop a change that makes an example agent worse; offline")
    started = add_command(
        commands, "init", _init, "write a starter: a suite, a configuration, a workflow and an agent"
    )
    started.add_argument("directory", nargs="?", default=".", metavar="DIRECTORY", help="directory to write to")
    started.add_argument(
        "--format",
        metavar="FORMAT",
        choices=Choices(_starter_formats),
        help="format of the suite; default: that of agent.yaml",
    )
    started.add_argument(
        "--agent",
        metavar="KIND",
        choices=Choices(_starter_agents),
        default="command",
        help="kind of the agent; default: %(default)s",
    )
    explained = add_command(commands, "explain", _explain, "say what a metric, a setting or a word means")
    explained.add_argument("name", nargs="*", metavar="NAME", help="what to explain; default: list all names")
    schema = add_command(commands, "schema", _schema, "print the JSON Schema of a file")
    schema.add_argument("name", metavar="NAME", choices=Choices(_schema_names), help="which file")
    plugins = add_command(commands, "plugins", _plugins, "list the installed extensions and whether they may run")
    plugins.add_argument("--json", action="store_true", help="print a JSON list")


def _starter_formats() -> Iterable[str]:
    from agenteval.cli.init import starter_formats

    return starter_formats()


def _starter_agents() -> Iterable[str]:
    from agenteval.cli.init import starter_agents

    return starter_agents()


def _schema_names() -> Iterable[str]:
    from agenteval.cli.schema import schema_names

    return schema_names()


def _demo(_: argparse.Namespace) -> int:
    from functools import partial

    from agenteval.cli.demo import demo

    demo(partial(print, flush=True))
    return 0


def _init(arguments: argparse.Namespace) -> int:
    from agenteval.cli.init import next_steps, starter_formats, write_starter
    from agenteval.core.text.escape import terminal

    directory = Path(arguments.directory)
    suite_format = arguments.format or next(iter(starter_formats()))
    for line in write_starter(directory, suite_format, arguments.agent):
        print(terminal(line))
    print("next:")
    for step in next_steps(directory, suite_format, arguments.agent):
        print(terminal(f"  {step}"))
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from agenteval.cli.explanations import all_names, explain

    name = " ".join(arguments.name)
    for line in explain(name) if name else all_names():
        print(line)
    return 0


def _schema(arguments: argparse.Namespace) -> int:
    from agenteval.cli.schema import schema

    print(json.dumps(schema(arguments.name), indent=2, ensure_ascii=False))
    return 0


def _plugins(arguments: argparse.Namespace) -> int:
    from agenteval.cli.plugins import as_json, as_table
    from agenteval.core.plugins import installed

    print(as_json(installed()) if arguments.json else as_table(installed()))
    return 0
