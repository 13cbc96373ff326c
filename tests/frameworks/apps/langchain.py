from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


@tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return {"Oslo": "rain"}[city]


class Scripted(BaseChatModel):
    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, _tools, **_options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage(content=f"It is {messages[-1].content}.")
        else:
            message = AIMessage(content="", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


assistant = create_agent(Scripted(), tools=[weather])
