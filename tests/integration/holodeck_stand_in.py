"""A package of the same shape as HoloDeck: what agenteval uses of it, and what that returns.

The model is played by the package itself: a message that begins with a name in ``_PLAYS`` does that; any other one is
searched for and answered with what was found. ``log.txt`` in the project's directory records what happened.
"""

from __future__ import annotations

FILES = {
    "holodeck_ai-0.7.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: holodeck-ai\nVersion: 0.7.1\n",
    "openai_agents-0.17.4.dist-info/METADATA": "Metadata-Version: 2.1\nName: openai-agents\nVersion: 0.17.4\n",
    "holodeck/__init__.py": "",
    "holodeck/config/__init__.py": "",
    "holodeck/config/context.py": """\
        from contextvars import ContextVar

        agent_base_dir = ContextVar("agent_base_dir", default=None)
        """,
    "holodeck/config/loader.py": """\
        class ConfigLoader:
            def merge_configs(self, agent, config):
                return agent if config is None else {**agent, "claude": {"from": sorted(config.fields)}}
        """,
    "holodeck/lib/__init__.py": "",
    "holodeck/lib/errors.py": "class HoloDeckError(Exception): ...\n",
    "holodeck/lib/tool_initializer.py": """\
        from holodeck.lib.errors import HoloDeckError

        class ToolInitializerError(HoloDeckError): ...
        """,
    "holodeck/models/__init__.py": "",
    "holodeck/models/agent.py": """\
        class Agent:
            model_fields = {"name": 1, "model": 1, "instructions": 1, "tools": 1, "claude": 1, "observability": 1}

            def __init__(self, **fields):
                if fields["model"]["name"] == "refused":
                    raise ValueError("model.name: no such model")
                self.fields = fields
        """,
    "holodeck/models/config.py": """\
        class GlobalConfig:
            def __init__(self, **fields):
                self.fields = fields
        """,
    "holodeck/lib/backends/__init__.py": "",
    "holodeck/lib/backends/selector.py": """\
        import json
        import os
        import pathlib
        import types

        from holodeck.config.context import agent_base_dir
        from holodeck.lib.tool_initializer import ToolInitializerError

        def log(text):
            with open(os.path.join(agent_base_dir.get() or ".", "log.txt"), "a") as file:
                file.write(text + "\\n")

        def usage(read, written):
            counts = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
            return types.SimpleNamespace(**counts, cache_creation_tokens=0, cache_read_tokens=1 if read else 0)

        def result(response, calls=(), results=(), **fields):
            known = {"token_usage": usage(10, 2), "num_turns": 2, "is_error": False, "error_reason": None}
            return types.SimpleNamespace(
                response=response, tool_calls=list(calls), tool_results=list(results), **{**known, **fields}
            )

        class Session:
            def __init__(self, documents, search):
                self.documents, self.search, self.asked = documents, search, []

            async def send(self, message):
                self.asked.append(message)
                if message == "raise":
                    raise OSError("connection lost")
                if message == "fail":
                    return result("", is_error=True, error_reason="RateLimitError: slow down")
                if message == "variables":
                    return result(json.dumps({name: os.environ.get(name) for name in ("SHOP", "PATH")}))
                if message == "silent":
                    return result("", [{"name": self.search, "arguments": {}}], token_usage=usage(0, 0))
                found = [line for line in self.documents if set(line.split()) & set(message.split())]
                first = {"name": self.search, "arguments": {"query": message}, "call_id": "b"}
                other = {"name": "price", "args": {"item": 1}, "call_id": "a"}
                results = [
                    {"name": "price", "result": 5, "call_id": "a"},
                    {"name": self.search, "result": "; ".join(found), "call_id": "b"},
                ]
                return result("%d: %s" % (len(self.asked), "; ".join(found)), [first, other], results)

            async def close(self):
                log("closed after %d" % len(self.asked))

        class Backend:
            def __init__(self, documents, search):
                self.documents, self.search = documents, search

            async def create_session(self):
                return Session(self.documents, self.search)

            async def teardown(self):
                log("torn down")

        class BackendSelector:
            @staticmethod
            async def select(agent, tool_instances, mode):
                log("made for %s by %s with %s" % (mode, agent.fields["name"], agent.fields.get("claude")))
                base = pathlib.Path(agent_base_dir.get())
                documents, names = [], []
                for tool in agent.fields.get("tools") or ():
                    if "source" in tool:
                        names.append(tool["name"] + "_search")
                        try:
                            documents += (base / tool["source"]).read_text().splitlines()
                        except OSError as error:
                            raise ToolInitializerError("tool %r: %s" % (tool["name"], error)) from error
                return Backend(documents, names[0] if names else None)
        """,
}
