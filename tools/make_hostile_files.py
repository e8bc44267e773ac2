#!/usr/bin/env python3
"""Writes the GGUF files under tests/data and tests/hostile, the same bytes every time.

tests/data/good.gguf        a valid llama model: d_model 32, q8_0 weights, all 256 byte tokens
tests/data/good_small.gguf  a valid llama model of less than 4 KiB: the base of the hostile ones
tests/fuzz/corpus/gguf/     every_type.gguf and llama.gguf, seeds
tests/hostile/reader/*      files that the GGUF reader must refuse
tests/hostile/model/*       well-formed GGUF, complete models with exactly one thing wrong
tests/hostile/manifest.json [{file, level, expect}]: `expect` must occur in the error's message,
                            whatever its case

Usage: make_hostile_files.py [REPOSITORY]
"""

import json
import math
import pathlib
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q",
           I64: "q", F64: "d"}
TENSOR_F32, TENSOR_F16, TENSOR_Q8_0 = 0, 1, 8
NORMAL, CONTROL = 1, 3


class Raw(bytes):
    """A value as it shall stand in the file, whatever its type says."""


def text_bytes(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value_bytes(kind, value):
    """A metadata value without its type; arrays are (element kind, [elements])."""
    if isinstance(value, Raw):
        return value
    if kind == STRING:
        return text_bytes(value)
    if kind == ARRAY:
        element, items = value
        return struct.pack("<IQ", element, len(items)) + b"".join(
            value_bytes(element, item) for item in items)
    return struct.pack("<" + FORMATS[kind], value)


class Gguf:
    """A file as plain data, so that any field can be spoilt before it is serialised."""

    def __init__(self):
        self.magic = b"GGUF"
        self.version = 3
        self.alignment = 32  # what the file is laid out with, whatever it claims
        self.entries = []  # [key, kind, value]
        self.tensors = []  # dicts: name, dims (innermost first), kind, data, offset
        self.n_tensors = None  # None: the truth
        self.n_entries = None
        self.tail = b""

    def put(self, key, kind, value):
        for entry in self.entries:
            if entry[0] == key:
                entry[1:] = [kind, value]
                return
        self.entries.append([key, kind, value])

    def drop(self, key):
        self.entries = [entry for entry in self.entries if entry[0] != key]

    def tensor(self, name):
        return next(tensor for tensor in self.tensors if tensor["name"] == name)

    def add_tensor(self, name, dims, kind, data, offset=None):
        self.tensors.append({"name": name, "dims": dims, "kind": kind, "data": data,
                             "offset": offset})

    def drop_tensor(self, name):
        self.tensors = [tensor for tensor in self.tensors if tensor["name"] != name]

    def pad(self, data):
        return data + bytes(-len(data) % self.alignment)

    def serialise(self):
        def truth(claimed, real):
            return len(real) if claimed is None else claimed

        head = self.magic + struct.pack("<IQQ", self.version, truth(self.n_tensors, self.tensors),
                                        truth(self.n_entries, self.entries))
        for key, kind, value in self.entries:
            head += text_bytes(key) + struct.pack("<I", kind) + value_bytes(kind, value)
        data = b""
        for tensor in self.tensors:
            offset = len(data) if tensor["offset"] is None else tensor["offset"]
            head += text_bytes(tensor["name"]) + struct.pack("<I", len(tensor["dims"]))
            head += b"".join(struct.pack("<Q", size) for size in tensor["dims"])
            head += struct.pack("<IQ", tensor["kind"], offset)
            data = self.pad(data + tensor["data"])
        return self.pad(head) + data + self.tail


class Random:
    """xorshift32; uniform in [-1, 1)."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state ^= self.state << 13 & 0xFFFFFFFF
        self.state ^= self.state >> 17
        self.state ^= self.state << 5 & 0xFFFFFFFF
        return (self.state >> 8) / 2**23 - 1.0


def matrix_bytes(random, kind, n_out, n_in):
    deviation = 1.0 / math.sqrt(n_in)
    values = [random.uniform() * math.sqrt(3.0) * deviation for _ in range(n_out * n_in)]
    if kind == TENSOR_F16:
        return struct.pack(f"<{len(values)}e", *values)
    assert kind == TENSOR_Q8_0
    data = b""
    for start in range(0, len(values), 32):
        block = values[start:start + 32]
        scale = max(map(abs, block)) / 127.0
        data += struct.pack("<e32b", scale, *(max(-127, min(127, round(v / scale)))
                                              for v in block))
    return data


def byte_alphabet():
    """GPT-2's character for each byte."""
    printable = [b for b in range(256) if 0x20 < b < 0x7F or (b > 0xA0 and b != 0xAD)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(0x100 + others.index(b)) for b in range(256)]


def llama(d_model, n_heads, n_kv_heads, d_ff, kind, tokens, types, merges):
    file = Gguf()
    file.put("general.architecture", STRING, "llama")
    file.put("llama.block_count", U32, 1)
    file.put("llama.context_length", U32, 64)
    file.put("llama.embedding_length", U32, d_model)
    file.put("llama.feed_forward_length", U32, d_ff)
    file.put("llama.attention.head_count", U32, n_heads)
    file.put("llama.attention.head_count_kv", U32, n_kv_heads)
    file.put("llama.attention.layer_norm_rms_epsilon", F32, 1e-5)
    file.put("llama.rope.freq_base", F32, 10000.0)
    file.put("llama.rope.dimension_count", U32, d_model // n_heads)
    file.put("llama.vocab_size", U32, len(tokens))
    file.put("tokenizer.ggml.model", STRING, "gpt2")
    file.put("tokenizer.ggml.pre", STRING, "smollm")
    file.put("tokenizer.ggml.tokens", ARRAY, (STRING, tokens))
    file.put("tokenizer.ggml.token_type", ARRAY, (I32, types))
    file.put("tokenizer.ggml.merges", ARRAY, (STRING, merges))
    file.put("tokenizer.ggml.bos_token_id", U32, 1)
    file.put("tokenizer.ggml.eos_token_id", U32, 2)
    file.put("tokenizer.ggml.unknown_token_id", U32, 0)
    file.put("tokenizer.ggml.add_bos_token", BOOL, 0)

    random = Random(20240607)
    kv_width = d_model // n_heads * n_kv_heads

    def matrix(name, n_out, n_in):
        file.add_tensor(name, [n_in, n_out], kind, matrix_bytes(random, kind, n_out, n_in))

    def norm(name):
        values = [1.0 + 0.1 * random.uniform() for _ in range(d_model)]
        file.add_tensor(name, [d_model], TENSOR_F32, struct.pack(f"<{d_model}f", *values))

    matrix("token_embd.weight", len(tokens), d_model)
    norm("blk.0.attn_norm.weight")
    matrix("blk.0.attn_q.weight", d_model, d_model)
    matrix("blk.0.attn_k.weight", kv_width, d_model)
    matrix("blk.0.attn_v.weight", kv_width, d_model)
    matrix("blk.0.attn_output.weight", d_model, d_model)
    norm("blk.0.ffn_norm.weight")
    matrix("blk.0.ffn_gate.weight", d_ff, d_model)
    matrix("blk.0.ffn_up.weight", d_ff, d_model)
    matrix("blk.0.ffn_down.weight", d_model, d_ff)
    norm("output_norm.weight")
    return file


CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def good():
    merges = ["\u0120 t", "h e", "\u0120t he", "i n", "r e", "o n"]
    tokens = CONTROLS + byte_alphabet() + [merge.replace(" ", "") for merge in merges]
    types = [CONTROL] * 3 + [NORMAL] * (len(tokens) - 3)
    return llama(32, 2, 1, 64, TENSOR_Q8_0, tokens, types, merges)


def good_small():
    tokens = CONTROLS + ["a", "b", "\u0120", "ab", "\u0120ab"]
    types = [CONTROL] * 3 + [NORMAL] * 5
    return llama(8, 2, 1, 8, TENSOR_F16, tokens, types, ["a b", "\u0120 ab"])


def every_type():
    """A seed for the fuzzer: a value of every type, a block of every tensor type."""
    file = Gguf()
    for kind in [U8, I8, U16, I16, U32, I32, F32, BOOL, U64, I64, F64]:
        file.put(f"value.{kind}", kind, 1)
        file.put(f"array.{kind}", ARRAY, (kind, [1, 0]))
    file.put("value.string", STRING, "\u00e9")
    file.put("array.string", ARRAY, (STRING, ["", "x"]))
    file.put("general.alignment", U32, 8)
    blocks = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24),
              8: (32, 34), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176),
              14: (256, 210), 20: (32, 18), 30: (1, 2)}
    file.alignment = 8
    for kind, (size, n_bytes) in blocks.items():
        data = bytes((7 * i + kind) % 256 for i in range(n_bytes))
        file.add_tensor(f"t{kind}", [size], kind, data)
    return file


