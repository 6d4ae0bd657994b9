"""Translation with Hugging Face sequence-to-sequence models: mBART, CRISS, M2M100, NLLB, OPUS-MT.

Called by `translate.py`. Imports torch; transformers, an optional dependency that is slow to import, only when a model
is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from subdp.encoder.device import find_device
from subdp.encoder.encoder import special_ids
from subdp.encoder.pretrained import find_folder, silence
from subdp.support.errors import SubdpError, counted
from subdp.support.languages import find_language, model_languages, spellings

_KINDS = ("mbart", "m2m_100", "nllb-moe", "marian")
_SUBWORDS = {"cpu": 1024, "cuda": 8192}  # Source subwords in a batch, padding included.


class ModelTranslator:
    """A model, by name or folder, that translates from one language to another. Code in its repository is never run."""

    def __init__(self, name: str, source: str, target: str, *, beams: int = 5, device: str | None = None):
        if beams < 1:
            raise SubdpError(f"the beam size cannot be {beams}", hint="give a whole number of at least 1")
        place, self.beams = find_device(device), beams
        self.folder = find_folder(name)
        model, self.tokenizer = _load(self.folder, torch.float16 if place.type == "cuda" else torch.float32)
        self.model = model.to(place).eval()
        self._set_languages(source, target)
        called = self.folder.resolve() if Path(name).is_dir() else name
        self.name = f"transformers:{called} {source}-{target}, {counted(beams, 'beam')}"

    def _set_languages(self, source: str, target: str) -> None:
        """Set the special tokens around a source sentence, and the token that selects the target language.

        The tokenizer shows where the token of the source language goes: last (mBART), first (mBART-50, M2M100, NLLB),
        or nowhere (CRISS). The token of the target language is the decoder's start token for mBART, its first output
        token for the others; multilingual OPUS-MT models have it at the beginning of the source.
        """
        config, settings = self.model.config, self.model.generation_config
        tokens = model_languages({*self.tokenizer.get_vocab(), *getattr(self.tokenizer, "lang_token_to_id", ())})
        self.before, self.after = special_ids(self.tokenizer)
        self.languages = {self._id(token) for token in tokens}
        if config.model_type == "marian":
            tokens = {token: code for token, code in tokens.items() if token.startswith(">>")}
            if tokens:
                self.before = [self._language(target, tokens)]
            else:
                self._check_pair(source, target)
            return
        if not self.languages.isdisjoint(self.before + self.after):
            number = self._language(source, tokens)
            self.before = [number if old in self.languages else old for old in self.before]
            self.after = [number if old in self.languages else old for old in self.after]
        if config.model_type == "mbart" and not self.languages.isdisjoint(self.after):
            settings.decoder_start_token_id, settings.forced_bos_token_id = self._language(target, tokens), None
        else:
            settings.forced_bos_token_id = self._language(target, tokens)

    def _id(self, token: str) -> int:
        return int(self.tokenizer.convert_tokens_to_ids(token))

    def _language(self, language: str, tokens: dict[str, str]) -> int:
        token = find_language(language, tokens)
        if token is None:
            hint = f"it knows {' '.join(sorted(tokens.values()))}" if tokens else "it has no language tokens"
            raise SubdpError(f"this model does not know the language {language}", where=str(self.folder), hint=hint)
        return self._id(token)

    def _check_pair(self, source: str, target: str) -> None:
        """Raise if the model is for a single language pair, states it, and it is another one."""
        for language, side in ((source, "source"), (target, "target")):
            known = getattr(self.tokenizer, f"{side}_lang", None)
            if known is not None and not {known, *spellings(known)} & {*spellings(language)}:
                raise SubdpError(f"this model's {side} language is {known}, not {language}", where=str(self.folder))

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Translate in batches of similar length; a sentence too long for the model gets an empty translation."""
        only = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
        rows = [self.before + ids + self.after for ids in self.tokenizer(list(sentences), **only)["input_ids"]]
        window = self.model.config.max_position_embeddings
        found = [""] * len(rows)
        order = sorted((n for n, row in enumerate(rows) if len(row) <= window), key=lambda n: len(rows[n]))
        for batch in _batches(order[::-1], rows, _SUBWORDS.get(self.model.device.type, 4096)):
            for number, text in zip(batch, self._generate([rows[n] for n in batch], window), strict=True):
                found[number] = text
        return found

    @torch.inference_mode()
    def _generate(self, rows: list[list[int]], window: int) -> list[str]:
        longest = len(rows[0])
        pad = self.tokenizer.pad_token_id
        ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        written = self.model.generate(
            input_ids=ids.to(self.model.device),
            attention_mask=mask.to(self.model.device),
            num_beams=self.beams,
            do_sample=False,
            max_new_tokens=min(3 * longest + 20, window - 2),
        )
        words = [[number for number in row if number not in self.languages] for row in written.tolist()]
        texts: list[str] = self.tokenizer.batch_decode(words, skip_special_tokens=True)
        return texts


def _load(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """The model and its tokenizer; no weight may be missing."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with silence():
            config = AutoConfig.from_pretrained(folder, **local)
            if config.model_type not in _KINDS:
                hint = f"supported model types: {', '.join(_KINDS)}"
                raise SubdpError(f"{config.model_type} is not a translation model", where=str(folder), hint=hint)
            tokenizer = AutoTokenizer.from_pretrained(folder, **local)
            model, report = AutoModelForSeq2SeqLM.from_pretrained(
                folder, dtype=dtype, output_loading_info=True, **local
            )
    except SubdpError:
        raise
    except Exception as error:  # Many kinds of errors, which all mean the same to the user.
        reason, hint = (str(error).strip() or type(error).__name__).splitlines()[0], None
        if _lacks_sentencepiece(folder):
            reason, hint = "its tokenizer needs sentencepiece and protobuf", "pip install 'subdp[translate]'"
        raise SubdpError(f"this model cannot be loaded: {reason}", where=str(folder), hint=hint) from error
    if missing := sorted(report["missing_keys"]):
        raise SubdpError(f"{len(missing)} weights are missing, the first is {missing[0]}", where=str(folder))
    return model, tokenizer


def _lacks_sentencepiece(folder: Path) -> bool:
    """Whether the tokenizer is a SentencePiece model and the packages that read one are not installed."""
    from transformers.utils import is_protobuf_available, is_sentencepiece_available

    return not (folder / "tokenizer.json").exists() and not (is_sentencepiece_available() and is_protobuf_available())


def _batches(order: list[int], rows: list[list[int]], subwords: int) -> Iterator[list[int]]:
    """Split an order from long to short into batches of at most this many subwords, padding included."""
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) + 1) * len(rows[batch[0]]) > subwords:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
