#!/usr/bin/env python3
"""Writes tests/data/ops/*.json: what other people's code makes of small inputs.

PyTorch in float64 for the operations, gguf-py for the block formats, numpy for what neither knows
(flat int4, q8 rows). Needs torch, numpy and gguf; run from the root of the repository:

    python3 tools/export_op_goldens.py [DEQUANT_JSON]

DEQUANT_JSON holds first blocks of tensors of public model files, with the values that gguf-py and a
hand-written decoder agree on; without it the file tests/data/ops/model_blocks.json stays as it is.
"""

import json
import math
import pathlib
import sys

import gguf
import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path("tests/data/ops")
RNG = np.random.default_rng(20240607)
BLOCK_TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
# Byte offsets of the binary16 scales in a block, and the block's size in bytes and values.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}


def rand(*shape, scale=1.0, digits=3):
    """Normal values with few digits, so that the files stay small and the values are exact."""
    return np.round(RNG.normal(0, scale, shape), digits).astype(np.float32).astype(np.float64)


def tensor(values, dtype="f64"):
    values = np.asarray(values)
    return {"shape": list(values.shape), "dtype": dtype, "values": values.ravel().tolist()}


def bits(values, dtype):
    """16-bit floats as their bit patterns."""
    t = torch.tensor(values).to({"f16": torch.float16, "bf16": torch.bfloat16}[dtype])
    raw = t.view(torch.int16).numpy().astype(np.uint16)
    return {"shape": list(raw.shape), "dtype": dtype, "values": raw.ravel().tolist()}, t.double()


