"""Packages of the same shape as agent frameworks: modules, classes, methods and results."""

from __future__ import annotations

LANGGRAPH = {
    "requirements.txt": "langgraph\nlangchain-core\n",
    "langchain_core/messages.py": """\
        class Message:
            def __init__(self, content, **fields):
                self.content = content
                self.__dict__.update(fields)

        class HumanMessage(Message):
            type = "human"

        class AIMessage(Message):
            type = "ai"
            tool_calls = ()
            usage_metadata = None

        class ToolMessage(Message):
            type = "tool"
            status = "success"
        """,
    "langchain_core/runnables/base.py": "class Runnable: ...\n",
    "langgraph/prebuilt.py": """\
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        from langchain_core.runnables.base import Runnable

        class State:
            messages: list

        class Builder:
            input_schema = State

        class Graph(Runnable):
            builder = Builder()
            checkpointer = None

            def __init__(self, tools):
                self.tools = {tool.__name__: tool for tool in tools}

            async def ainvoke(self, input, config=None, *, context=None):
                *earlier, (role, text) = input["messages"]
                earlier = [HumanMessage(said) if by == "user" else AIMessage(said) for by, said in earlier]
                assert role == "user"
                usage = {"input_tokens": 10, "output_tokens": 2}
                call = {"name": "weather", "args": {"city": text}, "id": "c1", "type": "tool_call"}
                said = [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "It is "},
                    {"type": "text", "text": self.tools["weather"](text) + str(context or "") + "!" * len(earlier)},
                ]
                return {
                    "messages": [
                        *earlier,
                        HumanMessage(text),
                        AIMessage("", tool_calls=[call], usage_metadata=usage),
                        ToolMessage(self.tools["weather"](text), tool_call_id="c1", name="weather"),
                        AIMessage(said, usage_metadata=usage),
                    ],
                    "content": "part of the state, no answer",
                }

        def create_react_agent(model, tools):
            return Graph(tools)
        """,
    "app.py": """\
        from langgraph.prebuilt import create_react_agent

        def weather(city):
            return "rain"

        assistant = create_react_agent("model", [weather])
        """,
}


OPENAI_AGENTS = {
    "requirements.txt": "openai-agents\n",
    "agents/__init__.py": """\
        import asyncio
        import json
        from types import SimpleNamespace as Fields

        class Agent:
            def __init__(self, name, tools=()):
                self.name, self.tools = name, tools

        class Runner:
            @classmethod
            async def run(cls, starting_agent, input, *, context=None):
                await asyncio.sleep(0)
                function = Fields(type="function_call", name="weather", arguments='{"city": "Oslo"}', call_id="c1")
                answered = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
                handoff = Fields(type="function_call", name="transfer_to_b", arguments="{}", call_id="c2")
                message = Fields(type="message", role="assistant", content=[])
                usage = Fields(requests=2, input_tokens=14, output_tokens=6)
                return Fields(
                    input=input,
                    final_output="%s heard %s, %s" % (starting_agent.name, input, context),
                    new_items=[
                        Fields(type="tool_call_item", raw_item=function),
                        Fields(type="tool_call_output_item", raw_item=answered, output="rain"),
                        Fields(type="handoff_call_item", raw_item=handoff),
                        Fields(type="message_output_item", raw_item=message),
                    ],
                    context_wrapper=Fields(usage=usage),
                )

        class FunctionTool:
            def __init__(self, function):
                self.__wrapped__ = function

        def function_tool(function):
            return FunctionTool(function)
        """,
    "app.py": """\
        from agents import Agent, function_tool

        @function_tool
        async def weather(city: str):
            return "rain in " + city

        bot = Agent(name="bot", tools=[weather])
        """,
}


