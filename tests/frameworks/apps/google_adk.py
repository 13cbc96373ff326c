from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


def weather(city: str) -> str:
    """Return the weather of a city."""
    return {"Oslo": "rain"}[city]


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            part = types.Part(text=f"It is {last.function_response.response['result']}.")
        else:
            part = types.Part(function_call=types.FunctionCall(name="weather", args={"city": "Oslo"}))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


assistant = LlmAgent(name="assistant", model=Scripted(model="scripted"), tools=[weather])
