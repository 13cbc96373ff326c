"""Imports the results of other tools."""

from agenteval.results.importers.detect import read_foreign, read_run
from agenteval.results.importers.known_cases import KnownCase, KnownSuite, suites_of

__all__ = ["KnownCase", "KnownSuite", "read_foreign", "read_run", "suites_of"]
