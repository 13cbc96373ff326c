from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.tools import FunctionTool


def look_up(city: str) -> str:
    """Return the weather of a city."""
    return {"Oslo": "rain"}[city]


weather = FunctionTool.from_defaults(look_up, name="weather")


class Scripted(CustomLLM):
    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **options):
        if "Observation: rain" in prompt:
            return CompletionResponse(text="Thought: I can answer.\nAnswer: It is rain.")
        return CompletionResponse(text='Thought: I need a tool.\nAction: weather\nAction Input: {"city": "Oslo"}')

    def stream_complete(self, prompt, formatted=False, **options):
        said = self.complete(prompt)
        yield CompletionResponse(text=said.text, delta=said.text)


assistant = ReActAgent(llm=Scripted(), tools=[weather])
