"""Imports the results of other tools."""

from agenteval.results.importers.base import KnownCase, KnownSuite, suites_of
from agenteval.results.importers.detect import import_run, read_run

__all__ = ["KnownCase", "KnownSuite", "import_run", "read_run", "suites_of"]
