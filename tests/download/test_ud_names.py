"""The two names of a treebank of Universal Dependencies, each found from the other."""

from __future__ import annotations

import pytest

from subdp.download.ud_names import PARTS, find_treebank
from subdp.support.errors import SubdpError


@pytest.mark.parametrize(
    ("code", "folder"),
    [
        ("en_ewt", "UD_English-EWT"),
        ("de_gsd", "UD_German-GSD"),
        ("es_ancora", "UD_Spanish-AnCora"),
        ("it_isdt", "UD_Italian-ISDT"),
        ("ko_kaist", "UD_Korean-Kaist"),
        ("tr_imst", "UD_Turkish-IMST"),
        ("ar_padt", "UD_Arabic-PADT"),
        ("hi_hdtb", "UD_Hindi-HDTB"),
        ("zh_gsdsimp", "UD_Chinese-GSDSimp"),
        ("cu_proiel", "UD_Old_Church_Slavonic-PROIEL"),
        ("swl_sslc", "UD_Swedish_Sign_Language-SSLC"),
    ],
)
def test_files_and_folders_are_named_as_in_the_official_releases(code: str, folder: str) -> None:
    assert find_treebank(code) == find_treebank(folder)
    assert (find_treebank(code).code, find_treebank(code).folder) == (code, folder)


def test_a_language_that_changed_its_name_is_found_by_both() -> None:
    assert find_treebank("UD_Old_Russian-RNC").code == find_treebank("UD_Old_East_Slavic-RNC").code == "orv_rnc"
    assert find_treebank("UD_Old_Russian-RNC").folder == "UD_Old_Russian-RNC"


def test_a_treebank_not_in_the_tables_is_taken_by_its_full_name() -> None:
    assert find_treebank("UD_English-NewTreebank").code == "en_newtreebank"


@pytest.mark.parametrize(
    "name", ["english", "EWT", "en-ewt", "xx_ewt", "UD_Klingon-KTB", "UD_English", "../en_ewt", ""]
)
def test_a_name_that_is_none_is_an_error_that_says_how_names_look(name: str) -> None:
    with pytest.raises(SubdpError, match="UD_English-EWT"):
        find_treebank(name)


def test_treebanks_in_parts_are_known_treebanks() -> None:
    assert all(find_treebank(code).code == code for code in PARTS)
