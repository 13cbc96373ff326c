"""Settings of the unit tests."""

from __future__ import annotations

import contextlib

import pytest
from tests.rows import join_rows


@pytest.hookimpl
def pytest_collectstart(collector: pytest.Collector) -> None:
    """Join the rows of parametrised tests, unless each is wanted, or a row is named."""
    config = collector.config
    if config.option.each_row or config.option.keyword or any("[" in name for name in config.args):
        return
    if isinstance(collector, pytest.Module | pytest.Class):
        # Pytest reports what is wrong with a module when it collects its tests.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            join_rows(collector.obj)
