"""Imports the results of other tools."""

from agenteval.results.importers.detect import import_run, read_run
from agenteval.results.importers.known_cases import KnownCase, KnownSuite, suites_of

__all__ = ["KnownCase", "KnownSuite", "import_run", "read_run", "suites_of"]
