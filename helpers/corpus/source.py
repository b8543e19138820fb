"""A language of which everything is known: its text has an exact entropy rate, and no n-gram can follow it.

A text is a row of sentences, drawn one after the other, each of one of three kinds, each closed by a full stop:

    Bqrzqb.          agreement: the small letter that ends it agrees with the capital, 2 to 30 tokens earlier
    ([]{()}).        brackets: nested up to four deep, each closed by its own kind
    |rwty|rwty.      repetition: a segment of letters, all different, and once more the same

Everything that the next token depends on stands in the sentence so far. So the probability of each next token is
known exactly (`Source.chances`), and with it the loss that nobody can beat: `Source.nats` on a given text,
`Source.entropy_rate` on average over all texts. A sentence begins anew after each full stop, whatever came before.

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
    """The source and its dials; the defaults are the lesson's."""

    subjects: str = "ABCDEF"
    pairs: tuple[str, ...] = ("()", "[]", "{}")
    letters: str = "pqrstuvwxyz"
    agreement: float = 0.3  # share of sentences of this kind
    brackets: float = 0.3
    nearest: int = 2  # the verb stands this far behind its subject at least,
    farthest: int = 30  # and at most that far;
    verb: float = 0.125  # in between it comes next with this probability
    deepest: int = 4  # brackets stand in one another at most so deep;
    open: float = 0.45  # above that another one opens with this probability, else the last one is closed
    shortest: int = 3  # letters of a segment, at least
    longest: int = 8  # and at most;
    turn: float = 0.25  # in between the segment ends with this probability

    # ------------------------------------------------------------ tokens

    @property
    def symbols(self) -> str:
        """All tokens, in the order of their ids."""
        return STOP + BAR + "".join(self.pairs) + self.subjects + self.subjects.lower() + self.letters

    def encode(self, text: str) -> torch.Tensor:
        """A text as ids, LongTensor (T,)."""
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        return torch.tensor([index[symbol] for symbol in text], dtype=torch.long)

    def decode(self, ids) -> str:
        """Ids, LongTensor (T,) or list, as a text."""
        return "".join(self.symbols[int(i)] for i in ids)

    # ------------------------------------------------------------ what comes next

    @functools.cached_property
    def _closer(self) -> dict[str, str]:
        return {pair[0]: pair[1] for pair in self.pairs}

    @functools.cached_property
    def chances(self):
        """chances(state): the probability of every token that may come next, in a state that `after` gives."""
        return functools.lru_cache(maxsize=10_000)(self._chances)

    def _chances(self, state: tuple) -> dict[str, float]:
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
            subject, distance = rest  # the next token stands `distance` behind the subject
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
        segment, done = rest  # the second time
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
            for token, chance in self.chances(state).items():  # noqa: B007
                left -= chance
                if left < 0:
                    break
            tokens.append(token)
            state = self.after(state, token)
            if state == BETWEEN:
                return "".join(tokens)

    def text(self, length: int, seed: int) -> torch.Tensor:
        """Sentence after sentence, cut at `length` tokens: LongTensor (length,). The same seed gives the same text."""
        rng, pieces, have = random.Random(seed), [], 0
        while have < length:
            pieces.append(self.sentence(rng))
            have += len(pieces[-1])
        return self.encode("".join(pieces)[:length])

    def passages(self, count: int, length: int, seed: int) -> torch.Tensor:
        """Texts for a test, LongTensor (count, length): each begins with a full stop, and nothing before it counts."""
        rng = random.Random(seed)
        rows = [STOP + self.decode(self.text(length - 1, rng.getrandbits(32))) for _ in range(count)]
        return torch.stack([self.encode(row) for row in rows])

    # ------------------------------------------------------------ the line that nobody can beat

    def nats(self, ids: torch.Tensor) -> torch.Tensor:
        """-log p of each token given all tokens before it: ids (T,) or (B, T) -> the same shape, float64.

        A text is taken to begin between two sentences; a full stop in front has probability 1 there.
        """
        if ids.dim() > 1:
            return torch.stack([self.nats(row) for row in ids])
        state, found = BETWEEN, []
        for i, token in enumerate(self.decode(ids)):
            if i == 0 and token == STOP:
                found.append(0.0)
                continue
            chance = self.chances(state).get(token, 0.0)
            if not chance:
                raise ValueError(f"token {i}, {token!r}, cannot stand there: this is no text of the source")
            found.append(-math.log(chance))
            state = self.after(state, token)
        return torch.tensor(found, dtype=torch.float64)

    def next_probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        """The source's own prediction after each token: ids (T,) -> (T, V), float64, row t for the token after t."""
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        table = torch.zeros(len(ids), len(self.symbols), dtype=torch.float64)
        state = BETWEEN
        for t, token in enumerate(self.decode(ids)):
            if t or token != STOP:
                state = self.after(state, token)
            for symbol, chance in self.chances(state).items():
                table[t, index[symbol]] = chance
        return table

    def entropy_rate(self) -> float:
        """Nats a token, exactly: the mean entropy of a sentence over its mean length.

        Sentences are independent and alike, so in a long text the share of each is as its length (renewal theory).
        """
        entropy, length = _entropy(self.chances(BETWEEN).values()), 1.0 + 1.0  # the first token and the full stop
        subject = self.subjects[0]
        verbs = (((AGREEMENT, subject, n), subject.lower(), 0) for n in range(1, self.farthest + 1))
        segments = ((("segment", self.letters[:n]), BAR, n) for n in range(self.longest + 1))  # n letters come again
        of_kinds = self._until(verbs), self._brackets(), self._until(segments)
        shares = self.agreement, self.brackets, 1 - self.agreement - self.brackets
        for share, (nats, tokens) in zip(shares, of_kinds, strict=True):
            entropy += share * nats
            length += share * tokens
        return entropy / length

    def _until(self, steps) -> tuple[float, float]:
        """Mean entropy and mean number of tokens until a part of a sentence ends.

        steps: the states in a row, each with the token that ends the part there and how many certain tokens follow it.
        """
        nats = tokens = 0.0
        alive = 1.0  # the chance that the part has not ended yet
        for state, end, certain in steps:
            chances = self.chances(state)
            ends = chances.get(end, 0.0)
            nats += alive * _entropy(chances.values())
            tokens += alive * (1 + ends * certain)
            alive *= 1 - ends
        return nats, tokens

    def _brackets(self) -> tuple[float, float]:
        """The same, from inside the first bracket to its end. One level at a time, from the deepest: a level is asked
        until it closes, once and once more for every bracket that opens in it, and each of those is a level below."""
        nats = tokens = 0.0  # below the deepest level
        for depth in range(self.deepest, 0, -1):
            chances = self.chances((BRACKETS, self.pairs[0][1] * depth))
            asked = 1 / chances[self.pairs[0][1]]  # mean number of questions at this level
            nats, tokens = asked * _entropy(chances.values()) + (asked - 1) * nats, asked + (asked - 1) * tokens
        return nats, tokens


def _mix(*shares: dict[str, float]) -> dict[str, float]:
    """Groups of tokens, each with the group's share as its value, in one table: a share is split among its tokens."""
    return {token: share / len(group) for group in shares for token, share in group.items() if share > 0}


def _entropy(chances) -> float:
    return -sum(p * math.log(p) for p in chances if p > 0)
