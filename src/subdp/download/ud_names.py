"""Names of Universal Dependencies treebanks: `en_ewt` in file names, `UD_English-EWT` for folder and repository.

Neither can be derived from the other by rule, so there are tables: of languages, of treebanks whose names are not all
capitals, and of files that repositories hold in parts. Standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from subdp.support.errors import SubdpError

UD_URL = "https://raw.githubusercontent.com/UniversalDependencies"
"""Where single files of the Universal Dependencies repositories can be downloaded."""

# The code of each language, its name, and the name that it has in other releases.
_LANGUAGES = """
ab Abkhaz, af Afrikaans, aii Assyrian, ajp South_Levantine_Arabic, akk Akkadian, aln Gheg, am Amharic, ang Old_English,
apu Apurina, aqz Akuntsu, ar Arabic, arr Karo, az Azerbaijani, bar Bavarian, be Belarusian, bej Beja, bg Bulgarian,
bho Bhojpuri, bm Bambara, bn Bengali, br Breton, bxr Buryat, ca Catalan, ceb Cebuano, ckb Central_Kurdish, ckt Chukchi,
cop Coptic, cs Czech, cu Old_Church_Slavonic, cy Welsh, da Danish, de German, egy Egyptian, el Greek, en English,
eo Esperanto, es Spanish, ess Yupik, et Estonian, eu Basque, fa Persian, fi Finnish, fo Faroese, fr French,
frm Middle_French, fro Old_French, ga Irish, gd Scottish_Gaelic, gl Galician, gn Guarani, got Gothic, grc Ancient_Greek,
gsw Swiss_German Alemannic, gu Gujarati, gub Guajajara, gun Mbya_Guarani, gv Manx, ha Hausa, hbo Ancient_Hebrew,
he Hebrew, hi Hindi, hit Hittite, hr Croatian, hsb Upper_Sorbian, ht Haitian_Creole, hu Hungarian, hy Armenian,
hyw Western_Armenian, id Indonesian, is Icelandic, it Italian, ja Japanese, jv Javanese, ka Georgian, kfm Khunsari,
kk Kazakh, kmr Kurmanji Northern_Kurdish, ko Korean, koi Komi_Permyak, kpv Komi_Zyrian, krl Karelian, ky Kyrgyz,
la Latin, lb Luxembourgish, lij Ligurian, lt Lithuanian, ltg Latgalian, lv Latvian, lzh Classical_Chinese, mdf Moksha,
mk Macedonian, ml Malayalam, mr Marathi, mt Maltese, myu Munduruku, myv Erzya, nap Neapolitan, nds Low_Saxon, nl Dutch,
no Norwegian, nyq Nayini, oc Occitan, olo Livvi, or Odia, orv Old_East_Slavic Old_Russian, ota Ottoman_Turkish,
otk Old_Turkish, pcm Naija, pl Polish, ps Pashto, pt Portuguese, qfn Frisian_Dutch, qhe Hindi_English,
qtd Turkish_German, quc Kiche, ro Romanian, ru Russian, sa Sanskrit, sah Yakut, scn Sicilian, sd Sindhi, sga Old_Irish,
si Sinhala, sjo Xibe, sk Slovak, sl Slovenian, sme North_Sami, sms Skolt_Sami, soj Soi, sq Albanian, sr Serbian,
sv Swedish, swl Swedish_Sign_Language, ta Tamil, te Telugu, th Thai, tl Tagalog, tn Tswana, tpn Tupinamba, tr Turkish,
tt Tatar, ug Uyghur, uk Ukrainian, ur Urdu, urb Kaapor, uz Uzbek, vep Veps, vi Vietnamese, wbp Warlpiri, wo Wolof,
xcl Classical_Armenian, xnr Kangri, yi Yiddish, yo Yoruba, yue Cantonese, zh Chinese
"""

# Treebanks whose names are not all capitals, unlike EWT and GSD.
_TREEBANKS = """
AbNC Adolphe AfriBooms Alpino AMGiC AnCora Arabizi ArmTDP ArT Atis Autogramm Beginner Birchbark Bohairic Bokmaal Bosque
Cadhan Cairo CAVaL Clausal CompLin CorAG Cretan CTeTex DANTEStocks DipSGG DipWBG Dooley ESLSpok Fame FarPaHC FicTree
FrameNet Giella Giellagas GSDSimp GujTB GUMReddit HitTB IAHLTknesset IAHLTwiki IcePaHC Isra Kaist Kenet KIParlaForest
Kurmanji Kyoto LassySmall Lattice Lesbian LinES LittlePrince LuxBank MaiBaam MarkIT Messinian Modern MolDoRo Mukri
Nonstandard NorthernAutogramm Nynorsk NynorskLIA Old OldTuDeT ParisStories ParlaMint ParTUT PatentChar Penn PerDT
Perseus PetroGold Poetry Popapolelo Porttinari PoSTWITA Prago Pronouns Rhapsodie Ruthenian Scriptorium Sequoia Seraji
Sikaram SiMoNERo SouthernAutogramm Spoken SweLL SynTagRus Szeged Taiga Talbanken Thomas Tonqq Tourism TreeGal TuDeT
TueCL TwittIrish UDante Ugnayan UJaen UzUDT Valico Vedic WesternAutogramm YiTB
"""

PARTS = {
    "cs_pdt": ("c", "l", "m", "v"),
    "de_hdt": ("a-1", "a-2", "b-1", "b-2"),
    "ru_syntagrus": ("a", "b", "c"),
    "ru_taiga": ("a", "b", "c", "d", "e"),
}
"""Training sets that repositories hold in several files because of their size; release archives have them joined."""

_ROWS = [row.split() for row in _LANGUAGES.split(",")]
_NAME_OF = {row[0]: row[1] for row in _ROWS}
_CODE_OF = {name: row[0] for row in _ROWS for name in row[1:]}
_SPELLING = {name.lower(): name for name in _TREEBANKS.split()}
_CODE = re.compile(r"([a-z]{2,3})_([a-z0-9]+)")
_FOLDER = re.compile(r"UD_([A-Za-z_]+)-([A-Za-z0-9]+)")
_HINT = "write en_ewt, or UD_English-EWT, the name of its repository at https://github.com/UniversalDependencies"


@dataclass(frozen=True, slots=True)
class TreebankName:
    """A treebank's name in file names (`en_ewt`), and that of its folder and repository (`UD_English-EWT`)."""

    code: str
    folder: str

    @property
    def language(self) -> str:
        """The language code."""
        return self.code.partition("_")[0]


def find_treebank(name: str) -> TreebankName:
    """The treebank with this name, in either form.

    >>> find_treebank("es_ancora").folder
    'UD_Spanish-AnCora'
    >>> find_treebank("UD_Old_French-SRCMF").code
    'fro_srcmf'
    """
    if match := _CODE.fullmatch(name):
        language, treebank = match.groups()
        if language in _NAME_OF:
            return TreebankName(name, f"UD_{_NAME_OF[language]}-{_SPELLING.get(treebank, treebank.upper())}")
        raise SubdpError(f"{name}: no Universal Dependencies language has the code {language}", hint=_HINT)
    if match := _FOLDER.fullmatch(name):
        language, treebank = match.groups()
        if language in _CODE_OF:
            return TreebankName(f"{_CODE_OF[language]}_{treebank.lower()}", name)
        raise SubdpError(f"{name}: the language {language} is unknown", hint=_HINT)
    raise SubdpError(f"{name!r} is not a treebank name", hint=_HINT)
