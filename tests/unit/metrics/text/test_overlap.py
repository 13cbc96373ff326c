"""Token F1, BLEU and ROUGE, compared with published values and the reference libraries."""

from __future__ import annotations

import re
import string

import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score import rouge_scorer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from agenteval.metrics.base import Observation, Outcome
from agenteval.metrics.overlap import Bleu, Rouge, RougeVariant, TokenF1, Tokens13a, squad_tokens

TEXTS = st.lists(st.sampled_from(["the", "a", "cat", "sat", "on", "Mat.", "dog", ",", "5", "é"]), max_size=12).map(
    " ".join
)
# Includes long texts, with many repetitions, and letters with unusual lower-case forms.
ANY = TEXTS | st.text() | st.lists(st.sampled_from([*"abcde", "x y", "İ", "ß", "a.b"]), max_size=150).map(" ".join)
# Characters that tokenizers handle specially: beside digits, full stops and dashes, at the ends of words and lines.
PIECES = [
    *("a", "The", "an", "1", "23", ".", ",", "-", "'", "_", "{", "`", "&", "&amp;", "quot;", "&lt;"),
    *("<skip", "ped>", "<skipped>", "é", "猫", "İ", "\u201c", "\x00", "\ud800"),
    *(" ", "  ", "\n", "-\n", "\t", "\r", "\x0b", "\x1c", "\x85", "\u00a0", "\u2028"),
]
ODD = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text()
VARIANTS: tuple[RougeVariant, ...] = ("rouge1", "rouge2", "rougeL")


def measure(metric: TokenF1 | Bleu | Rouge, response: str, ground_truth: str) -> Outcome:
    return metric.measure(Observation(input="q", response=response, ground_truth=ground_truth))


class TestTokenF1:
    @pytest.mark.parametrize(
        ("response", "ground_truth", "score", "precision", "recall"),
        [
            ("cat dog", "cat", 2 / 3, 0.5, 1.0),
            ("cat", "cat dog bird", 0.5, 1.0, 1 / 3),
            ("cat cat", "cat cat dog", 0.8, 1.0, 2 / 3),
            ("", "cat", 0.0, 0.0, 0.0),
            ("cat", "", 0.0, 0.0, 0.0),
            ("", "", 1.0, 1.0, 1.0),
        ],
    )
    def test_scores(self, response: str, ground_truth: str, score: float, precision: float, recall: float) -> None:
        outcome = measure(TokenF1(), response, ground_truth)
        assert outcome.score == pytest.approx(score)
        assert outcome.details == {"precision": pytest.approx(precision), "recall": pytest.approx(recall)}
        assert outcome.passed is None

    @pytest.mark.parametrize(
        ("response", "ground_truth", "score"),
        [
            ("A", "A", 1.0),
            ("a.", "A", 1.0),
            ("B", "A", 0.0),
            ("", "A", 0.0),
            ("The", "A", 0.0),
            ("A, as in", "A", 0.0),
        ],
    )
    def test_an_article_alone_is_compared_as_it_is(self, response: str, ground_truth: str, score: float) -> None:
        assert measure(TokenF1(), response, ground_truth).score == score

    @settings(deadline=None)
    @given(text=ODD)
    def test_tokens_are_those_of_the_rule(self, text: str) -> None:
        plain = "".join(character for character in text.lower() if character not in string.punctuation)
        assert squad_tokens(text) == re.sub(r"\b(a|an|the)\b", " ", " ".join(plain.split())).split()


class TestBleu:
    @settings(deadline=None)
    @given(response=ANY, ground_truth=ANY)
    def test_it_is_sacrebleu(self, response: str, ground_truth: str) -> None:
        outcome = measure(Bleu(), response, ground_truth)
        original = sacrebleu.sentence_bleu(response, [ground_truth], smooth_method="exp", use_effective_order=True)
        assert outcome.score == original.score / 100
        assert outcome.details is not None
        assert outcome.details["brevity_penalty"] == original.bp
        assert outcome.details["precisions"] == [round(value / 100, 6) for value in original.precisions]
        assert outcome.passed is None

    @settings(deadline=None)
    @given(text=ODD)
    @example(text="<skip-\nped>a <skipped>")
    def test_tokens_are_those_of_sacrebleu(self, text: str) -> None:
        original = Tokenizer13a()  # type: ignore[no-untyped-call]
        assert Tokens13a(original)(text) == original(text).split()


class TestRouge:
    def test_the_longest_common_subsequence_is_the_default(self) -> None:
        outcome = measure(Rouge(), "b a c", "a b c")
        assert outcome.score == pytest.approx(2 / 3)
        assert outcome.details == {
            "rouge1": pytest.approx(1.0),
            "rouge2": pytest.approx(0.0),
            "rougeL": pytest.approx(2 / 3),
        }
        assert outcome.passed is None

    @settings(deadline=None)
    @given(response=ODD, ground_truth=ODD)
    def test_odd_texts_score_as_with_rouge_score(self, response: str, ground_truth: str) -> None:
        original = rouge_scorer.RougeScorer(list(VARIANTS), use_stemmer=False).score(ground_truth, response)
        details = measure(Rouge(), response, ground_truth).details
        assert details == {variant: original[variant].fmeasure for variant in VARIANTS}


UNREADABLE = [
    (Rouge(), "Привет, мир", "the tokenizer of rouge reads only the letters a to z and digits", 0.0),
    (Bleu(), "今天天气很好", "the tokenizer of bleu (13a) divides words at spaces", 1.0),
    (TokenF1(), "今天天气很好", "the tokenizer of f1_score divides words at spaces", 1.0),
    (Bleu(tokenizer="zh"), "今天天气很好", None, 1.0),
    (Rouge(), "Schöne Grüße", None, 1.0),
    (Bleu(), "Привет, мир, привет, мир", None, 1.0),
]


@pytest.mark.parametrize(("metric", "text", "note", "score"), UNREADABLE)
def test_a_text_that_the_tokenizer_cannot_read_has_a_note(
    metric: TokenF1 | Bleu | Rouge, text: str, note: str | None, score: float
) -> None:
    outcome = measure(metric, text, text)
    assert outcome.score == pytest.approx(score)
    assert (outcome.reason or "").partition(";")[0].partition(", and")[0] == (note or "")


def test_a_tokenizer_divides_what_has_no_spaces() -> None:
    turn = Observation("q", "今天天气很好。", "今天天气很好")
    assert Bleu().measure(turn).score == 0.0
    assert Bleu(tokenizer="zh").measure(turn).score > 0.8
    with pytest.raises(ValueError, match=r"no tokenizer 'zn'; known: 13a, intl"):
        Bleu(tokenizer="zn")