def minimal():
    """The base of the files for the reader: three keys, two tensors."""
    file = Gguf()
    file.put("general.architecture", STRING, "llama")
    file.put("a.number", U32, 7)
    file.put("a.list", ARRAY, (STRING, ["x", "yz"]))
    file.add_tensor("first", [8, 2], TENSOR_F32, bytes(64))
    file.add_tensor("second", [32], TENSOR_Q8_0, bytes(34))
    return file


def reader_files():
    """Yields (name, bytes, expected word of the message)."""

    def spoilt(change):
        file = minimal()
        change(file)
        return file.serialise()

    def field(**fields):
        return spoilt(lambda file: file.__dict__.update(fields))

    def entry(key, kind, value):
        return spoilt(lambda file: file.entries.append([key, kind, value]))

    def raw_array(element, length, rest=b""):
        return entry("k", ARRAY, Raw(struct.pack("<IQ", element, length) + rest))

    def tensor(which="first", **fields):
        return spoilt(lambda file: file.tensor(which).update(fields))

    whole = minimal().serialise()
    yield "empty", b"", "empty"
    yield "one_byte", b"G", "GGUF"
    yield "text", b"version https://git-lfs.github.com/spec/v1\n", "not a GGUF file"
    yield "magic_lower_case", field(magic=b"gguf"), "magic"
    yield "magic_of_ggml", field(magic=b"lmgg"), "magic"
    yield "magic_with_newline", field(magic=b"\n\x1b[2"), "magic"
    yield "header_only_magic", b"GGUF", "version"
    yield "header_cut", whole[:20], "metadata count"
    yield "version_0", field(version=0), "version 0"
    yield "version_1", field(version=1), "version 1"
    yield "version_4", field(version=4), "version 4"
    yield "version_max", field(version=2**32 - 1), "version 4294967295"
    yield "big_endian", field(version=3 << 24), "big-endian"
    yield "big_endian_2", field(version=2 << 24), "big-endian"

    for name, count in [("minus_1", 2**64 - 1), ("2_63", 2**63), ("2_61", 2**61),
                        ("one_million", 10**6)]:
        yield f"n_tensors_{name}", field(n_tensors=count), "tensors"
        yield f"n_entries_{name}", field(n_entries=count), "metadata entries"
    yield "n_tensors_one_more", field(n_tensors=3), "tensor"
    yield "n_entries_one_more", field(n_entries=4), "tensor name"

    long = struct.pack("<Q", 2**64 - 1)

    def with_raw_key(raw):
        """The header, then `raw` in place of the first entry."""
        return whole[:24] + raw + whole[24 + 8:]

    yield "key_length_minus_1", with_raw_key(long), "metadata key"
    yield "key_length_2_63", with_raw_key(struct.pack("<Q", 2**63)), "metadata key"
    yield "key_length_past_end", with_raw_key(struct.pack("<Q", len(whole))), "metadata key"
    yield "key_empty", entry("", U32, 1), "expected 1 to 65535"
    yield "key_nul", entry("a\0b", U32, 1), "NUL"
    yield "key_invalid_utf8", entry(b"a\xff\xfeb", U32, 1), "UTF-8"
    yield "key_overlong_utf8", entry(b"a\xc0\xaf", U32, 1), "UTF-8"
    yield "key_surrogate", entry(b"a\xed\xa0\x80", U32, 1), "UTF-8"
    yield "key_cut_utf8", entry(b"a\xe2\x82", U32, 1), "UTF-8"
    yield "key_twice", spoilt(lambda f: f.entries.append(["a.number", U32, 7])), "twice"
    yield "key_twice_with_newline", spoilt(
        lambda f: f.entries.extend([["x\ny", U32, 1], ["x\ny", U32, 2]])), "twice"

    yield "value_type_13", entry("k", 13, Raw()), "type 13"
    yield "value_type_minus_1", entry("k", 2**32 - 1, Raw()), "type 4294967295"
    yield "string_length_minus_1", entry("k", STRING, Raw(long)), "string value"
    yield "string_length_2_63", entry("k", STRING, Raw(struct.pack("<Q", 2**63))), "string value"
    yield "string_in_array_length_2_63", raw_array(STRING, 1, struct.pack("<Q", 2**63)), \
        "string in an array"
    yield "bool_2", entry("k", BOOL, 2), "boolean"
    yield "bool_in_array_255", entry("k", ARRAY, (BOOL, [0, 1, 255])), "boolean"
    yield "array_of_arrays", raw_array(ARRAY, 0), "array of arrays"
    yield "array_deep", raw_array(ARRAY, 1, struct.pack("<IQ", ARRAY, 1) * 99), "array of arrays"
    yield "array_type_13", raw_array(13, 1), "element type 13"
    yield "array_of_u8_2_64", raw_array(U8, 2**64 - 1), "elements"
    yield "array_of_u32_2_61", raw_array(U32, 2**61), "elements"
    yield "array_of_u64_2_61", raw_array(U64, 2**61 + 1), "elements"
    yield "array_of_strings_2_61", raw_array(STRING, 2**61), "elements"
    yield "array_of_f64_past_end", raw_array(F64, 60), "elements"

    for alignment in [0, 1, 3, 4, 13, 2**31 + 8]:
        yield f"alignment_{alignment}", entry("general.alignment", U32, alignment), "alignment"
    yield "alignment_2_31", entry("general.alignment", U32, 2**31), "second"
    yield "alignment_string", entry("general.alignment", STRING, "32"), "alignment"
    yield "alignment_u64", entry("general.alignment", U64, 32), "alignment"
    yield "alignment_i32", entry("general.alignment", I32, 32), "alignment"
    yield "alignment_array", entry("general.alignment", ARRAY, (U32, [32])), "alignment"

    yield "tensor_name_empty", tensor(name=""), "tensor name"
    yield "tensor_name_65", tensor(name="n" * 65), "65 bytes"
    yield "tensor_name_nul", tensor(name="a\0"), "NUL"
    yield "tensor_name_invalid_utf8", tensor(name=b"\x80"), "UTF-8"
    yield "tensor_name_twice", tensor(name="second"), "twice"

    yield "n_dims_0", tensor(dims=[]), "0 dimensions"
    yield "n_dims_5", tensor(dims=[1] * 5), "5 dimensions"
    yield "n_dims_huge", whole.replace(struct.pack("<IQ", 2, 8), struct.pack("<IQ", 2**31, 8)), \
        "dimensions"
    yield "dim_0", tensor(dims=[8, 0]), "dimension of size 0"
    yield "dim_inner_0", tensor(dims=[0, 2]), "dimension of size 0"
    yield "dim_minus_1", tensor(dims=[8, 2**64 - 1]), "dimension of size -1"
    yield "dim_2_63", tensor(dims=[2**63, 1]), "dimension of size"
    yield "dims_product_wraps_to_0", tensor(dims=[2**32, 2**32]), "larger than any memory"
    yield "dims_product_wraps_to_16", tensor(dims=[2**62, 4, 4, 1]), "larger than any memory"
    yield "bytes_overflow", tensor(dims=[2**61, 2]), "larger than any memory"
    yield "bytes_exabytes", tensor(dims=[2**60, 1]), "takes 4611686018427387904 bytes"

    def sum_overflow(file):
        for item in file.tensors:
            item.update(dims=[0x7FFFFFFFFFFFFFC0 // 4], kind=TENSOR_F32)
        file.tensors[1].update(offset=0x7FFFFFFFFFFFFFC0)

    yield "bytes_sum_overflow", spoilt(sum_overflow), "takes 9223372036854775744 bytes"
    yield "rows_not_whole_blocks", tensor("second", dims=[33]), "multiple of 32"
    yield "rows_not_whole_blocks_k", tensor("second", dims=[32], kind=14), "multiple of 256"

    for kind in [4, 5, 31, 33, 36, 38, 42, 255, 2**31 - 1]:
        yield f"tensor_type_{kind}", tensor(kind=kind), f"type {kind}"
    yield "tensor_type_minus_1", tensor(kind=2**32 - 1), "type -1"

    yield "offset_unaligned", tensor("second", offset=65), "multiple of the alignment"
    yield "offset_4_of_32", tensor("second", offset=68), "multiple of the alignment"
    yield "offset_past_end", tensor("second", offset=1 << 20), "offset 1048576"
    yield "offset_2_64", tensor("second", offset=2**64 - 32), "offset 18446744073709551584"
    yield "overlap_same_place", tensor("second", offset=0), "overlap"
    yield "overlap_partly", tensor("second", offset=32), "overlap"
    yield "data_one_byte_short", whole[:-31], "not copied whole"
    yield "data_missing", whole[:-128], "not copied whole"
    yield "tensor_list_cut", whole[:180], "not copied whole"


def model_files():
    """Yields (name, bytes, expected word of the message)."""

    def spoilt(change):
        file = good_small()
        change(file)
        return file.serialise()

    def entry(key, kind, value):
        return spoilt(lambda file: file.put(key, kind, value))

    def without(key):
        return spoilt(lambda file: file.drop(key))

    def tensor(name, **fields):
        return spoilt(lambda file: file.tensor(name).update(fields))

    yield "architecture_missing", without("general.architecture"), "general.architecture"
    yield "architecture_unknown", entry("general.architecture", STRING, "lama"), "lama"
    yield "architecture_number", entry("general.architecture", U32, 1), "general.architecture"
    yield "architecture_with_escape", entry("general.architecture", STRING, "\x1b[31m\n"), ""

    sizes = {
        "block_count": [0, 2, 2**31, 2**32 - 1],
        "context_length": [0, 2**32 - 1],
        "embedding_length": [0, 9, 2**31],
        "feed_forward_length": [0, 9, 2**31],
        "attention.head_count": [0, 3, 2**31],
        "attention.head_count_kv": [0, 3, 4, 2**31],
        "rope.dimension_count": [3, 6, 2**31],
    }
    for key, values in sizes.items():
        for value in values:
            word = {("block_count", 2): "blk.1", ("feed_forward_length", 9): "ffn_"}.get(
                (key, value), key.rsplit(".", 1)[-1])
            if (key, value) == ("embedding_length", 9):
                word = ""  # the loader may meet the heads or the embedding's shape first
            yield f"{key.replace('.', '_')}_{value}", entry(f"llama.{key}", U32, value), word
    for key in ["block_count", "context_length", "embedding_length", "feed_forward_length",
                "attention.head_count", "attention.layer_norm_rms_epsilon"]:
        yield f"{key.replace('.', '_')}_missing", without(f"llama.{key}"), key
    yield "block_count_negative", entry("llama.block_count", I32, -1), "block_count"
    yield "block_count_string", entry("llama.block_count", STRING, "1"), "block_count"
    yield "block_count_float", entry("llama.block_count", F32, 1.0), "block_count"
    epsilon = "llama.attention.layer_norm_rms_epsilon"
    for name, value in [("nan", math.nan), ("0", 0.0), ("negative", -1e-5), ("inf", math.inf)]:
        yield f"epsilon_{name}", entry(epsilon, F32, value), "epsilon"
    for name, value in [("nan", math.nan), ("0", 0.0), ("negative", -1.0), ("inf", math.inf)]:
        yield f"freq_base_{name}", entry("llama.rope.freq_base", F32, value), "freq_base"

    def scaling(kind, factor):
        def change(file):
            file.put("llama.rope.scaling.type", STRING, kind)
            file.put("llama.rope.scaling.factor", F32, factor)
        return spoilt(change)

    yield "rope_scaling_unknown", scaling("wobbly", 2.0), "scaling"
    yield "rope_scaling_factor_0", scaling("linear", 0.0), "scaling.factor"
    yield "rope_scaling_factor_nan", scaling("linear", math.nan), "scaling.factor"

    tokens = good_small().entries
    tokens = next(entry for entry in tokens if entry[0] == "tokenizer.ggml.tokens")[2][1]
    list_key, type_key = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
    yield "tokens_none", entry(list_key, ARRAY, (STRING, [])), "token"
    yield "tokens_missing", without(list_key), "tokenizer.ggml.tokens"
    yield "tokens_of_numbers", entry(list_key, ARRAY, (U32, [1] * 8)), "tokenizer.ggml.tokens"
    yield "tokens_more_than_rows", spoilt(lambda f: (
        f.put(list_key, ARRAY, (STRING, tokens + ["ba"])),
        f.put(type_key, ARRAY, (I32, [CONTROL] * 3 + [NORMAL] * 6)),
        f.drop("llama.vocab_size"))), ""
    yield "tokens_empty_string", entry(list_key, ARRAY, (STRING, tokens[:3] + ["", "b"] +
                                                         tokens[5:])), "token"
    yield "token_types_too_few", entry(type_key, ARRAY, (I32, [3, 3, 3, 1])), "token_type"
    yield "token_types_too_many", entry(type_key, ARRAY, (I32, [3] * 3 + [1] * 9)), "token_type"
    yield "token_types_unknown", entry(type_key, ARRAY, (I32, [3] * 3 + [1] * 4 + [99])), \
        "token_type"
    yield "token_types_of_strings", entry(type_key, ARRAY, (STRING, ["3"] * 8)), "token_type"
    yield "scores_too_few", entry("tokenizer.ggml.scores", ARRAY, (F32, [0.0] * 7)), "scores"
    merges_key = "tokenizer.ggml.merges"
    for name, merge in [("without_space", "ab"), ("empty", ""), ("of_two_spaces", "a b b"),
                        ("left_empty", " b"), ("right_empty", "a ")]:
        yield f"merge_{name}", entry(merges_key, ARRAY, (STRING, ["a b", merge])), "merge"
    yield "merges_missing", without(merges_key), "merges"
    yield "merges_of_numbers", entry(merges_key, ARRAY, (U32, [1, 2])), "merges"
    for which in ["bos", "eos", "unknown"]:
        for value in [8, 2**32 - 1]:
            key = f"tokenizer.ggml.{which}_token_id"
            yield f"{which}_{value}", entry(key, U32, value), f"{which}_token_id"
    yield "eos_string", entry("tokenizer.ggml.eos_token_id", STRING, "2"), "eos_token_id"
    yield "pre_unknown", entry("tokenizer.ggml.pre", STRING, "smoll"), "smoll"
    yield "pre_missing", without("tokenizer.ggml.pre"), "tokenizer.ggml.pre"
    yield "tokenizer_unknown", entry("tokenizer.ggml.model", STRING, "gpt3"), "gpt3"
    yield "tokenizer_missing", without("tokenizer.ggml.model"), "tokenizer.ggml.model"

    for name in ["token_embd", "blk.0.attn_norm", "blk.0.attn_k", "blk.0.ffn_down",
                 "output_norm"]:
        yield f"missing_{name.replace('.', '_')}", spoilt(
            lambda f, name=name: f.drop_tensor(name + ".weight")), name
    yield "shape_k_transposed", tensor("blk.0.attn_k.weight", dims=[4, 8]), "attn_k"
    yield "shape_norm_2d", tensor("output_norm.weight", dims=[4, 2]), "output_norm"
    yield "shape_up_short", tensor("blk.0.ffn_up.weight", dims=[8, 7]), "ffn_up"
    yield "shape_q_3d", tensor("blk.0.attn_q.weight", dims=[8, 4, 2]), "attn_q"
    yield "shape_embedding_flat", tensor("token_embd.weight", dims=[64]), "token_embd"
    yield "type_i32", tensor("blk.0.attn_q.weight", kind=26, data=bytes(256)), "I32"
    yield "type_f64", tensor("blk.0.attn_k.weight", kind=28, dims=[8, 4], data=bytes(256)), "F64"
    yield "split_count_2", spoilt(lambda f: (f.put("split.count", U16, 2),
                                             f.put("split.no", U16, 0))), "split"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).resolve().parent.parent)
    data = root / "tests" / "data"
    hostile = root / "tests" / "hostile"
    data.mkdir(parents=True, exist_ok=True)
    (data / "good.gguf").write_bytes(good().serialise())
    (data / "good_small.gguf").write_bytes(good_small().serialise())
    seeds = root / "tests" / "fuzz" / "corpus" / "gguf"
    seeds.mkdir(parents=True, exist_ok=True)
    (seeds / "every_type.gguf").write_bytes(every_type().serialise())
    (seeds / "llama.gguf").write_bytes(good_small().serialise())
    manifest = []
    total = 0
    for level, files in [("reader", reader_files()), ("model", model_files())]:
        folder = hostile / level
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.gguf"):
            old.unlink()
        for name, content, expect in files:
            assert len(content) < 4096, name
            path = folder / f"{name}.gguf"
            assert not path.exists(), name
            path.write_bytes(content)
            total += len(content)
            manifest.append({"file": f"{level}/{name}.gguf", "level": level, "expect": expect})
    lines = ",\n".join(json.dumps(item) for item in manifest)
    (hostile / "manifest.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(manifest)} hostile files, {total} bytes")


if __name__ == "__main__":
    main()
