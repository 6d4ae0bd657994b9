"""Translation: sentence by sentence into a bitext, resumable, by programs, commands, plug-ins and models."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from subdp.corpus.bitext import read_bitext
from subdp.corpus.treebank import Sentence, write_conllu
from subdp.support.errors import SubdpError
from subdp.support.languages import find_language, model_languages, spellings
from subdp.translation.translate import Apertium, Command, find_translator, translate
from tests.cli.test_cli import run
from tests.support.test_plugins import install
from tests.tiny import CHARACTERS, SPECIAL

DOGS = Sentence.of(
    ["Dogs", "do", "n't", "sing", "."],
    heads=[4, 4, 4, 0, 4],
    labels=["nsubj", "aux", "advmod", "root", "punct"],
    comments=["# sent_id = a", "# text = Dogs don't sing."],
)
CATS = Sentence.of(["10 000", "cats"], heads=[2, 0], labels=["nummod", "root"])


class Upper:
    """A translator that shouts, writes down what it was given, and breaks at the word it is told to break at."""

    name = "upper"

    def __init__(self, breaks_at: str | None = None):
        self.seen: list[str] = []
        self.breaks_at = breaks_at

    def translate(self, sentences: Sequence[str]) -> list[str]:
        if self.breaks_at in sentences:
            raise KeyboardInterrupt
        self.seen += sentences
        return [sentence.upper() for sentence in sentences]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("one\n\ntwo\tand a half\none\nthree\n")
    return path


def test_each_line_gets_its_translation_and_empty_lines_stay_empty(text: Path, tmp_path: Path) -> None:
    output, upper = tmp_path / "out.tsv", Upper()
    result = translate(str(text), str(output), upper)
    assert output.read_text() == "one\tONE\n\t\ntwo and a half\tTWO AND A HALF\none\tONE\nthree\tTHREE\n"
    assert upper.seen == ["one", "two and a half", "three"], "what occurs twice is translated once"
    assert (result.sentences, result.missing) == (5, 0)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out.tsv"]


def test_tabs_and_line_ends_in_a_translation_become_spaces(text: Path, tmp_path: Path) -> None:
    class Ragged(Upper):
        def translate(self, sentences: Sequence[str]) -> list[str]:
            return [f" {sentence}\t\n\r\x0b\u2028end \n" for sentence in sentences]

    output = tmp_path / "out.tsv"
    translate(str(text), str(output), Ragged())
    assert output.read_text().startswith("one\tone end\n\t\n")


def test_a_killed_translation_goes_on_after_the_last_batch(text: Path, tmp_path: Path) -> None:
    output, part = tmp_path / "out.tsv", tmp_path / "out.tsv.part"
    with pytest.raises(KeyboardInterrupt):
        translate(str(text), str(output), Upper(breaks_at="three"), batch=1)
    assert not output.exists()
    with part.open("a") as file:
        file.write('["three", "HALF A LI')
    upper = Upper()
    translate(str(text), str(output), upper, batch=1)
    assert upper.seen == ["three"]
    assert output.read_text().endswith("\none\tONE\nthree\tTHREE\n")
    assert not part.exists()


def test_ctrl_c_says_that_it_can_be_gone_on_with(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("subdp.cli.bitexts.find_translator", lambda *_, **__: Upper(breaks_at="three"))
    call = ("translate", text, "-o", tmp_path / "out.tsv", "--to", "xx", "--translator", "upper", "--batch", 1)
    assert run(*map(str, call)) == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-2].endswith("what is finished is kept, and the same command resumes from there")
    assert said[-1] == "subdp: interrupted"
    assert (tmp_path / "out.tsv.part").exists()


def test_a_file_of_another_kind_is_never_taken_for_an_unfinished_translation(text: Path, tmp_path: Path) -> None:
    (tmp_path / "out.tsv.part").write_text("part one of my thesis\n")
    with pytest.raises(SubdpError, match=r"out.tsv.part: is not a partial translation"):
        translate(str(text), str(tmp_path / "out.tsv"), Upper())
    assert (tmp_path / "out.tsv.part").read_text() == "part one of my thesis\n"


def test_what_another_translator_began_is_not_gone_on_with(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tsv"
    with pytest.raises(KeyboardInterrupt):
        translate(str(text), str(output), Upper(breaks_at="three"), batch=1)
    with pytest.raises(SubdpError, match=r"out\.tsv\.part: was made by another translator"):
        translate(str(text), str(output), Command("cat"))
    (tmp_path / "out.tsv.part").write_text('{"translator": "upper"}\nnonsense\n')
    with pytest.raises(SubdpError, match="damaged"):
        translate(str(text), str(output), Upper())


def test_another_number_of_lines_is_an_error_and_nothing_is_lost(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tsv"
    with pytest.raises(SubdpError, match=r"sed /two/d: returned 0 lines for 1 sentence .*earlier batches are saved"):
        translate(str(text), str(output), Command("sed /two/d"), batch=1)
    assert not output.exists()
    assert "one" in (tmp_path / "out.tsv.part").read_text()


def test_a_translator_that_fails_at_once_does_not_bind_the_next(text: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tsv"
    with pytest.raises(SubdpError, match="exit code 3"):
        translate(str(text), str(output), Command("exit 3"))
    translate(str(text), str(output), Command("cat"))
    assert output.read_text().startswith("one\tone\n")


def test_a_folder_that_cannot_be_written_is_told_before_any_work(text: Path, tmp_path: Path) -> None:
    upper = Upper()
    with pytest.raises(SubdpError, match="cannot be written: No such file"):
        translate(str(text), str(tmp_path / "no" / "out.tsv"), upper)
    assert not upper.seen


def test_latin_1_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\nna\xefve\n")
    with pytest.raises(SubdpError, match=r"latin\.txt:2: byte 0xef is not UTF-8"):
        translate(str(path), str(tmp_path / "out.tsv"), Upper())


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n\ufeff"), max_size=9)))
def test_the_bitext_has_a_line_for_each_line_whatever_is_in_it(tmp_path_factory: Any, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    source, output = folder / "in.txt", folder / "out.tsv"
    source.write_bytes("".join(f"{line}\n" for line in lines).encode())
    translate(str(source), str(output), Upper(), batch=2)
    assert output.read_bytes().count(b"\n") == len(lines)
    if lines:
        bitext = read_bitext(output, tokenized=True)
        assert bitext.report.read == len(lines)
        assert [int(pair.id or 0) for pair in bitext] == [n for n, line in enumerate(lines, 1) if line.split()]


def test_a_treebank_gives_its_text_to_the_translator_and_its_words_to_the_bitext(tmp_path: Path) -> None:
    treebank, output, upper = tmp_path / "in.conllu", tmp_path / "out.tsv.gz", Upper()
    write_conllu([DOGS, CATS], treebank)
    translate(str(treebank), str(output), upper)
    assert upper.seen == ["Dogs don't sing.", "10 000 cats"]
    assert [" ".join(pair.source) for pair in read_bitext(output, tokenized=True)] == [
        "Dogs do n't sing .",
        "10 000 cats",
    ]


FAKE_APERTIUM = """#!/bin/sh
if [ "$1" = -l ]; then printf '  eng-spa\\n  spa-eng\\n'; exit 0; fi
[ "$*" = "-u eng-spa" ] || { echo "Error: bad call" >&2; exit 1; }
sed 's/one/uno/'
"""


@pytest.fixture
def fake_apertium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "apertium"
    program.parent.mkdir()
    program.write_text(FAKE_APERTIUM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


def test_apertium_is_found_by_its_own_names_of_languages(fake_apertium: Path, text: Path, tmp_path: Path) -> None:
    assert run("translate", text, "-o", tmp_path / "out.tsv", "--to", "es", "--translator", "apertium") == 0
    assert (tmp_path / "out.tsv").read_text().startswith("one\tuno\n\t\ntwo and a half\ttwo and a half\none\tuno\n")


def test_a_missing_pair_of_apertium_names_its_package(
    fake_apertium: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("translate", text, "-o", tmp_path / "o", "--to", "en", "--from", "mk", "--translator", "apertium") == 1
    assert "apt install apertium apertium-mkd-eng" in capsys.readouterr().err
    with pytest.raises(SubdpError, match="Debian has no package for en-de"):
        Apertium("en", "de")


def test_a_missing_apertium_names_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SubdpError, match=r"not installed .*apt install apertium apertium-eng-spa"):
        Apertium("en", "es")


def test_what_apertium_says_of_a_failure_is_passed_on(fake_apertium: Path) -> None:
    apertium = Apertium("en", "es")
    fake_apertium.write_text("#!/bin/sh\necho 'Error: no locale' >&2\nexit 1\n")
    with pytest.raises(SubdpError, match="apertium failed: Error: no locale"):
        apertium.translate(["one"])
    fake_apertium.write_text("#!/bin/sh\ngrep .\n")
    with pytest.raises(SubdpError, match="merged sentences"):
        apertium.translate(["one", "two"])


def test_the_real_apertium_keeps_sentences_apart_and_shows_no_marks() -> None:
    try:
        apertium = Apertium("en", "es")
    except SubdpError as error:
        pytest.skip(f"wants the real Apertium: {error.reason}")
    found = apertium.translate(["The red", "houses are big", "A [glorp] of 5 * 3 @home"])
    assert found[0].lower() == "el rojo", "no word wanders to another line"
    assert "casas" in found[1].lower()
    assert "[glorp]" in found[2], "unknown words stay as they are"


def test_a_command_translates_standard_input_to_standard_output() -> None:
    code = "from subdp.cli.main import main; main()"
    call = [sys.executable, "-c", code, "translate", "-", "-o", "-", "--to", "xx", "--translator", "command:tr a-z A-Z"]
    ran = subprocess.run(call, input=b"ab\nb\n", capture_output=True, check=True)
    assert ran.stdout == b"ab\tAB\nb\tB\n"
    assert b"2 sentences in -" in ran.stderr


def test_bytes_that_are_not_utf_8_are_told() -> None:
    with pytest.raises(SubdpError, match="not UTF-8"):
        Command(r"printf '\377\n'").translate(["a"])


def test_a_package_brings_a_translator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "class Reverse:\n"
        "    def __init__(self, source, target): self.name = f'reverse {source}-{target}'\n"
        "    def translate(self, sentences): return [sentence[::-1] for sentence in sentences]\n"
        "def nothing(source, target): return None\n"
    )
    entries = "[subdp.translators]\nreverse = reverse:Reverse\nnothing = reverse:nothing\n"
    install(tmp_path, "reverse", entries, code)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = find_translator("reverse", "en", "es")
    assert (found.name, found.translate(["abc"])) == ("reverse en-es", ["cba"])
    with pytest.raises(SubdpError, match="'nothing' has no name"):
        find_translator("nothing", "en", "es")
    with pytest.raises(SubdpError, match=r"no translator is called 'google' \(available: apertium, transformers:NAME"):
        find_translator("google", "en", "es")
    with pytest.raises(SubdpError, match="reverse takes no beams or device"):
        find_translator("reverse", "en", "es", beams=3)


def test_languages_are_found_however_they_are_spelt() -> None:
    assert spellings("deu") == ("deu", "de")
    assert spellings("tlh") == ("tlh",)
    nllb = model_languages(["deu_Latn", "zho_Hant", "zho_Hans", "arb_Arab", "the", "▁de"])
    assert find_language("zh", nllb) == "zho_Hans"
    assert find_language("ar", nllb) == "arb_Arab"
    assert find_language("zho_Hant", nllb) == "zho_Hant"
    assert find_language("fr", nllb) is None
    assert find_language("pt", model_languages([">>pt_br<<", ">>pt<<"])) == ">>pt<<"
    assert find_language("nb", model_languages(["__no__", "__nl__"])) == "__no__"


def test_programs_and_commands_do_without_torch() -> None:
    code = "import sys, subdp.translation.translate, subdp.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Tiny models, each with the tokenizer that its family has (or, where that needs SentencePiece, one with its template).

PIECES = [*((piece, 0.0) for piece in SPECIAL[:4]), ("▁", -2.0), *((character, -5.0) for character in CHARACTERS)]


def family_tokenizer(family: str) -> Any:
    from transformers import MBart50Tokenizer, MBartTokenizer, NllbTokenizer
    from transformers.models.mbart import tokenization_mbart as mbart
    from transformers.models.mbart50 import tokenization_mbart50 as mbart50

    if family == "mbart":
        languages = [(code, 0.0) for code in mbart.FAIRSEQ_LANGUAGE_CODES]
        return MBartTokenizer(vocab=[*PIECES, *languages, ("<mask>", 0.0)])
    if family == "mbart50":
        languages = [(code, 0.0) for code in mbart50.FAIRSEQ_LANGUAGE_CODES]
        return MBart50Tokenizer(vocab=[*PIECES, *languages, ("<mask>", 0.0)])
    if family == "nllb":
        return NllbTokenizer(vocab={piece: number for number, (piece, _) in enumerate(PIECES)}, merges=[])
    templates = {"m2m100": "__en__ $A </s>", "opus": "$A </s>", "opus-many": "$A </s>"}
    tokens = {"m2m100": ["__de__", "__en__"], "opus-many": [">>deu<<", ">>fra<<"]}.get(family, [])
    return plain_tokenizer(templates[family], tokens)


def plain_tokenizer(template: str, languages: list[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram([*PIECES, *((code, 0.0) for code in languages)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    named = [name for name in template.split() if name != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(name, tokenizer.token_to_id(name)) for name in named]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, additional_special_tokens=languages, **names)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder with a tiny random model of a family."""
    from transformers import (
        M2M100Config,
        M2M100ForConditionalGeneration,
        MarianConfig,
        MarianMTModel,
        MBartConfig,
        MBartForConditionalGeneration,
    )

    kinds: dict[str, Any] = {
        "mbart": (MBartConfig, MBartForConditionalGeneration),
        "m2m100": (M2M100Config, M2M100ForConditionalGeneration),
        "opus": (MarianConfig, MarianMTModel),
    }

    def make(family: str) -> Path:
        folder = tmp_path_factory.getbasetemp() / f"model-{family}"
        if folder.exists():
            return folder
        kind = {"mbart50": "mbart", "nllb": "m2m100", "opus-many": "opus"}.get(family, family)
        configuration, model = kinds[kind]
        sizes: dict[str, Any] = {"d_model": 8, "max_position_embeddings": 40, "decoder_start_token_id": 2}
        for side in ("encoder", "decoder"):
            sizes |= {f"{side}_layers": 1, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 16}
        tokenizer = family_tokenizer(family)
        with torch.random.fork_rng():
            torch.manual_seed(1)
            made = model(configuration(vocab_size=len(tokenizer), pad_token_id=1, eos_token_id=2, **sizes))
        made.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return make


