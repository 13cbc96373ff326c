"""The execution of suites: resolve, run, compare, decide, report."""
