"""METEOR offline. Scores need WordNet; the behaviour without it is tested on every machine."""

from __future__ import annotations

from pathlib import Path

import nltk
import pytest
from nltk.tokenize import NLTKWordTokenizer

from agenteval.core.errors import ConfigError
from agenteval.metrics.base import Observation
from agenteval.metrics.overlap import DEBIAN_WORDNET, Meteor, load_wordnet, words

needs_wordnet = pytest.mark.skipif(not DEBIAN_WORDNET.exists(), reason="needs WordNet: apt-get install wordnet-base")


def score(response: str, ground_truth: str) -> float:
    return Meteor().measure(Observation(input="q", response=response, ground_truth=ground_truth)).score


@needs_wordnet
class TestScores:
    def test_the_published_example(self) -> None:
        # https://huggingface.co/spaces/evaluate-metric/meteor
        prediction = "It is a guide to action which ensures that the military always obeys the commands of the party"
        reference = "It is a guide to action that ensures that the military will forever heed Party commands"
        assert score(prediction, reference) == pytest.approx(0.6944444444444445)

    @pytest.mark.parametrize(
        ("response", "ground_truth", "expected"),
        [
            # One match: no fragmentation can be told from none, which costs half (Lavie and Agarwal 2007).
            ("cat", "cat", 0.5),
            ("Cat", "cat", 0.5),
            ("cats", "cat", 0.5),
            ("car", "auto", 0.5),
            ("fish", "mortgage", 0.0),
            # Three matches in one run: 1 - 0.5 * (1/3) ** 3.
            ("the cat sat", "the cat sat", 1 - 0.5 / 27),
        ],
    )
    def test_by_hand(self, response: str, ground_truth: str, expected: float) -> None:
        assert score(response, ground_truth) == pytest.approx(expected)

    @pytest.mark.parametrize(("response", "ground_truth"), [("", "cat"), ("cat", ""), ("", ""), (" \n", "cat")])
    def test_nothing_scores_nothing(self, response: str, ground_truth: str) -> None:
        assert score(response, ground_truth) == 0.0

    def test_words_in_order_score_more(self) -> None:
        assert score("the cat sat on the mat", "the cat sat on the mat") > score(
            "mat the on sat cat the", "the cat sat on the mat"
        )

    def test_it_is_informational_and_needs_a_ground_truth(self) -> None:
        outcome = Meteor().measure(Observation(input="q", response="cat", ground_truth="cat"))
        assert outcome.passed is None
        assert Meteor().requires == {"ground_truth"}

    def test_any_text_scores_within_bounds(self) -> None:
        for text in ("!?", "猫が座った", "\x00", "a" * 10_000, "60.940 €", "x\ud800y"):
            assert 0.0 <= score(text, "the cat sat") <= 1.0


class TestWords:
    @pytest.mark.parametrize(
        "sentence",
        [
            "The dog's bowl isn't empty.",
            "It costs $60.94, i.e. too much!",
            'She said "no" (twice).',
            "cannot gonna wanna",
            "Visit example.org at 5 p.m.",
        ],
    )
    def test_one_sentence_has_treebank_tokens(self, sentence: str) -> None:
        assert words(sentence) == NLTKWordTokenizer().tokenize(sentence)

    def test_every_sentence_ends_with_a_separate_full_stop(self) -> None:
        assert words("It works. It is fast.") == ["It", "works", ".", "It", "is", "fast", "."]

    def test_an_abbreviation_does_not_end_a_sentence(self) -> None:
        assert words("Ask Dr. Smith. He knows.") == ["Ask", "Dr.", "Smith", ".", "He", "knows", "."]


class TestWithoutWordNet:
    def test_the_error_contains_the_install_command(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(nltk.data, "path", [])
        with pytest.raises(ConfigError, match="the metric meteor needs WordNet") as caught:
            load_wordnet(tmp_path)
        assert "apt-get install wordnet-base" in str(caught.value)
        assert "python -m nltk.downloader wordnet" in str(caught.value)
        assert caught.value.exit_status == 2

    def test_the_data_of_nltk_is_sufficient(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        corpus = tmp_path / "corpora" / "wordnet"
        corpus.mkdir(parents=True)
        (corpus / "data.noun").touch()
        monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
        assert load_wordnet(tmp_path / "no-debian-package") is nltk.corpus.wordnet
