"""A parsing service: `uvicorn service:app` in this folder, then `curl --data-binary @text.txt localhost:8000/parse`.

Requests that wait at the same time are parsed together. Needs `pip install starlette uvicorn`.
"""

import asyncio
from contextlib import asynccontextmanager
from itertools import islice

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import subdp

MOST_BYTES, MOST_WORDS, BATCH, WORKERS = 500_000, 500, 64, 2
parser = subdp.Parser.load("en")
waiting: asyncio.Queue = asyncio.Queue()  # of sentences and the future that gets their trees


async def parse(request: Request) -> PlainTextResponse:
    size, parts = 0, []
    async for part in request.stream():  # Read to the end, so that the client can read the answer.
        size += len(part)
        parts += [part] if size <= MOST_BYTES else []
    if size > MOST_BYTES:
        return PlainTextResponse(f"{size:,} bytes: send at most {MOST_BYTES:,} at a time\n", 413)
    text = b"".join(parts).decode(errors="replace")
    try:
        sentences = await asyncio.to_thread(lambda: list(subdp.as_sentences(text, parser.tokenizer)))
    except subdp.SubdpError as error:  # A script that it has no tokenizer for.
        return PlainTextResponse(f"{error}\n", 400)
    if (longest := max(map(len, sentences), default=0)) > MOST_WORDS:
        return PlainTextResponse(f"a sentence of {longest:,} words: at most {MOST_WORDS} are parsed\n", 413)
    trees = asyncio.get_running_loop().create_future()
    waiting.put_nowait((sentences, trees))
    return PlainTextResponse("".join(f"{sentence.conllu}\n" for sentence in await trees))


async def work() -> None:
    while True:
        batch = [await waiting.get()]
        while not waiting.empty() and sum(len(sentences) for sentences, _ in batch) < BATCH:
            batch.append(waiting.get_nowait())
        try:
            every = [sentence for sentences, _ in batch for sentence in sentences]
            parsed = iter(await asyncio.to_thread(parser, every))
            for sentences, trees in batch:
                found = list(islice(parsed, len(sentences)))
                if not trees.done():  # Otherwise the client has gone.
                    trees.set_result(found)
        except Exception as error:
            for _, trees in batch:
                if not trees.done():
                    trees.set_exception(error)


@asynccontextmanager
async def lifespan(_: Starlette):
    workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
    yield
    for worker in workers:
        worker.cancel()


app = Starlette(routes=[Route("/parse", parse, methods=["POST"])], lifespan=lifespan)
