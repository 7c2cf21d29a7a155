"""Text from data, shown as what it is: it moves no cursor and turns no direction of what stands around it."""

# control characters but for tab and newline, marks of direction, halves of characters, and no characters
HIDDEN = (
    *(code for code in range(0x20) if chr(code) not in "\t\n"),
    *range(0x7F, 0xA0),
    *(0x61C, 0x200E, 0x200F),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
    *(0xFFFE, 0xFFFF),
)
VISIBLE = {code: f"\\u{code:04x}" for code in HIDDEN}


def visible(text: str) -> str:
    r"""The text with what cannot be seen in it written out, as ``\u202e``; so JSON stays the same JSON."""
    return text.translate(VISIBLE)
