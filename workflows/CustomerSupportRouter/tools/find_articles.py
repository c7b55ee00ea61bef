"""Searches the help centre."""

import re
from typing import Final

_ARTICLES: Final = {
    "Share a notebook with a colleague": "share invite colleague team permission",
    "Export notes as PDF or Markdown": "export pdf markdown download print",
    "Change the e-mail address of an account": "email address account change profile",
    "Delete an account and its data": "delete remove account data privacy",
    "Use the app without a connection": "offline connection plane sync travel",
}


def find_articles(question: str, context_variables) -> list[str]:
    """Return the titles that fit the question best, the best one first."""
    # Environment variables are absent in production, so the number has a fallback here.
    limit = context_variables.get("max_articles") or 3
    asked = set(re.findall(r"[a-z]+", question.lower().replace("-", "")))
    hits = {title: len(asked & set(words.split())) for title, words in _ARTICLES.items()}
    found = sorted((title for title in hits if hits[title]), key=lambda title: -hits[title])
    return found[:limit]
