"""The bundled encoder's tokenizer: words to subword ids, exactly as the library `tokenizers` does it.

That library builds its tables of 250,000 pieces anew in every process, which takes 0.8 s and 300 MB. Here they are
arrays in a file that is mapped into memory, so that loading takes a few milliseconds and all processes share them.

`pieces_trie` makes the arrays once, `Subwords` reads them. Imports torch only to map them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECES, RULES = "pieces.safetensors", "rules.json"
"""The files of the tokenizer: its pieces with their scores; its special tokens and what characters are replaced by."""

_MARK = "▁"  # Begins a piece that begins a word.
_UNKNOWN_PENALTY = 10.0  # An unknown character scores this much less than the least likely piece.
_SHORT_CLUSTER = 6  # Bytes in UTF-8; see `_replaced`.


def pieces_trie(pieces: Sequence[tuple[str, float]]) -> dict[str, NDArray[Any]]:
    """The pieces, with their scores, as a trie whose nodes are the beginnings of pieces, by length, then by alphabet.

    Node 0 is the empty beginning. The nodes one character longer than node k are `children[k]` to `children[k + 1]`, in
    the order of that character, `characters`. A node that is a piece has its number, `pieces`, all others −1.

    *Shape:* `characters`, `pieces` [nodes], `children` [nodes + 1], `scores` [number of pieces].
    """
    longest = max(len(text) for text, _ in pieces)
    by_length = ({text[:length] for text, _ in pieces if len(text) >= length} for length in range(longest + 1))
    nodes = {start: node for node, start in enumerate(start for starts in by_length for start in sorted(starts))}
    parents = np.fromiter((nodes[start[:-1]] for start in nodes if start), np.int64, len(nodes) - 1)
    numbers = {text: number for number, (text, _) in enumerate(pieces)}
    return {
        "characters": np.array([ord(start[-1]) if start else 0 for start in nodes], np.int32),
        "children": np.cumsum([1, *np.bincount(parents, minlength=len(nodes))]).astype(np.int32),
        "pieces": np.array([numbers.get(start, -1) for start in nodes], np.int32),
        "scores": np.array([score for _, score in pieces], np.float32),
    }


class Subwords:
    """The tokenizer, called as `Encoder` calls those of transformers."""

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        from safetensors.torch import load_file

        trie: dict[str, Any] = {name: tensor.numpy() for name, tensor in load_file(folder / PIECES).items()}
        self._unknown_score = float(trie["scores"].min()) - _UNKNOWN_PENALTY
        # Views of the mapped memory: they give plain numbers, faster than arrays do.
        self._characters, self._children = memoryview(trie["characters"]), memoryview(trie["children"])
        self._pieces, self._scores = memoryview(trie["pieces"]), memoryview(trie["scores"])
        rules = json.loads((folder / RULES).read_text(encoding="utf-8"))
        self._rules: dict[str, str] = rules["characters"]
        self._special: dict[str, int] = rules["special_tokens"]
        self.model_max_length: int = config["max_position_embeddings"]
        self.pad_token_id: int = config["pad_token_id"]
        self.unk_token_id: int = config["unk_token_id"]
        self._around = [config["bos_token_id"]], [config["eos_token_id"]]

    def __call__(
        self,
        text: str | list[str],
        *,
        add_special_tokens: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The subword ids of a text, or of each of several; `verbose` has no effect."""
        before, after = self._around if add_special_tokens else ([], [])
        if isinstance(text, str):
            return {"input_ids": [*before, *self._ids(text), *after]}
        return {"input_ids": [[*before, *self._ids(one), *after] for one in text]}

    def _ids(self, text: str) -> Iterator[int]:
        """A special token stands for itself; what is between them is cut into pieces."""
        if "<" not in text:
            yield from self._plain(text)
            return
        import regex  # type: ignore[import-untyped]

        pattern = "|".join(map(regex.escape, self._special)).replace("<mask>", r"\p{White_Space}*<mask>")
        for number, part in enumerate(regex.split(f"({pattern})", text)):
            yield from [self._special[part.strip()]] if number % 2 else self._plain(part)

    def _plain(self, text: str) -> Iterator[int]:
        """Every space begins a new word, and so does the text."""
        text = self._replaced(text).replace(" ", _MARK)
        if text:
            for word in text.removeprefix(_MARK).split(_MARK):
                yield from self._best(_MARK + word)

    def _replaced(self, text: str) -> str:
        """The text with characters replaced as the rules say, and never two spaces together.

        As in `tokenizers`, a character followed by marks takes these with it when it is replaced, if all of them are
        less than six bytes in UTF-8.
        """
        if not self._rules.keys().isdisjoint(text):
            import regex

            rules, clusters = self._rules, []
            for cluster in regex.findall(r"\X", text):
                short = cluster[0] in rules and len(cluster.encode()) < _SHORT_CLUSTER
                clusters.append(rules[cluster[0]] if short else "".join(rules.get(one, one) for one in cluster))
            text = "".join(clusters)
        return re.sub(" {2,}", " ", text)

    def _best(self, word: str) -> list[int]:
        """The pieces whose scores have the highest sum. A run of unknown characters is one piece, the unknown one."""
        length = len(word)
        scores, starts, numbers = [-inf] * (length + 1), [0] * (length + 1), [self.unk_token_id] * (length + 1)
        scores[0] = 0.0
        for start in range(length):
            single = False
            for end, number in self._from(word, start):
                single |= end == start + 1
                score = self._scores[number] + scores[start]
                if score > scores[end]:
                    scores[end], starts[end], numbers[end] = score, start, number
            if not single and (score := self._unknown_score + scores[start]) > scores[start + 1]:
                scores[start + 1], starts[start + 1], numbers[start + 1] = score, start, self.unk_token_id
        found: list[int] = []
        end = length
        while end:
            if not (numbers[end] == self.unk_token_id and found[-1:] == [self.unk_token_id]):
                found.append(numbers[end])
            end = starts[end]
        return found[::-1]

    def _from(self, word: str, start: int) -> Iterator[tuple[int, int]]:
        """The pieces that the word has from here on: where each ends, and its number."""
        node = 0
        for end in range(start, len(word)):
            character, last = ord(word[end]), self._children[node + 1]
            node = bisect_left(self._characters, character, self._children[node], last)
            if node == last or self._characters[node] != character:
                return
            if self._pieces[node] >= 0:
                yield end + 1, self._pieces[node]
