"""Load test of docs/examples/service.py: requests a second and how long they take.

    python benchmarks/service.py TEXT       # TEXT has a sentence a line; needs starlette, uvicorn, httpx

Starts the service in a process of its own. Every tenth client goes away before its answer; meanwhile a megabyte of text
and a sentence of 100,000 words are sent, and must be refused. All other answers are compared with those to a single
request at a time: nothing is lost.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx

SERVICE = Path(__file__).parents[1] / "docs/examples"
REQUESTS = 1000
IMPATIENT = 10  # Every so many requests, a client goes away.
TOO_LARGE = ("Go. " * 262_144, "a " * 100_000)


def trees(answer: str) -> list[list[str]]:
    """Words, heads and labels of an answer; confidences are not in it."""
    rows = [line.split("\t") for line in answer.splitlines() if line[:1].isdigit()]
    return [[row[1], row[6], row[7]] for row in rows]


async def load(url: str, lines: list[str], clients: int) -> str:
    """Send all requests from so many clients; raise unless every answer is there and right."""
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=httpx.Limits(max_connections=clients + 2)) as http:
        alone = {line: trees((await http.post("/parse", content=line)).raise_for_status().text) for line in lines}
        times: list[float] = []
        gone = wrong = 0
        waiting = iter(range(REQUESTS))

        async def client() -> None:
            nonlocal gone, wrong
            for number in waiting:
                line, begun = lines[number % len(lines)], time.perf_counter()
                if number % IMPATIENT == IMPATIENT - 1:
                    with_limit = http.post("/parse", content=line, timeout=0.002)
                    gone += isinstance(
                        (await asyncio.gather(with_limit, return_exceptions=True))[0], httpx.TimeoutException
                    )
                    continue
                answer = await http.post("/parse", content=line)
                times.append(time.perf_counter() - begun)
                wrong += answer.status_code != 200 or trees(answer.text) != alone[line]

        async def intruder() -> list[int]:
            return [(await http.post("/parse", content=text)).status_code for text in TOO_LARGE]

        begun = time.perf_counter()
        refused, *_ = await asyncio.gather(intruder(), *(client() for _ in range(clients)))
        took = time.perf_counter() - begun
    assert refused == [413, 413], refused
    cuts = statistics.quantiles(times, n=100)
    figures = [len(times) / took, 1000 * cuts[49], 1000 * cuts[98], len(times), wrong, gone, len(refused)]
    return "| " + " | ".join(f"{figure:.0f}" for figure in [clients, *figures]) + " |"


def main() -> None:
    """Print a table with a row for each number of clients."""
    lines = [line for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if line.strip()][:100]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port), "--log-level", "warning"]
    service = subprocess.Popen(command, cwd=SERVICE)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.post(f"{url}/parse", content="Go.", timeout=60)
                break
            except httpx.ConnectError:
                time.sleep(0.2)
        print("| clients | requests/s | p50, ms | p99, ms | answered | of them wrong | clients gone | refused |")
        print("|---|---|---|---|---|---|---|---|")
        for clients in (1, 4, 16, 64):
            print(asyncio.run(load(url, lines, clients)), flush=True)
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    main()
