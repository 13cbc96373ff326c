from dataclasses import dataclass

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools import Toolkit, tool


@tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return {"Oslo": "rain"}[city]


class Forecasts(Toolkit):
    def __init__(self):
        super().__init__(name="forecasts", tools=[self.forecast])

    def forecast(self, city: str) -> str:
        """Return the weather of a city tomorrow."""
        return {"Oslo": "snow"}[city]


@dataclass
class Scripted(Model):
    id: str = "scripted"

    def invoke(self, messages, **_options):
        results = [message.content for message in messages if message.role == "tool"]
        if results:
            return ModelResponse(role="assistant", content=f"It is {results[-1]}.")
        function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
        return ModelResponse(role="assistant", tool_calls=[{"id": "1", "type": "function", "function": function}])

    async def ainvoke(self, messages, **options):
        return self.invoke(messages, **options)

    def invoke_stream(self, *_arguments, **_options):
        raise NotImplementedError

    def ainvoke_stream(self, *_arguments, **_options):
        raise NotImplementedError

    def _parse_provider_response(self, response, **_options):
        return response

    def _parse_provider_response_delta(self, response):
        return response


assistant = Agent(model=Scripted(), tools=[weather], telemetry=False)
