"""The one way to language models: cache, budget, limits and repeats, over HTTP."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from typing import Any

import pytest
from tests.integration.model_server import (
    HANG_UP,
    INPUT_TOKENS,
    KEY,
    OUTPUT_TOKENS,
    PROVIDERS,
    Answer,
    ModelServer,
    RecordedQuestion,
    error,
    says,
    serving,
)
from tests.integration.virtual_time import in_virtual_time
from tests.support import recorded_pauses

from agenteval.core.errors import ConfigError
from agenteval.core.llm.budget import Limits, RateLimiter
from agenteval.core.llm.calls import Call, Completion
from agenteval.core.llm.gateway import Gateway, LlmSettings, ResponseCache, cache_key, default_directory
from agenteval.core.llm.models import BudgetSpentError, LlmError, ModelSpec
from agenteval.core.llm.provider_base import MAX_BYTES
from agenteval.core.shared_files import Seal
from agenteval.metrics.base import MetricError
from agenteval.run.plan import budget_warnings

PATIENCE_S = 300
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}

Work = Callable[[Gateway], Awaitable[Any]]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return recorded_pauses(monkeypatch)


def within(settings: LlmSettings, work: Work) -> Any:
    """Do something with a gateway, and close it."""

    async def run() -> Any:
        gateway = Gateway(settings)
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await work(gateway)
        finally:
            await gateway.close()

    return asyncio.run(run())


def ask(settings: LlmSettings, *calls: Call, accept: Callable[[Completion], object] = lambda _: None) -> list[Any]:
    """The answers or errors of calls made at once."""

    async def work(gateway: Gateway) -> list[Any]:
        return await asyncio.gather(*(gateway.complete(call, accept) for call in calls), return_exceptions=True)

    answers: list[Any] = within(settings, work)
    return answers


def no_waits(**settings: Any) -> LlmSettings:
    return LlmSettings(**{"backoff_s": 0.0, **settings})


def cached(tmp_path: Path, **settings: Any) -> LlmSettings:
    return no_waits(cache=ResponseCache(tmp_path / "cache", Seal()), **settings)


def refuse_oks(completion: Completion) -> None:
    if "ok" in completion.text:
        raise MetricError("not good enough")


class TestCache:
    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_a_second_run_sends_nothing(self, server: ModelServer, tmp_path: Path, provider: str) -> None:
        call = Call(server.model(provider), "Is it?", schema=SCHEMA)
        (first,) = ask(cached(tmp_path), call)
        (second,) = ask(cached(tmp_path), call)

        assert len(server.asked) == 1
        assert (first.cached, second.cached, second.cost_usd) == (False, True, 0.0)
        assert second == replace(first, cached=True, cost_usd=0.0)

    def test_what_is_cached_counts_nowhere(self, server: ModelServer, tmp_path: Path) -> None:
        call = Call(server.model(), "Is it?")
        ask(cached(tmp_path), call)

        async def work(gateway: Gateway) -> tuple[int, int, int, float]:
            await gateway.complete(call)
            return gateway.budget.calls, gateway.input_tokens, gateway.output_tokens, gateway.budget.cost_usd

        assert within(cached(tmp_path, limits=Limits(max_calls=0, max_cost_usd=0)), work) == (0, 0, 0, 0.0)

    def test_everything_that_shapes_the_reply_is_in_the_key_and_the_key_of_the_provider_is_not(self) -> None:
        call = Call(ModelSpec("openai", "gpt-4.1", 0.0, endpoint="http://127.0.0.1/v1"), "Is it?", schema=SCHEMA)
        others: list[dict[str, Any]] = [
            {"prompt": "Is it not?"},
            *({"schema": schema} for schema in ({"type": "object"}, None)),
            *({"schema_name": "other"}, {"top_logprobs": 5}, {"sample": 1}),
        ]
        models: list[dict[str, Any]] = [
            *({"provider": "azure_openai"}, {"name": "gpt-4.1-mini"}, {"temperature": 0.7}, {"temperature": None}),
            *({"max_tokens": 100}, {"top_p": 0.5}, {"api_version": "2025-01-01"}),
            *({"endpoint": endpoint} for endpoint in ("http://127.0.0.1:1/v1", None)),
        ]
        others += [{"model": replace(call.model, **fields)} for fields in models]
        keys = {cache_key(call), *(cache_key(replace(call, **fields)) for fields in others)}
        assert len(keys) == 1 + len(others)
        assert cache_key(replace(call, model=replace(call.model, api_key="two"))) == cache_key(call)

    @pytest.mark.parametrize(
        ("provider", "variable"),
        [
            ("openai", "OPENAI_BASE_URL"),
            ("azure_openai", "AZURE_OPENAI_ENDPOINT"),
            ("anthropic", "ANTHROPIC_BASE_URL"),
            ("ollama", "OLLAMA_HOST"),
        ],
    )
    def test_another_server_from_the_environment_is_another_key(
        self, monkeypatch: pytest.MonkeyPatch, provider: str, variable: str
    ) -> None:
        call = Call(ModelSpec(provider, "m"), "Is it?")
        public = cache_key(call)
        monkeypatch.setenv(variable, "http://127.0.0.1:1")

        assert cache_key(call) != public

    def test_a_reply_that_cannot_be_used_is_asked_for_once_more(self, server: ModelServer, tmp_path: Path) -> None:
        server.script("better", '{"ok": true}', "better")
        one, two = (
            ask(cached(tmp_path / name), Call(server.model(), "Is it?"), accept=refuse_oks)[0] for name in "ab"
        )

        assert (two.text, two.cost_usd) == ("better", 2 * one.cost_usd)

    def test_a_reply_that_was_cut_is_named_and_not_asked_for_again(self, server: ModelServer) -> None:
        server.respond = lambda asked: says(asked, '{"ok": true}', finish="length")
        (answer,) = ask(no_waits(), Call(server.model(), "Is it?"), accept=refuse_oks)

        assert str(answer).endswith("; the answer was cut at max_tokens")
        assert len(server.asked) == 1

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b'{"text": "cut o',
            b"\xff\xfe\x00",
            b"[]",
            b"null",
            b'{"text": "no usage"}',
            b'{"text": "{\\"ok\\": 1}", "input_tokens": 1, "output_tokens": 1, "logprobs": null}',
        ],
        ids=["empty", "cut off", "binary", "list", "null", "incomplete", "of no use"],
    )
    def test_a_broken_file_is_asked_anew_and_mended(
        self, server: ModelServer, tmp_path: Path, content: bytes
    ) -> None:
        server.script("fine")
        call = Call(server.model(), "Is it?")
        ask(cached(tmp_path), call)
        (file,) = (tmp_path / "cache").rglob("*.json")
        file.write_bytes(content)

        (again,) = ask(cached(tmp_path), call, accept=refuse_oks)
        (kept,) = ask(cached(tmp_path), call, accept=refuse_oks)

        assert (again.text, again.cached, kept.cached) == ("fine", False, True)
        assert len(server.asked) == 2

    def test_a_cache_that_cannot_be_written_only_costs(self, server: ModelServer, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("a file where the directory should be", encoding="utf-8")
        call = Call(server.model(), "Is it?")
        (first,) = ask(cached(tmp_path), call)
        (second,) = ask(cached(tmp_path), call)

        assert (first.cached, second.cached, len(server.asked)) == (False, False, 2)

    def test_no_key_and_no_prompt_is_in_any_file(self, server: ModelServer, tmp_path: Path) -> None:
        ask(cached(tmp_path), Call(server.model(), "the prompt"))
        (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
        kept = file.read_text(encoding="utf-8")

        assert set(json.loads(kept)) == {"text", "input_tokens", "output_tokens", "logprobs"}
        assert KEY not in kept

    def test_a_user_without_a_home_directory_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("AGENTEVAL_CACHE", "XDG_CACHE_HOME", "HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("pwd.getpwuid", lambda number: {}[number])
        with pytest.raises(ConfigError, match="no home directory for the cache: set HOME, or a directory in"):
            default_directory()


class TestTheSameCallTwice:
    def test_identical_calls_at_once_are_sent_once(self, server: ModelServer, tmp_path: Path) -> None:
        call = Call(server.model(), "Is it?")

        async def work(gateway: Gateway) -> tuple[list[Completion], int, float]:
            answers = await asyncio.gather(*(gateway.complete(call) for _ in range(20)))
            return answers, gateway.budget.calls, gateway.budget.cost_usd

        answers, calls, cost = within(cached(tmp_path), work)

        assert (len(server.asked), calls) == (1, 1)
        assert {answer.text for answer in answers} == {'{"ok": true}'}
        assert [answer.cached for answer in answers].count(False) == 1
        assert sum(answer.cost_usd for answer in answers) == pytest.approx(cost)

    def test_who_waits_goes_on_when_the_first_is_cancelled(self, server: ModelServer, tmp_path: Path) -> None:
        arrived, release = Event(), Event()

        def respond(asked: RecordedQuestion) -> Answer:
            if len(server.asked) == 1:
                arrived.set()
                release.wait(PATIENCE_S)
            return says(asked, "here")

        server.respond = respond
        call = Call(server.model(), "Is it?")

        async def work(gateway: Gateway) -> list[Any]:
            first = asyncio.create_task(gateway.complete(call))
            await asyncio.to_thread(arrived.wait, PATIENCE_S)
            others = [asyncio.create_task(gateway.complete(call)) for _ in range(3)]
            await asyncio.sleep(0)
            first.cancel()
            try:
                return await asyncio.gather(first, *others, return_exceptions=True)
            finally:
                release.set()

        first, *others = within(cached(tmp_path), work)

        assert isinstance(first, asyncio.CancelledError)
        assert [other.text for other in others] == ["here"] * 3
        assert len(server.asked) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
class TestRepeats:
    def test_how_long_it_waits(self, server: ModelServer, waits: list[float], provider: str) -> None:
        odd = ("-5", "0", "yesterday", "Wed, 21 Oct 2015 07:28:00 GMT")
        table: list[tuple[Answer, list[float]]] = [
            (error(429, "slow down", {"Retry-After": "7"}), [7.0]),
            (error(503, "busy", {"Retry-After": "7", "retry-after-ms": "250"}), [0.25]),
            *((error(429, "slow down", {"Retry-After": value}), []) for value in odd),
        ]
        for number, (refused, waited) in enumerate(table):
            waits.clear()
            server.script(refused, "yes")
            settings = LlmSettings() if waited else no_waits()
            (answer,) = ask(settings, Call(server.model(provider), f"Is it {number}?"))
            assert (answer.text, waits) == ("yes", waited)

    def test_the_waits_double_and_spread(self, server: ModelServer, waits: list[float], provider: str) -> None:
        server.script(error(500, "oops"), error(502, "oops"), error(529, "oops"), "yes")
        (answer,) = ask(LlmSettings(), Call(server.model(provider), "Is it?"))

        assert answer.text == "yes"
        # HoloDeck's defaults.
        assert [least <= wait <= 1.5 * least for wait, least in zip(waits, (2, 4, 8), strict=True)] == [True] * 3

    def test_what_will_not_pass_is_not_repeated(self, server: ModelServer, provider: str) -> None:
        label, told = server.model(provider).label, "You exceeded your current quota, please check your plan. " * 5
        table = {status: error(status, "no") for status in (400, 401, 403, 404, 413, 422)}
        table[429] = error(429, told, type="insufficient_quota", code="insufficient_quota")
        for status, answer in table.items():
            server.script(answer)
            server.asked.clear()
            (problem,) = ask(no_waits(), Call(server.model(provider), "Is it?"))
            said = "no" if status != 429 else "You exceeded your current quota"
            assert str(problem).startswith(f"{label} answered {status}: {said}")
            assert len(server.asked) == 1

    def test_a_dropped_connection_is_repeated(self, server: ModelServer, provider: str) -> None:
        server.script(HANG_UP, "yes")
        (answer,) = ask(no_waits(), Call(server.model(provider), "Is it?"))

        assert (answer.text, len(server.asked)) == ("yes", 2)

    def test_a_reply_without_end_is_cut_off(self, server: ModelServer, provider: str) -> None:
        label = server.model(provider).label
        plain = b" " * (MAX_BYTES + 1)
        packed = {"Content-Encoding": "gzip"}
        for status in (200, 400, 500):
            for endless in (Answer(plain, status), Answer(gzip.compress(plain), status, packed)):
                server.script(endless)
                before = len(server.asked)
                (problem,) = ask(no_waits(), Call(server.model(provider), "Is it?"))
                assert str(problem) == f"{label} sent a reply of more than 8 MB"
                assert len(server.asked) - before == 1

        server.respond = lambda asked: Answer(
            gzip.compress(json.dumps(says(asked, "yes").body).encode()), 200, packed
        )
        (answer,) = ask(no_waits(), Call(server.model(provider), "Is it?"))
        assert answer.text == "yes"

    def test_an_answer_that_does_not_come(self, server: ModelServer, provider: str) -> None:
        # The libraries import much with their first request.
        ask(no_waits(), Call(server.model(provider), "Are you there?"))
        before = len(server.asked)
        release = Event()

        def respond(asked: RecordedQuestion) -> Answer:
            release.wait(PATIENCE_S)
            return says(asked, "too late")

        server.respond = respond
        try:
            (problem,) = ask(no_waits(retries=1, timeout_s=0.6), Call(server.model(provider), "Is it?"))
        finally:
            release.set()

        assert str(problem) == f"{server.model(provider).label} did not answer within 0.6 s (after 2 attempts)"
        assert len(server.asked) == before + 2

    def test_a_repeated_call_counts_again(self, server: ModelServer, provider: str) -> None:
        server.script(error(500, "oops"))
        call = Call(server.model(provider), "Is it?")

        async def work(gateway: Gateway) -> list[str]:
            told = []
            for _ in range(2):
                with pytest.raises((LlmError, BudgetSpentError)) as caught:
                    await gateway.complete(call)
                told.append(str(caught.value))
            return told

        told = within(no_waits(limits=Limits(max_calls=3)), work)

        assert told == ["max_llm_calls (3) is used up"] * 2
        assert len(server.asked) == 3


class TestOptionsThatAreRefused:
    """Left out from then on; that is no repeat, so it works without any."""

    @pytest.mark.parametrize(
        ("provider", "option", "message"),
        [
            ("openai", "temperature", "Unsupported value: 'temperature' does not support 0 with this model."),
            ("openai", "response_format", "This model does not support response format `json_schema`."),
            ("azure_openai", "response_format", "Invalid parameter: 'response_format' of type 'json_schema' is not."),
            ("azure_openai", "top_p", "Unsupported parameter: 'top_p' is not supported with this model."),
            ("anthropic", "temperature", "`temperature` is deprecated for this model."),
            ("anthropic", "output_config", "output_config: Extra inputs are not permitted"),
        ],
    )
    def test_one_option(self, server: ModelServer, provider: str, option: str, message: str) -> None:
        given: dict[str, Any] = {"temperature": 0.5} if provider == "anthropic" else {"top_p": 0.5}
        self._refused(server, server.model(provider, **given), option, message)

    @staticmethod
    def _refused(server: ModelServer, model: ModelSpec, option: str, message: str) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            return error(400, message) if option in asked.body else says(asked, "yes")

        server.respond = respond

        async def work(gateway: Gateway) -> list[str]:
            texts = [(await gateway.complete(Call(model, f"Is it {n}?", schema=SCHEMA))).text for n in range(3)]
            assert gateway.budget.calls == 4
            return texts

        assert within(no_waits(retries=0), work) == ["yes"] * 3
        assert [option in asked.body for asked in server.asked] == [True, False, False, False]
        left = {name: value for name, value in server.asked[0].body.items() if name != option}
        assert server.asked[1].body == left

    def test_the_older_name_of_a_limit(self, server: ModelServer) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            refused = error(400, message, param="max_tokens", code="unsupported_parameter")
            return refused if "max_tokens" in asked.body else says(asked, "yes")

        server.respond = respond
        (answer,) = ask(no_waits(), Call(server.model(max_tokens=500), "Is it?"))

        assert answer.text == "yes"
        assert server.asked[1].body["max_completion_tokens"] == 500

    def test_another_wrong_request_is_an_error(self, server: ModelServer) -> None:
        server.script(error(400, "Your temperatures are wrong, and so is your_response_format"))
        (problem,) = ask(no_waits(), Call(server.model(), "Is it?", schema=SCHEMA))

        assert "answered 400" in str(problem)
        assert len(server.asked) == 1


class TestLimits:
    def test_so_many_at_once_and_no_more(self, server: ModelServer) -> None:
        # Nobody gets an answer before three have asked, so fewer than three at once would not come through.
        barrier = Barrier(3)

        def respond(asked: RecordedQuestion) -> Answer:
            barrier.wait(PATIENCE_S)
            return says(asked, "yes")

        server.respond = respond
        answers = ask(no_waits(concurrency=3), *(Call(server.model(), f"Is it {n}?") for n in range(12)))

        assert [answer.text for answer in answers] == ["yes"] * 12
        assert server.most_at_once == 3

    def test_all_models_of_a_provider_together(self, server: ModelServer) -> None:
        barrier = Barrier(2)
        broken = []

        def respond(asked: RecordedQuestion) -> Answer:
            try:
                barrier.wait(0.2)
            except BrokenBarrierError:
                broken.append(asked)
                barrier.reset()
            return says(asked, "yes")

        server.respond = respond
        ask(no_waits(concurrency=1), *(Call(server.model(name=name), "Is it?") for name in ("gpt-4.1", "gpt-4o")))

        assert (server.most_at_once, len(broken)) == (1, 2)

    def test_calls_start_evenly_over_the_minute(self) -> None:
        starts: list[float] = []

        async def work() -> None:
            limiter, began = RateLimiter(concurrency=10, per_minute=30), asyncio.get_running_loop().time()

            async def call() -> None:
                async with limiter:
                    starts.append(asyncio.get_running_loop().time() - began)

            await asyncio.gather(*(call() for _ in range(5)))
            await asyncio.sleep(100)
            await asyncio.gather(*(call() for _ in range(2)))

        in_virtual_time(work())

        assert starts == pytest.approx([0, 2, 4, 6, 8, 108, 110])

    def test_a_repeat_takes_its_turn_too(self) -> None:
        starts: list[float] = []

        class Failing:
            async def complete(self, call: Call) -> Completion:
                starts.append(asyncio.get_running_loop().time())
                raise LlmError("busy", transient=True, retry_after_s=1)

            async def embed(self, text: str) -> Completion:
                raise NotImplementedError(text)

            async def close(self) -> None:
                """Nothing is open."""

        async def work() -> None:
            gateway = Gateway(LlmSettings(requests_per_minute=6, retries=2), lambda _: Failing())
            with pytest.raises(LlmError, match="3 attempts"):
                await gateway.complete(Call(ModelSpec("openai", "m"), "Is it?"))

        in_virtual_time(work())

        assert [start - starts[0] for start in starts] == pytest.approx([0, 10, 20])

    def test_a_cancelled_turn_frees_its_place(self) -> None:
        async def work() -> None:
            limiter = RateLimiter(concurrency=1, per_minute=1)
            async with limiter:
                pass
            waiting = asyncio.create_task(limiter.__aenter__())
            await asyncio.sleep(1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            async with asyncio.timeout(300), limiter:
                pass

        in_virtual_time(work())


class TestBudget:
    def test_money_is_never_overspent(self, server: ModelServer) -> None:
        calls = [Call(server.model(), f"Is it {n:02}?") for n in range(60)]

        async def work(gateway: Gateway) -> tuple[list[Any], float]:
            answers = await asyncio.gather(*map(gateway.complete, calls), return_exceptions=True)
            return answers, gateway.budget.cost_usd

        # One call costs 1000 × 2 $ + 200 × 8 $ per million tokens: 0.0036 $.
        answers, cost = within(no_waits(limits=Limits(max_cost_usd=0.05)), work)

        assert len(server.asked) == 13
        assert cost == pytest.approx(13 * 0.0036)
        refused = {str(answer) for answer in answers if isinstance(answer, BudgetSpentError)}
        assert refused == {"max_cost_usd (0.05) is used up: 0.0468 USD spent"}

    @pytest.mark.parametrize(
        ("provider", "cost"),
        [("openai", 0.0036), ("azure_openai", 0.0036), ("anthropic", 0.006), ("ollama", 0.0)],
    )
    def test_usage_and_cost(self, server: ModelServer, provider: str, cost: float) -> None:
        async def work(gateway: Gateway) -> tuple[Completion, Gateway]:
            return await gateway.complete(Call(server.model(provider), "Is it?")), gateway

        answer, gateway = within(no_waits(), work)

        assert (answer.input_tokens, answer.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)
        assert answer.cost_usd == pytest.approx(cost)
        assert gateway.budget.cost_usd == pytest.approx(cost)
        assert (gateway.input_tokens, gateway.output_tokens) == (INPUT_TOKENS, OUTPUT_TOKENS)

    @pytest.mark.parametrize("claimed", [10**9, 10**30, -1, "many", 1.5])
    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_absurd_usage_neither_spends_the_budget_nor_fills_it(
        self, server: ModelServer, provider: str, claimed: Any
    ) -> None:
        def respond(asked: RecordedQuestion) -> Answer:
            answer = says(asked, '{"ok": true}')
            counts = answer.body.get("usage", answer.body)
            counts |= {name: claimed for name in counts if name.endswith(("_tokens", "eval_count"))}
            return answer

        server.respond = respond

        async def work(gateway: Gateway) -> tuple[list[Any], Gateway]:
            calls = [Call(server.model(provider), f"Is it {n}?", SCHEMA) for n in range(5)]
            return await asyncio.gather(*map(gateway.complete, calls), return_exceptions=True), gateway

        answers, gateway = within(no_waits(retries=0, limits=Limits(max_cost_usd=0.05)), work)

        if provider == "ollama" and any(isinstance(answer, LlmError) for answer in answers):
            # The library refuses what is not a number.
            assert not isinstance(claimed, int)
            return
        assert [answer.text for answer in answers] == ['{"ok": true}'] * 5
        assert [(answer.input_tokens, answer.output_tokens) for answer in answers] == [(None, None)] * 5
        assert gateway.budget.cost_usd == 0
        label = server.model(provider).label
        expected = () if provider == "ollama" else (f"max_cost_usd does not limit {label}: the price is not known",)
        assert budget_warnings(gateway) == expected


class TestKeys:
    @pytest.mark.parametrize("status", [301, 307])
    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_no_redirect_takes_them_along(self, server: ModelServer, provider: str, status: int) -> None:
        with serving() as elsewhere:
            server.script(
                Answer("", status, {"Location": f"{elsewhere.url.replace('//', '//me:secret@')}/v1?key=secret"})
            )
            (answer,) = ask(no_waits(), Call(server.model(provider), "Is it?"))

            assert elsewhere.asked == []
            assert len(server.asked) == 1
            assert str(answer) == (
                f"{server.model(provider).label} answered {status}: it redirects to {elsewhere.url}/v1, which is not "
                "followed; set the model's endpoint to that server"
            )

    def test_azure_needs_an_address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = ModelSpec("azure_openai", "m", api_key=KEY)
        with pytest.raises(ConfigError) as caught:
            Gateway(LlmSettings()).check(model)
        assert str(caught.value) == (
            "no address for azure_openai/m: set AZURE_OPENAI_ENDPOINT, or `endpoint` of the model"
        )
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9")
        Gateway(LlmSettings()).check(model)

    def test_a_server_of_ones_own_needs_no_key(self, server: ModelServer) -> None:
        (answer,) = ask(no_waits(), Call(server.model(api_key=None), "Is it?"))

        assert answer.text == '{"ok": true}'

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_nothing_shows_the_key(self, server: ModelServer, provider: str) -> None:
        server.script(error(401, "no"))
        model = server.model(provider, api_key=KEY)
        (problem,) = ask(no_waits(), Call(model, "Is it?"))

        gateway = Gateway(LlmSettings())
        gateway.check(model)
        shown = [repr(model), repr(Call(model, "x")), repr(gateway), repr(problem), str(problem)]
        assert [text for text in shown if KEY in text] == []