FRAMES = {  # What stands around a source in English, and how a translation into German begins.
    "mbart": ("$A </s> en_XX", ["de_DE"]),
    "mbart50": ("en_XX $A </s>", ["</s>", "de_DE"]),
    "nllb": ("eng_Latn $A </s>", ["</s>", "deu_Latn"]),
    "m2m100": ("__en__ $A </s>", ["</s>", "__de__"]),
    "opus": ("$A </s>", ["</s>"]),
    "opus-many": (">>deu<< $A </s>", ["</s>"]),
}


@pytest.mark.parametrize("family", FRAMES)
def test_each_family_gets_its_language_codes_where_it_wants_them(
    family: str, model_folder: Callable[[str], Path]
) -> None:
    from subdp.translation.models import ModelTranslator

    model = ModelTranslator(str(model_folder(family)), "en", "de", beams=2, device="cpu")
    calls: list[tuple[Any, Any]] = []
    generate = model.model.generate

    def spy(**arguments: Any) -> Any:
        calls.append((arguments, generate(**arguments)))
        return calls[-1][1]

    model.model.generate = spy
    assert len(model.translate(["a b"])) == 1
    arguments, written = calls[0]
    frame, begin = FRAMES[family]
    words = frame.replace("$A", "▁ a ▁ b").split()
    assert model.tokenizer.convert_ids_to_tokens(arguments["input_ids"][0].tolist()) == words
    assert model.tokenizer.convert_ids_to_tokens(written[0].tolist())[: len(begin)] == begin
    assert arguments["num_beams"] == 2


