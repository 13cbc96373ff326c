"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# No test may depend on the load of the machine, or on chance: `make test` tries the same examples every time.
settings.register_profile("agenteval", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# `pytest --hypothesis-profile=explore` tries new examples.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make test FAST=1` tries the first of these examples.
settings.register_profile("fast", settings.get_profile("agenteval"), max_examples=10)
settings.load_profile("agenteval")
