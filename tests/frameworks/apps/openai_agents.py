from agents import Agent, Model, ModelResponse, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)


@function_tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return {"Oslo": "rain"}[city]


class Scripted(Model):
    async def get_response(self, *_arguments, **named):
        results = [item["output"] for item in named["input"] if isinstance(item, dict) and item.get("output")]
        if results:
            text = ResponseOutputText(text=f"It is {results[-1]}.", type="output_text", annotations=[])
            said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        else:
            said = ResponseFunctionToolCall(
                arguments='{"city": "Oslo"}', call_id="c1", name="weather", type="function_call"
            )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_arguments, **_named):
        raise NotImplementedError


assistant = Agent(name="assistant", model=Scripted(), tools=[weather])