def random_blocks(kind, n_rows, n_columns):
    qtype = gguf.GGMLQuantizationType[kind]
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[qtype]
    raw = RNG.integers(0, 256, (n_rows * n_columns // block_size, block_bytes), dtype=np.uint8)
    for at in SCALES[kind]:
        half = RNG.uniform(-0.05, 0.05, raw.shape[0]).astype(np.float16)
        raw[:, at:at + 2] = half.view(np.uint8).reshape(-1, 2)
    values = gguf.quants.dequantize(raw, qtype).reshape(n_rows, n_columns)
    return ({"shape": [n_rows, n_columns], "dtype": kind.lower(), "hex": raw.tobytes().hex()},
            values.astype(np.float64))


CASES = []


def case(op, name, inputs, outputs, **scalars):
    CASES.append({"op": op, "name": name, "scalars": scalars, "inputs": inputs,
                  "outputs": outputs})


def t64(values):
    return torch.tensor(values, dtype=torch.float64)


def elementwise():
    x = np.concatenate([rand(2, 9, scale=3), [[0, -0.0, 20, -20, 90, -90, 1e-8, -1e-8, 1]]])
    g, u = rand(3, 7), rand(3, 7)
    case("silu", "silu", {"x": tensor(x)}, {"y": tensor(F.silu(t64(x)))})
    case("gelu", "tanh", {"x": tensor(x)}, {"y": tensor(F.gelu(t64(x), approximate="tanh"))},
         kind="tanh")
    case("gelu", "erf", {"x": tensor(x)}, {"y": tensor(F.gelu(t64(x)))}, kind="erf")
    case("add", "add", {"a": tensor(g), "b": tensor(u)}, {"y": tensor(g + u)})
    case("mul", "mul", {"a": tensor(g), "b": tensor(u)}, {"y": tensor(g * u)})
    case("swiglu", "swiglu", {"gate": tensor(g), "up": tensor(u)},
         {"y": tensor(F.silu(t64(g)) * t64(u))})
    x = rand(4, 11, scale=4)
    case("softmax", "softmax", {"x": tensor(x)}, {"y": tensor(F.softmax(t64(x), -1))})


def norms():
    x, w, b = rand(3, 13), rand(13), rand(13)
    eps = float(np.float32(1e-5))
    case("rmsnorm", "rmsnorm", {"x": tensor(x), "weight": tensor(w)},
         {"y": tensor(F.rms_norm(t64(x), (13,), t64(w), eps))}, eps=1e-5)
    case("layernorm", "bias", {"x": tensor(x), "weight": tensor(w), "bias": tensor(b)},
         {"y": tensor(F.layer_norm(t64(x), (13,), t64(w), t64(b), eps))}, eps=1e-5)
    case("layernorm", "no_bias", {"x": tensor(x), "weight": tensor(w)},
         {"y": tensor(F.layer_norm(t64(x), (13,), t64(w), None, eps))}, eps=1e-5)


def matmuls():
    x, w, b, r = rand(3, 10), rand(7, 10), rand(7), rand(3, 7)
    case("matmul", "plain", {"x": tensor(x), "w": tensor(w)}, {"y": tensor(F.linear(t64(x), t64(w)))},
         order="out_in")
    case("matmul", "bias_residual",
         {"x": tensor(x), "w": tensor(w), "bias": tensor(b), "residual": tensor(r)},
         {"y": tensor(F.linear(t64(x), t64(w), t64(b)) + t64(r))}, order="out_in")
    case("matmul", "in_out", {"x": tensor(x), "w": tensor(w.T)}, {"y": tensor(t64(x) @ t64(w).T)},
         order="in_out")
    for dtype in ("f16", "bf16"):
        stored, values = bits(w, dtype)
        case("matmul", dtype, {"x": tensor(x), "w": stored}, {"y": tensor(F.linear(t64(x), values))},
             order="out_in")
    for kind in BLOCK_TYPES:
        k = 256 if kind.endswith("K") else 64
        stored, values = random_blocks(kind, 2, k)
        x = rand(2, k, digits=2)
        case("matmul", kind.lower(), {"x": tensor(x), "w": stored},
             {"y": tensor(F.linear(t64(x), t64(values)))}, order="out_in")
    x, w, b, r = rand(3, 10), rand(7, 10), rand(7), rand(3, 7)
    case("linear_residual", "exact",
         {"x": tensor(x), "w": tensor(w), "bias": tensor(b), "residual": tensor(r)},
         {"y": tensor(F.linear(t64(x), t64(w), t64(b)) + t64(r))})
    n, w2 = rand(10), rand(4, 10)
    eps = float(np.float32(1e-5))
    normed = F.rms_norm(t64(x), (10,), t64(n), eps)
    case("norm_linear_group", "two",
         {"x": tensor(x), "norm_weight": tensor(n), "w0": tensor(w), "w1": tensor(w2),
          "bias0": tensor(b)},
         {"y0": tensor(F.linear(normed, t64(w), t64(b))), "y1": tensor(F.linear(normed, t64(w2)))},
         eps=1e-5)
    u = rand(7, 10)
    case("norm_gate_up_swiglu", "exact",
         {"x": tensor(x), "norm_weight": tensor(n), "gate": tensor(w), "up": tensor(u)},
         {"y": tensor(F.silu(F.linear(normed, t64(w))) * F.linear(normed, t64(u)))}, eps=1e-5)
    g, u = rand(3, 10), rand(3, 10)
    case("matmul_residual_swiglu_a", "in_out",
         {"g": tensor(g), "u": tensor(u), "w": tensor(w.T), "residual": tensor(r)},
         {"y": tensor((F.silu(t64(g)) * t64(u)) @ t64(w).T + t64(r))}, order="in_out")


def int4():
    k, n, group = 9, 5, 7
    nibbles = RNG.integers(0, 16, k * n)
    n_groups = math.ceil(k * n / group)
    scales, zeros = rand(n_groups, scale=0.1), RNG.integers(5, 10, n_groups).astype(np.float64)
    weights = (nibbles - zeros[np.arange(k * n) // group]) * scales[np.arange(k * n) // group]
    padded = np.concatenate([nibbles, np.zeros(-k * n % 8, dtype=nibbles.dtype)]).reshape(-1, 8)
    words = (padded.astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))).sum(1)
    x = rand(3, k)
    case("matmul_int4", "flat",
         {"x": tensor(x), "scales": tensor(scales), "zeros": tensor(zeros),
          "w": {"shape": [1, padded.size], "dtype": "int4_flat",
                "hex": words.astype("<u4").tobytes().hex()}},
         {"y": tensor(x @ weights.reshape(k, n))}, group_size=group)


def attention_of(q, k, v, position_offset, causal=True, window=0, soft_cap=0.0, scale=None):
    t, n_heads, d = q.shape
    s, n_kv_heads = k.shape[:2]
    scale = 1 / math.sqrt(d) if scale is None else scale
    position = position_offset + torch.arange(t)[:, None]
    key = torch.arange(s)[None, :]
    mask = torch.ones(t, s, dtype=torch.bool)
    if causal:
        mask &= key <= position
    if window:
        mask &= key > position - window
    heads = lambda x: t64(x).transpose(0, 1)[None]
    qh = heads(q)
    kh = heads(k).repeat_interleave(n_heads // n_kv_heads, 1)
    vh = heads(v).repeat_interleave(n_heads // n_kv_heads, 1)
    if soft_cap:
        scores = soft_cap * torch.tanh(qh @ kh.transpose(-1, -2) * scale / soft_cap)
        result = F.softmax(scores.masked_fill(~mask, -math.inf), -1) @ vh
    else:
        result = F.scaled_dot_product_attention(qh, kh, vh, attn_mask=mask, scale=scale)
    return result[0].transpose(0, 1).numpy()


def attention():
    for name, hq, hkv, t, s, options in [
            ("mha_causal", 2, 2, 5, 5, {}), ("gqa_causal", 6, 2, 3, 7, {}),
            ("full", 3, 1, 3, 6, {"causal": False}), ("window", 4, 1, 4, 9, {"window": 3}),
            ("soft_cap", 2, 1, 3, 6, {"soft_cap": 1.5}),
            ("window_soft_cap", 2, 1, 4, 8, {"window": 2, "soft_cap": 2.0})]:
        q, k, v = rand(t, hq, 6), rand(s, hkv, 6), rand(s, hkv, 6)
        y = attention_of(q, k, v, s - t, **options)
        case("attention", name, {"q": tensor(q), "k": tensor(k), "v": tensor(v)}, {"y": tensor(y)},
             position_offset=s - t, scale=1 / math.sqrt(6), causal=options.get("causal", True),
             window=options.get("window", 0), soft_cap=options.get("soft_cap", 0.0))


def paged_attention():
    page, hkv, hq, d = 4, 2, 4, 6
    tables = np.array([[5, 2, 1], [5, 3, 0]], dtype=np.uint32)  # both begin with page 5
    k_pages, v_pages = rand(6, hkv, page, d), rand(6, hkv, page, d)
    tokens = [(0, 9), (1, 3), (1, 4), (1, 5)]
    q = rand(len(tokens), hq, d)
    for name, window, soft_cap in [("ragged", 0, 0.0), ("window_soft_cap", 3, 2.0)]:
        y = np.zeros_like(q)
        for i, (sequence, position) in enumerate(tokens):
            gather = lambda pages: np.concatenate(
                [pages[p].transpose(1, 0, 2) for p in tables[sequence]])[:position + 1]
            y[i:i + 1] = attention_of(q[i:i + 1], gather(k_pages), gather(v_pages), position,
                                      window=window, soft_cap=soft_cap)
        case("paged_attention", name,
             {"q": tensor(q), "k_pages": tensor(k_pages), "v_pages": tensor(v_pages),
              "positions": tensor([p for _, p in tokens], "u32"),
              "sequences": tensor([s for s, _ in tokens], "i32"),
              "block_tables": tensor(tables, "u32")},
             {"y": tensor(y)}, scale=1 / math.sqrt(d), window=window, soft_cap=soft_cap)


def frequencies(rotary, base, kind="none", factor=1.0, low=1.0, high=4.0, context=8192):
    """Llama 3.1's scaling, from its published definition by wavelengths."""
    result = []
    for i in range(rotary // 2):
        f = base ** (-2 * i / rotary)
        wavelength = 2 * math.pi / f
        if kind == "linear":
            f /= factor
        elif kind == "llama3" and wavelength > context / low:
            f /= factor
        elif kind == "llama3" and wavelength >= context / high:
            smooth = (context / wavelength - low) / (high - low)
            f = (1 - smooth) * f / factor + smooth * f
        result.append(f)
    return result


def rope():
    specs = [dict(rotary=64, base=10000.0), dict(rotary=20, base=1e6),
             dict(rotary=32, base=10000.0, kind="linear", factor=4.0),
             dict(rotary=128, base=500000.0, kind="llama3", factor=8.0, low=1.0, high=4.0,
                  context=8192),
             dict(rotary=64, base=500000.0, kind="llama3", factor=32.0, low=1.0, high=4.0,
                  context=8192)]
    rotation = []
    for spec in specs:
        f = frequencies(**spec)
        angles = np.outer([0, 1, 7, 8191], f)
        rotation.append({"spec": {"kind": "none", "factor": 1.0, "low": 1.0, "high": 4.0,
                                  "context": 8192, **spec},
                         "frequencies": f, "positions": [0, 1, 7, 8191],
                         "rotation": np.stack([np.cos(angles), np.sin(angles)], -1).ravel().tolist()})
    t, hq, hkv, d, r = 3, 2, 1, 10, 6
    q, k = rand(t, hq, d), rand(t, hkv, d)
    angles = np.outer([0, 5, 1000], frequencies(r, 10000.0))
    table = np.stack([np.cos(angles), np.sin(angles)], -1)
    for pairing in ("interleaved", "half_split"):
        out = []
        for x in (q, k):
            turned, rest = t64(x[..., :r]), t64(x[..., r:])
            if pairing == "interleaved":
                z = torch.view_as_complex(turned.reshape(*turned.shape[:-1], r // 2, 2))
                z = z * torch.polar(torch.ones(1, dtype=torch.float64), t64(angles))[:, None, :]
                turned = torch.view_as_real(z).reshape(turned.shape)
            else:
                cos = torch.cat([t64(table[..., 0])] * 2, -1)[:, None]
                sin = torch.cat([t64(table[..., 1])] * 2, -1)[:, None]
                half = torch.cat([-turned[..., r // 2:], turned[..., :r // 2]], -1)
                turned = turned * cos + half * sin
            out.append(torch.cat([turned, rest], -1))
        case("rope", pairing, {"q": tensor(q), "k": tensor(k), "rotation": tensor(table)},
             {"q": tensor(out[0]), "k": tensor(out[1])}, pairing=pairing)
    return rotation


def selection():
    x = rand(4, 33)
    values, ids = torch.topk(t64(x), 5)
    case("argmax", "argmax", {"x": tensor(x)}, {"ids": tensor(t64(x).argmax(-1), "u32")})
    case("top_k", "top5", {"x": tensor(x)}, {"values": tensor(values), "ids": tensor(ids, "u32")})
    table, rows = rand(6, 5), np.array([5, 0, 3, 3])
    case("gather_rows", "f32", {"table": tensor(table), "ids": tensor(rows, "u32")},
         {"y": tensor(F.embedding(torch.tensor(rows), t64(table)))})


def quantised_rows():
    x = rand(3, 64).astype(np.float32)
    x[1, :32] = 0
    x[2, :32] = np.round(x[2, :32] * 20) / 2  # with a largest value of 127: halves are ties
    x[2, 0] = 127
    blocks = x.reshape(3, 2, 32)
    largest = np.abs(blocks).max(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    q = np.rint(blocks * inverse[..., None]).astype(np.int8)
    scale = largest / np.float32(127)
    total = scale * q.astype(np.int32).sum(-1).astype(np.float32)
    raw = b"".join(scale[i].astype("<f4").tobytes() + total[i].astype("<f4").tobytes() +
                   q[i].tobytes() for i in range(3))
    case("quantize_rows", "q8", {"x": tensor(x.astype(np.float64))},
         {"y": {"shape": [3, 64], "dtype": "q8", "hex": raw.hex()}})


def formats():
    blocks = []
    for kind in BLOCK_TYPES:
        stored, values = random_blocks(kind, 1, 512 if kind.endswith("K") else 128)
        blocks.append({"type": kind.lower(), "hex": stored["hex"], "values": values[0].tolist()})
    x = np.concatenate([rand(1, 192)[0], rand(1, 64, scale=0.01, digits=5)[0],
                        np.round(RNG.uniform(-5, 0, 32), 2)]).astype(np.float32)
    encoders = []
    for kind in ("Q4_0", "Q4_1", "Q5_0", "Q8_0"):
        qtype = gguf.GGMLQuantizationType[kind]
        decoded = gguf.quants.dequantize(gguf.quants.quantize(x, qtype), qtype)
        errors = np.sqrt(((decoded.astype(np.float64) - x) ** 2).reshape(-1, 32).mean(1))
        encoders.append({"type": kind.lower(), "rms_errors": errors.tolist()})
    return {"blocks": blocks, "encoder_input": x.astype(np.float64).tolist(), "encoders": encoders}


def write(name, value):
    text = json.dumps(value, separators=(",", ":"))
    (OUT / name).write_text(text + "\n")


def main():
    elementwise()
    norms()
    matmuls()
    int4()
    attention()
    paged_attention()
    rotation = rope()
    selection()
    quantised_rows()
    OUT.mkdir(parents=True, exist_ok=True)
    write("ops.json", CASES)
    write("rotation.json", rotation)
    write("formats.json", formats())
    if len(sys.argv) > 1:
        files = json.loads(pathlib.Path(sys.argv[1]).read_text())
        write("model_blocks.json",
              [{"tensor": tensor_name, "type": entry["type"].lower(),
                "hex": entry["first_block_raw_hex"], "values": entry["first64"]}
               for entries in files.values() for tensor_name, entry in entries.items()])


if __name__ == "__main__":
    main()
