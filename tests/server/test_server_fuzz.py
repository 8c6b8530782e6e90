"""Requests made from the OpenAPI document; ``make fuzz-server`` makes many more."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from bootprob.server import create_app


@pytest.mark.parametrize("mode", GenerationMode)
def test_no_request_meets_an_unforeseen_reply(table_model, mode):
    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(table_model))
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and operation.method != "post":
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        def ask(case):
            nonlocal asked
            asked += 1
            # No schema can say that a tensor's data must have the shape stated beside them.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        ask()
    assert asked > 25
