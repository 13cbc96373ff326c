"""Wall time of a run that waits for judges: 500 cases with three judges each, which answer after 200 ms.

    python -m benchmarks.judges [--cases 500] [--concurrency 16 32]

The agent's answers are recorded. The model is a server of OpenAI's interface in a separate process. The limit of
calls at the same time sets the shortest possible time: calls / concurrency × 200 ms. Ends with status 1 if a run
takes more than 1.1 times as long, or if a judge was not asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LATENCY_S = 0.2
MOST = 1.1
_JUDGES = 3
_ROOT = Path(__file__).parents[1]
_SUITE = """\
name: judges
model: {{provider: openai, name: gpt-4o-mini, endpoint: "{url}"}}
instructions: {{inline: none}}
evaluations:
  metrics:
{metrics}
test_cases_file: cases.yaml
"""
_METRIC = (
    "    - {{type: geval, name: judge-{number}, criteria: It is right., evaluation_steps: [Check part {number}.]}}"
)


def main() -> int:
    """Measure each concurrency, print a table, and return 0 if every run is within its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[16, 32])
    options = parser.parse_args()
    print("| calls at the same time | shortest possible | taken | ratio | CPU |\n|--:|--:|--:|--:|--:|")
    ratios = []
    with _model() as url:
        for at_once in options.concurrency:
            taken_s, cpu_s = _run(url, options.cases, at_once)
            shortest_s = options.cases * _JUDGES / at_once * LATENCY_S
            ratios.append(taken_s / shortest_s)
            figures = (at_once, f"{shortest_s:.2f} s", f"{taken_s:.2f} s", f"{ratios[-1]:.2f}", f"{cpu_s:.2f} s")
            print(f"| {' | '.join(map(str, figures))} |", flush=True)
    return 0 if max(ratios) <= MOST else 1


def _run(url: str, cases: int, at_once: int) -> tuple[float, float]:
    """Run the suite; return its duration as results.json says it, and the CPU time of the process, in seconds.

    The duration is without the program's start, which does not depend on the number of judges.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        metrics = "\n".join(_METRIC.format(number=number) for number in range(_JUDGES))
        (folder / "agent.yaml").write_text(_SUITE.format(url=url, metrics=metrics), encoding="utf-8")
        (folder / "agenteval.yaml").write_text(f"llm: {{concurrency: {at_once}, cache: false}}\n", encoding="utf-8")
        lines = [f"- {{name: c{number}, input: question {number}, ground_truth: answer}}" for number in range(cases)]
        (folder / "cases.yaml").write_text("\n".join(lines), encoding="utf-8")
        answers = [json.dumps({"case": f"c{number}", "response": f"answer {number}"}) for number in range(cases)]
        (folder / "answers.jsonl").write_text("\n".join(answers), encoding="utf-8")
        command = ["agenteval", "run", "agent.yaml", "--agent", "replay:answers.jsonl", "--quiet"]
        variables = {**os.environ, "OPENAI_API_KEY": "key", "NO_PROXY": "127.0.0.1"}
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--concurrency", str(at_once)],
            cwd=folder,
            env=variables,
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        results = json.loads((folder / "agenteval-report" / "results.json").read_text(encoding="utf-8"))
        if results["summary"]["usage"]["llm_calls"] != cases * _JUDGES or process.returncode:
            raise SystemExit(f"status {process.returncode}, {results['summary']['usage']}")
        return results["run"]["duration_s"], usage.ru_utime + usage.ru_stime


@contextmanager
def _model() -> Iterator[str]:
    """Start the model in a separate process; yield its address."""
    command = [sys.executable, "-c", "from benchmarks.judges import serve; serve()"]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        finally:
            server.terminate()


def serve() -> None:
    """Print a free port, and answer every chat with the best score after 200 ms."""
    asyncio.run(_serve())


async def _serve() -> None:
    server = await asyncio.start_server(_converse, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def _converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    message = {"role": "assistant", "content": json.dumps({"score": 10, "reason": "It is right."})}
    answer = {
        "id": "chat",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    body = json.dumps(answer).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    try:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            lines = request.lower().split(b"\r\n")
            length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            await asyncio.sleep(LATENCY_S)
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


if __name__ == "__main__":
    sys.exit(main())
