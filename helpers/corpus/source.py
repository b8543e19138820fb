"""A language whose entropy rate is known exactly, and which no n-gram model can learn.

A text is a sequence of independently drawn sentences, each of one of three kinds, each with a full stop at its end:

    Bqrzqb.          agreement: the last letter is the lower case of the capital, which is 2 to 30 tokens before it
    ([]{()}).        brackets: nested up to four deep, each closed by its own kind
    |rwty|rwty.      repetition: a segment of different letters, twice

The next token depends only on the sentence so far. So its probabilities are known exactly (`Source.probabilities`), and
with them the lowest possible loss: `Source.nats` on a given text, `Source.entropy_rate` on average over all texts.

    language = Source()
    language.decode(language.text(40, seed=0))
    language.entropy_rate()
"""

import functools
import math
import random
from dataclasses import dataclass

import torch

STOP, BAR = ".", "|"
AGREEMENT, BRACKETS, REPETITION = "agreement", "brackets", "repetition"
BETWEEN = ("between",)


@dataclass(frozen=True)
class Source:
    """The source with its parameters; the defaults are the lesson's."""

    subjects: str = "ABCDEF"
    pairs: tuple[str, ...] = ("()", "[]", "{}")
    letters: str = "pqrstuvwxyz"
    agreement: float = 0.3  # the probability that a sentence is of this kind
    brackets: float = 0.3
    nearest: int = 2  # the verb follows at least this many tokens after its subject
    farthest: int = 30  # and at most this many;
    verb: float = 0.125  # in between, this is the probability that it comes next
    deepest: int = 4  # brackets are nested at most this deep;
    open: float = 0.45  # up to there, another one opens with this probability, and otherwise the last one is closed
    shortest: int = 3  # a segment has at least this many letters
    longest: int = 8  # and at most this many;
    turn: float = 0.25  # in between, this is the probability that it ends

    # ------------------------------------------------------------ tokens

    @property
    def symbols(self) -> str:
        """All tokens, in the order of their ids."""
        return STOP + BAR + "".join(self.pairs) + self.subjects + self.subjects.lower() + self.letters

    def encode(self, text: str) -> torch.Tensor:
        """The ids of a text, LongTensor (T,)."""
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        return torch.tensor([index[symbol] for symbol in text], dtype=torch.long)

    def decode(self, ids) -> str:
        """The text of ids, LongTensor (T,) or list."""
        return "".join(self.symbols[int(i)] for i in ids)

    # ------------------------------------------------------------ the next token

    @functools.cached_property
    def _closer(self) -> dict[str, str]:
        return {pair[0]: pair[1] for pair in self.pairs}

    @functools.cached_property
    def probabilities(self):
        """probabilities(state) -> token -> probability, for all tokens that are possible after a state of `after`."""
        return functools.lru_cache(maxsize=10_000)(self._probabilities)

    def _probabilities(self, state: tuple) -> dict[str, float]:
        kind, *rest = state
        if kind == "between":
            repetition = 1 - self.agreement - self.brackets
            return (
                {subject: self.agreement / len(self.subjects) for subject in self.subjects}
                | {pair[0]: self.brackets / len(self.pairs) for pair in self.pairs}
                | {BAR: repetition}
            )
        if kind == "end":
            return {STOP: 1.0}
        if kind == AGREEMENT:
            subject, distance = rest  # the next token is `distance` tokens after the subject
            verb = 0.0 if distance < self.nearest else 1.0 if distance >= self.farthest else self.verb
            return _mix({subject.lower(): verb}, dict.fromkeys(self.letters, 1 - verb))
        if kind == BRACKETS:
            (stack,) = rest
            deeper = self.open if len(stack) < self.deepest else 0.0
            return _mix({stack[-1]: 1 - deeper}, dict.fromkeys((pair[0] for pair in self.pairs), deeper))
        if kind == "segment":
            (segment,) = rest
            turn = 0.0 if len(segment) < self.shortest else 1.0 if len(segment) >= self.longest else self.turn
            left = [letter for letter in self.letters if letter not in segment]
            return _mix({BAR: turn}, dict.fromkeys(left, 1 - turn))
        segment, done = rest  # the kind is REPETITION
        return {segment[done]: 1.0}

    def after(self, state: tuple, token: str) -> tuple:
        """The state after one more token."""
        kind, *rest = state
        if kind == "end":
            return BETWEEN
        if kind == "between":
            if token == BAR:
                return ("segment", "")
            return (BRACKETS, self._closer[token]) if token in self._closer else (AGREEMENT, token, 1)
        if kind == AGREEMENT:
            subject, distance = rest
            return ("end",) if token == subject.lower() else (AGREEMENT, subject, distance + 1)
        if kind == BRACKETS:
            (stack,) = rest
            stack = stack + self._closer[token] if token in self._closer else stack[:-1]
            return (BRACKETS, stack) if stack else ("end",)
        if kind == "segment":
            (segment,) = rest
            return (REPETITION, segment, 0) if token == BAR else ("segment", segment + token)
        segment, done = rest
        return (REPETITION, segment, done + 1) if done + 1 < len(segment) else ("end",)

    # ------------------------------------------------------------ text

    def sentence(self, rng: random.Random) -> str:
        """One sentence with its full stop."""
        state, tokens = BETWEEN, []
        while True:
            left = rng.random()
            for token, p in self.probabilities(state).items():  # noqa: B007
                left -= p
                if left < 0:
                    break
            tokens.append(token)
            state = self.after(state, token)
            if state == BETWEEN:
                return "".join(tokens)

    def text(self, length: int, seed: int) -> torch.Tensor:
        """Random sentences, truncated to `length` tokens: LongTensor (length,). The same seed gives the same text."""
        rng, sentences, have = random.Random(seed), [], 0
        while have < length:
            sentences.append(self.sentence(rng))
            have += len(sentences[-1])
        return self.encode("".join(sentences)[:length])

    def passages(self, count: int, length: int, seed: int) -> torch.Tensor:
        """Independent test texts, LongTensor (count, length), each beginning with a full stop."""
        rng = random.Random(seed)
        rows = [STOP + self.decode(self.text(length - 1, rng.getrandbits(32))) for _ in range(count)]
        return torch.stack([self.encode(row) for row in rows])

    # ------------------------------------------------------------ the lowest possible loss

    def nats(self, ids: torch.Tensor) -> torch.Tensor:
        """-log p of each token given all tokens before it: ids (T,) or (B, T) -> the same shape, float64.

        A text is assumed to start with a new sentence; a full stop at its very beginning has probability 1.
        """
        if ids.dim() > 1:
            return torch.stack([self.nats(row) for row in ids])
        state, found = BETWEEN, []
        for i, token in enumerate(self.decode(ids)):
            if i == 0 and token == STOP:
                found.append(0.0)
                continue
            p = self.probabilities(state).get(token, 0.0)
            if not p:
                raise ValueError(f"token {i}, {token!r}, is impossible there, so this is not a text of the source")
            found.append(-math.log(p))
            state = self.after(state, token)
        return torch.tensor(found, dtype=torch.float64)

    def next_probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        """The source's probabilities of the next token: ids (T,) -> (T, V), float64; row t is for the token after t."""
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        table = torch.zeros(len(ids), len(self.symbols), dtype=torch.float64)
        state = BETWEEN
        for t, token in enumerate(self.decode(ids)):
            if t or token != STOP:
                state = self.after(state, token)
            for symbol, p in self.probabilities(state).items():
                table[t, index[symbol]] = p
        return table

    def entropy_rate(self) -> float:
        """The exact entropy rate in nats per token: the mean entropy of a sentence divided by its mean length.

        This holds because sentences are independent and have the same distribution (renewal theory).
        """
        entropy, length = _entropy(self.probabilities(BETWEEN).values()), 1.0 + 1.0  # the first token and the full stop
        subject = self.subjects[0]
        verbs = (((AGREEMENT, subject, n), subject.lower(), 0) for n in range(1, self.farthest + 1))
        segments = ((("segment", self.letters[:n]), BAR, n) for n in range(self.longest + 1))  # n letters are repeated
        of_kinds = self._until(verbs), self._brackets(), self._until(segments)
        weights = self.agreement, self.brackets, 1 - self.agreement - self.brackets
        for weight, (nats, tokens) in zip(weights, of_kinds, strict=True):
            entropy += weight * nats
            length += weight * tokens
        return entropy / length

    def _until(self, steps) -> tuple[float, float]:
        """The mean entropy and the mean number of tokens until a part of a sentence ends.

        steps: the states in order, each with the token that would end the part and how many certain tokens follow it.
        """
        nats = tokens = 0.0
        alive = 1.0  # the probability that the part has not ended yet
        for state, end, certain in steps:
            probabilities = self.probabilities(state)
            ends = probabilities.get(end, 0.0)
            nats += alive * _entropy(probabilities.values())
            tokens += alive * (1 + ends * certain)
            alive *= 1 - ends
        return nats, tokens

    def _brackets(self) -> tuple[float, float]:
        """The same for brackets, from after the first bracket to its closing one, computed from the deepest level up.

        At each level tokens are drawn until one closes it, and every other one opens a bracket one level deeper.
        """
        nats = tokens = 0.0  # below the deepest level
        for depth in range(self.deepest, 0, -1):
            probabilities = self.probabilities((BRACKETS, self.pairs[0][1] * depth))
            draws = 1 / probabilities[self.pairs[0][1]]  # their mean number at this level
            nats, tokens = draws * _entropy(probabilities.values()) + (draws - 1) * nats, draws + (draws - 1) * tokens
        return nats, tokens


def _mix(*groups: dict[str, float]) -> dict[str, float]:
    """The probabilities of all tokens. Each group maps its tokens to the probability that they share equally."""
    return {token: p / len(group) for group in groups for token, p in group.items() if p > 0}


def _entropy(probabilities) -> float:
    return -sum(p * math.log(p) for p in probabilities if p > 0)
