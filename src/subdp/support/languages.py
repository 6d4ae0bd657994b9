"""Language codes of programs and models: German is `de`, `deu`, `de_DE` or `deu_Latn`.

Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# The ISO 639-1 code, the ISO 639-3 code, and codes used for the same language: for a macrolanguage the individual
# language that is usually meant (Standard Arabic arb for ara), for an individual language its macrolanguage.
_ROWS = """
aa aar, ab abk, af afr, ak aka, am amh, an arg, ar ara arb, as asm, av ava, ay aym ayr, az aze azj, ba bak, be bel,
bg bul, bi bis, bm bam, bn ben, bo bod, br bre, bs bos hbs, ca cat, ce che, ch cha, co cos, cs ces, cu chu, cv chv,
cy cym, da dan, de deu, dv div, dz dzo, ee ewe, el ell, en eng, eo epo, es spa, et est ekk, eu eus, fa fas pes,
ff ful fuv, fi fin, fj fij, fo fao, fr fra, fy fry, ga gle, gd gla, gl glg, gn grn, gu guj, gv glv, ha hau, he heb,
hi hin, hr hrv hbs, ht hat, hu hun, hy hye, ia ina, id ind, ie ile, ig ibo, io ido, is isl, it ita, iu iku, ja jpn,
jv jav, ka kat, kg kon, ki kik, kk kaz, kl kal, km khm, kn kan, ko kor, kr kau knc, ks kas, ku kur kmr, kv kom, kw cor,
ky kir, la lat, lb ltz, lg lug, li lim, ln lin, lo lao, lt lit, lv lav lvs, mg mlg plt, mi mri, mk mkd, ml mal,
mn mon khk, mr mar, ms msa zsm zlm, mt mlt, my mya, nb nob no nor, ne nep npi, nl nld, nn nno, no nor nob nb, nv nav,
ny nya, oc oci, om orm gaz, or ori ory, os oss, pa pan, pl pol, ps pus pbt, pt por, qu que quy, rm roh, rn run, ro ron,
ru rus, rw kin, sa san, sc srd, sd snd, se sme, sg sag, si sin, sk slk, sl slv, sm smo, sn sna, so som, sq sqi als,
sr srp hbs, ss ssw, st sot, su sun, sv swe, sw swa swh, ta tam, te tel, tg tgk, th tha, ti tir, tk tuk, tl tgl, tn tsn,
to ton, tr tur, ts tso, tt tat, tw twi, ty tah, ug uig, uk ukr, ur urd, uz uzb uzn, ve ven, vi vie, vo vol, wa wln,
wo wol, xh xho, yi yid ydd, yo yor, zh zho cmn, zu zul
"""
_SPELLINGS = [tuple(row.split()) for row in _ROWS.split(",")]

_TOKEN = re.compile(r">>(?P<marian>\w+)<<|__(?P<m2m100>[a-z]{2,4})__|(?P<mbart>[a-z]{2,3}_[A-Z][A-Za-z]{1,3})")


def spellings(language: str) -> tuple[str, ...]:
    """The language code as given, then its other two- and three-letter codes.

    >>> spellings("de")
    ('de', 'deu')
    >>> spellings("nob")
    ('nob', 'nb', 'no', 'nor')
    """
    row = next((row for row in _SPELLINGS if language in row[:2]), ())
    return (language, *(code for code in row if code != language))


def model_languages(vocabulary: Iterable[str]) -> dict[str, str]:
    """The language tokens in a translation model's vocabulary, each with the code inside it.

    These are `de_DE` (mBART), `deu_Latn` (NLLB), `__de__` (M2M100) and `>>de<<` (OPUS-MT).

    >>> model_languages(["the", "__de__", "deu_Latn"])
    {'__de__': 'de', 'deu_Latn': 'deu_Latn'}
    """
    found = ((token, _TOKEN.fullmatch(token)) for token in vocabulary)
    return {token: match[match.lastgroup or 0] for token, match in found if match}


def find_language(language: str, tokens: dict[str, str]) -> str | None:
    """A model's token for a language, or None.

    If there are several countries or scripts, the first in alphabetical order: `zho_Hans` for `zh`.

    >>> find_language("de", {"de_DE": "de_DE", "en_XX": "en_XX"})
    'de_DE'
    """
    for spelling in spellings(language):
        whole = [token for token, code in tokens.items() if code == spelling]
        begun = [token for token, code in tokens.items() if code.startswith(f"{spelling}_")]
        if whole or begun:
            return min(whole or begun)
    return None
