"""The index of the web edition: each glossary term with the lessons that use it, and each exercise with its number."""

import re

TERM = re.compile(r"^- \*\*(.+?)\*\*:.*?Lesson (\d+)", re.MULTILINE | re.DOTALL)
EXERCISE = re.compile(r"^### Exercise (?P<number>\d+\.\d+).*?`(?P<name>\w+)`", re.MULTILINE)


def index_page(glossary: str, prose: dict[str, str]) -> str:
    """The index as Markdown. prose: the Markdown of each lesson, by its two-digit number."""
    entries = {term: _lessons_of(term, first, prose) for term, first in TERM.findall(glossary)}
    for text in prose.values():
        entries |= {f"`{match['name']}`": f"exercise {match['number']}" for match in EXERCISE.finditer(text)}
    lines = [f"- {term}: {entries[term]}" for term in sorted(entries, key=lambda term: term.strip("`").lower())]
    introduction = "Terms, with the lessons that use them (the one that introduces a term is bold), and exercises."
    return "\n".join(["# Index", "", introduction, "", *lines, ""])


def _lessons_of(term: str, first: str, prose: dict[str, str]) -> str:
    """The lessons that mention the term under any of its names in the glossary, such as *lesson 3, lesson 5*."""
    names = "|".join(re.escape(name) for name in re.split(r", | \(|\)", term) if name)
    mentioned = re.compile(rf"(?<!\w)({names})s?(?!\w)", re.IGNORECASE)
    numbers = [int(number) for number, text in prose.items() if int(number) == int(first) or mentioned.search(text)]
    return ", ".join(f"**lesson {number}**" if number == int(first) else f"lesson {number}" for number in numbers)