GOOGLE_ADK = {
    "pyproject.toml": "[project]\ndependencies = ['google-adk']\n",
    "google/genai/types.py": """\
        class Fields:
            def __init__(self, **fields):
                self.__dict__.update(fields)

        class Part(Fields):
            text = thought = function_call = function_response = None

        class Content(Fields):
            pass
        """,
    "google/adk/agents.py": """\
        class BaseAgent:
            def run(self, *, ctx, node_input):
                raise AssertionError("is not for users")

        class Agent(BaseAgent):
            def __init__(self, name):
                self.name = name
        """,
    "google/adk/events.py": "from google.genai.types import Fields as Event\n",
    "google/adk/runners.py": """\
        from google.genai.types import Content, Fields, Part

        class Sessions:
            async def create_session(self, *, app_name, user_id):
                self.events = []
                return Fields(id=app_name + "/" + user_id)

            async def append_event(self, session, event):
                self.events.append(event.author + " " + event.content.role + " " + event.content.parts[0].text)

        class InMemoryRunner:
            def __init__(self, agent, app_name):
                self.agent, self.session_service = agent, Sessions()

            async def run_async(self, *, user_id, session_id, new_message):
                tokens = Fields(prompt_token_count=5, candidates_token_count=1)
                call = Fields(id="c1", name="weather", args={"city": "Oslo"})
                yield Fields(content=Content(parts=[Part(function_call=call)]), usage_metadata=tokens)
                response = Fields(id="c1", name="weather", response={"sky": "rain"})
                yield Fields(content=Content(parts=[Part(function_response=response)]), usage_metadata=None)
                if new_message.parts[0].text == "fail":
                    yield Fields(content=None, error_code="429", error_message="too many")
                else:
                    said = ", ".join([*self.session_service.events, new_message.parts[0].text + "!"])
                    parts = [Part(text="hm", thought=True), Part(text=said)]
                    yield Fields(content=Content(parts=parts), usage_metadata=tokens)
                    yield Fields(content=None, usage_metadata=None)
        """,
    "app.py": "from google.adk.agents import Agent\nbot = Agent(name='bot')\n",
}


LLAMA_INDEX = {
    "setup.cfg": "[options]\ninstall_requires = llama-index\n",
    "llama_index/core/agent/workflow.py": """\
        from __future__ import annotations
        import asyncio
        from types import SimpleNamespace as Fields

        class Handler:
            def __init__(self, task):
                self.task = task

            def __await__(self):
                return self.task.__await__()

            async def stream_events(self):
                yield Fields(tool_name="weather", tool_kwargs={"city": "Oslo"}, tool_id="c1")
                output = Fields(tool_name="weather", raw_input={}, raw_output="rain", is_error=False)
                yield Fields(tool_name="weather", tool_kwargs={"city": "Oslo"}, tool_id="c1", tool_output=output)
                yield Fields(delta="r")

        class FunctionAgent:
            def run(self, user_msg=None, chat_history=(), **kwargs) -> Handler:
                async def answer():
                    said = [message.role + " " + message.content for message in chat_history]
                    content = "heard " + ", ".join([*said, user_msg])
                    message = Fields(role=Fields(value="assistant"), content=content)
                    return Fields(response=message, structured_response=None, tool_calls=[])
                return Handler(asyncio.get_running_loop().create_task(answer()))
        """,
    "llama_index/core/llms.py": """\
        class ChatMessage:
            def __init__(self, role, content):
                self.role, self.content = role, content
        """,
    "llama_index/core/tools.py": """\
        class ToolOutput:
            def __init__(self, value):
                self.tool_name, self.raw_output, self.content = "t", value, str(value)

        class FunctionTool:
            def __init__(self, fn):
                self.fn = fn

            @classmethod
            def from_defaults(cls, fn):
                return cls(fn)

            def __call__(self, *args, **kwargs):
                return ToolOutput(self.fn(*args, **kwargs))
        """,
    "app.py": """\
        from llama_index.core.agent.workflow import FunctionAgent
        from llama_index.core.tools import FunctionTool

        def add(a: int, b: int) -> int:
            return a + b

        adder = FunctionTool.from_defaults(add)
        bot = FunctionAgent()
        """,
}


AGNO = {
    "requirements.txt": "agno\n",
    "agno/agent.py": """\
        from types import SimpleNamespace as Fields

        class Agent:
            def run(self, input, *, stream=False, session_id=None):
                if isinstance(input, list):
                    input = ", ".join(message.role + " " + message.content for message in input)
                asked = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
                used = Fields(tool_call_id="c1", tool_name="weather", tool_args={"city": "Oslo"}, result="rain")
                broken = Fields(tool_name="news", tool_args={}, tool_call_error=True, result="offline")
                return Fields(
                    content="heard " + input,
                    messages=[Fields(role="assistant", content=None, tool_calls=[asked])],
                    tools=[used, broken],
                    metrics=Fields(input_tokens=3, output_tokens=4),
                )

            def print_response(self, input):
                print(input)
        """,
    "agno/models/message.py": """\
        class Message:
            def __init__(self, role, content):
                self.role, self.content = role, content
        """,
    "agno/tools/__init__.py": """\
        class Function:
            def __init__(self, entrypoint):
                self.entrypoint = entrypoint

        def tool(function):
            return Function(function)
        """,
    "app.py": """\
        from agno.agent import Agent
        from agno.tools import tool

        @tool
        def weather(city):
            return "rain in " + city

        bot = Agent()
        """,
}