def test_translations_do_not_depend_on_what_else_is_in_the_batch(
    model_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from subdp.translation import models as translate_models
    from subdp.translation.models import ModelTranslator

    model = ModelTranslator(str(model_folder("nllb")), "en", "de", beams=1)
    sentences = ["a", "a long one indeed", "b c", "d", "some words"]
    alone = [model.translate([sentence])[0] for sentence in sentences]
    monkeypatch.setitem(translate_models._SUBWORDS, "cpu", 24)
    # The longest sentence of a batch sets how far a translation may run.
    assert all(text.startswith(short) for text, short in zip(model.translate(sentences), alone, strict=True))
    assert not any("deu_Latn" in text for text in alone)


def test_a_sentence_beyond_the_models_window_is_left_out_and_counted(
    model_folder: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.tsv"
    source.write_text(f"{'long ' * 1000}\nshort\n")
    call = ("translate", source, "-o", output, "--to", "de", "--beams", "1")
    assert run(*call, "--translator", f"transformers:{model_folder('mbart50')}") == 0
    assert "1 without a translation" in capsys.readouterr().err
    assert read_bitext(output).report.dropped == {"empty side": 1}


def test_a_language_that_the_model_does_not_know_is_told(model_folder: Callable[[str], Path]) -> None:
    from subdp.translation.models import ModelTranslator

    for family, target in (("m2m100", "fr"), ("opus-many", "es"), ("mbart", "xx")):
        with pytest.raises(SubdpError, match=f"does not know the language {target} .*it knows"):
            ModelTranslator(str(model_folder(family)), "en", target)


def test_a_model_for_one_pair_is_not_used_for_another(model_folder: Callable[[str], Path], tmp_path: Path) -> None:
    from subdp.translation.models import ModelTranslator

    model = ModelTranslator(str(model_folder("opus")), "en", "de", beams=1)
    model.tokenizer.source_lang, model.tokenizer.target_lang = "eng", "de"
    model._check_pair("en", "deu")
    with pytest.raises(SubdpError, match="this model's target language is de, not fr"):
        model._check_pair("en", "fr")


def test_what_is_no_translation_model_is_told(
    tiny_folder: Path, model_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from subdp.translation.models import ModelTranslator

    with pytest.raises(SubdpError, match="bert is not a translation model"):
        ModelTranslator(str(tiny_folder), "en", "de")
    broken = tmp_path / "broken"
    shutil.copytree(model_folder("m2m100"), broken)
    (broken / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(SubdpError, match="broken: this model cannot be loaded"):
        ModelTranslator(str(broken), "en", "de")
    monkeypatch.setattr("transformers.utils.is_sentencepiece_available", lambda: False)
    with pytest.raises(SubdpError, match=r"broken: this model cannot be loaded: (?!its tokenizer)"):
        ModelTranslator(str(broken), "en", "de")
    (broken / "tokenizer.json").rename(broken / "sentencepiece.bpe.model")
    with pytest.raises(SubdpError, match=r"needs sentencepiece and protobuf \(pip install 'subdp\[translate\]'\)"):
        ModelTranslator(str(broken), "en", "de")
    with pytest.raises(SubdpError, match="the beam size cannot be 0"):
        find_translator("transformers:any", "en", "de", beams=0)
