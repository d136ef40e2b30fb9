"""Text from elsewhere made safe to print: host names and log lines must not move the cursor or hide what they say."""

from __future__ import annotations

import re
import unicodedata

#: C0 and C1 controls, line and paragraph separators, and the marks that reorder text (Unicode "bidi" controls).
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with control characters written out (``\\x1b``); newlines and tabs stay."""
    return _UNSAFE.sub(_written_out, text)


def one_line(text: str) -> str:
    """Like :func:`plain`, with newlines and tabs as blanks."""
    return plain(" ".join(text.split()))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def ascii_only(text: str) -> str:
    """For terminals that cannot show more: signs are replaced by their nearest ASCII, others by ``?``."""
    for sign, replacement in (("→", "->"), ("–", "-"), ("—", "-"), ("…", "..."), ("×", "x"), ("≥", ">="), ("≤", "<=")):
        text = text.replace(sign, replacement)
    return unicodedata.normalize("NFKD", text).encode("ascii", "replace").decode("ascii")
