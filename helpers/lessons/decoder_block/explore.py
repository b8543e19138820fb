"""Explorers of lesson 10: a beam over a small model, and what is removed before a word is sampled."""

from helpers.lessons.decoder_block.figures import Beams, NextWord
from helpers.widgets.controls import choice, decimal, powers, whole
from helpers.widgets.panel import panel


def beams():
    panel(Beams(), width=whole("beam size", 1, 1, 5))


def next_word():
    top_k = choice("top-k", [1, 2, 3, 5, 10, 20, 50, 194], 194)
    top_p = decimal("top-p (1: off)", 0.9, 0.05, 1.0, 0.05)
    panel(NextWord(), temperature=powers("temperature", 1.0, -1, 1, 0.05), top_k=top_k, top_p=top_p)
