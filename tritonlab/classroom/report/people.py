"""The students of a report under their names, or under letters."""

import hashlib
import hmac
import itertools
import re
from collections.abc import Iterable

from tritonlab.classroom.roster import Roster
from tritonlab.classroom.store import Store

LETTERS = 5  # 3.2 million names
_CONSONANTS = "BCDFGHJKLMNPQRSTVWXZ"  # letters with vowels may spell a name, such as ADA
_SHORTEST = 3  # characters of a text that identifies someone
_WORD = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_MASK = "…"


class People:
    """The labels of students.

    Letters follow from the id and the secret of the class: they stay the same when students come
    and go, and no one can compute them from a list of names.
    """

    def __init__(self, store: Store, roster: Roster, ids: Iterable[str], *,
                 anonymous: bool = False) -> None:
        self.anonymous = anonymous
        self._names = {one.id: one.name for one in roster.students}
        others = [student for student in ids if student not in self._names]
        terms = {text for one in roster.students
                 for text in (one.id, one.name, one.email, one.sis_id, one.login, one.github,
                              *(alias.rpartition(":")[2] for alias in one.aliases))}
        terms |= {one.email.partition("@")[0] for one in roster.students} | roster.aliases.keys()
        self._terms = _by_first_word({*terms, *others})
        parts = {part for name in self._names.values() for part in _WORD.findall(name)}
        self._parts = _by_first_word({*terms, *others, *parts})
        secret = store.seed("report", "letters").encode()
        self._letters: dict[str, str] = {}
        taken = set(self._parts)
        for student in sorted({*self._names, *others}):
            self._letters[student] = next(
                one for number in itertools.count()
                if (one := _letters(secret, f"{student}\0{number}")).lower() not in taken)
            taken.add(self._letters[student].lower())

    def letters(self, student: str) -> str:
        """The letters of a student, which also name the page."""
        return self._letters[student]

    def label(self, student: str) -> str:
        """The name of a student, or the letters."""
        if self.anonymous:
            return self._letters[student]
        return self._names.get(student) or student

    def order(self, student: str) -> tuple[str, str]:
        """The place of a student in a list; letters do not follow the roster."""
        return self.label(student).casefold(), student

    def shown(self, text: str) -> str:
        """A sentence as a report shows it: while anonymous, without what identifies students."""
        return _masked(text, self._terms) if self.anonymous else text

    def code(self, text: str) -> str:
        """Code as a report shows it: while anonymous, also without parts of names."""
        return self.masked(text) if self.anonymous else text

    def masked(self, text: str) -> str:
        """Code without what identifies students."""
        return _masked(text, self._parts)


def _letters(secret: bytes, text: str) -> str:
    number = int.from_bytes(hmac.digest(secret, text.encode(), hashlib.sha256))
    base = len(_CONSONANTS)
    return "".join(_CONSONANTS[number // base ** place % base] for place in range(LETTERS))


def _by_first_word(terms: Iterable[str]) -> dict[str, list[str]]:
    """Groups texts by their first word, the longest first."""
    groups: dict[str, list[str]] = {}
    for term in sorted({term.strip().lower() for term in terms}, key=len, reverse=True):
        if len(term) >= _SHORTEST and (word := _WORD.search(term)):
            groups.setdefault(word[0], []).append(term[word.start():])
    return groups


def _masked(text: str, terms: dict[str, list[str]]) -> str:
    text = _ADDRESS.sub(_MASK, text)
    lower = text.lower()
    if len(lower) != len(text):  # a few letters have another length in lower case
        text = lower
    parts, done = [], 0
    for word in _WORD.finditer(lower):
        if word.start() < done:
            continue
        for term in terms.get(word[0], ()):
            end = word.start() + len(term)
            if lower.startswith(term, word.start()) and not (
                    term[-1].isalnum() and lower[end:end + 1].isalnum()):
                parts += [text[done:word.start()], _MASK]
                done = end
                break
    return "".join(parts) + text[done:]
