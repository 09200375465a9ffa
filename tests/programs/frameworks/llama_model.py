"""Writes a small language model of the architecture "llama", whose weights are all equal, in the format GGUF.

Usage: llama_model.py FILE
Prints the bytes of its weights as JSON.
"""

import json
import struct
import sys

LAYERS, WIDTH, HEADS, INNER, VOCABULARY, CONTEXT = 4, 1024, 8, 2048, 1024, 2048
ALIGNMENT = 32
UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, data):
    if kind == STRING:
        return text(data)
    return struct.pack({UINT32: "<I", FLOAT32: "<f", INT32: "<i"}[kind], data)


def entry(name, kind, data):
    if isinstance(data, list):
        body = struct.pack("<IIQ", ARRAY, kind, len(data)) + b"".join(value(kind, item) for item in data)
    else:
        body = struct.pack("<I", kind) + value(kind, data)
    return text(name) + body


def main():
    path = sys.argv[1]
    # Tokens of SentencePiece: three special ones, all bytes, and characters.
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    rest = [chr(0x4E00 + i) for i in range(VOCABULARY - 259)]
    tokens = ["<unk>", "<s>", "</s>", *bytes_, *rest]
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(rest)
    entries = [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, "equal weights"),
        entry("general.file_type", UINT32, 0),
        entry("llama.vocab_size", UINT32, VOCABULARY),
        entry("llama.context_length", UINT32, CONTEXT),
        entry("llama.embedding_length", UINT32, WIDTH),
        entry("llama.block_count", UINT32, LAYERS),
        entry("llama.feed_forward_length", UINT32, INNER),
        entry("llama.attention.head_count", UINT32, HEADS),
        entry("llama.attention.head_count_kv", UINT32, HEADS),
        entry("llama.rope.dimension_count", UINT32, WIDTH // HEADS),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("tokenizer.ggml.model", STRING, "llama"),
        entry("tokenizer.ggml.tokens", STRING, tokens),
        entry("tokenizer.ggml.scores", FLOAT32, [0.0] * VOCABULARY),
        entry("tokenizer.ggml.token_type", INT32, kinds),
        entry("tokenizer.ggml.bos_token_id", UINT32, 1),
        entry("tokenizer.ggml.eos_token_id", UINT32, 2),
    ]
    tensors = [("token_embd.weight", (WIDTH, VOCABULARY)), ("output_norm.weight", (WIDTH,)),
               ("output.weight", (WIDTH, VOCABULARY))]
    for i in range(LAYERS):
        tensors += [(f"blk.{i}.{name}.weight", shape) for name, shape in (
            ("attn_norm", (WIDTH,)), ("attn_q", (WIDTH, WIDTH)), ("attn_k", (WIDTH, WIDTH)), ("attn_v", (WIDTH, WIDTH)),
            ("attn_output", (WIDTH, WIDTH)), ("ffn_norm", (WIDTH,)), ("ffn_gate", (WIDTH, INNER)), ("ffn_up", (WIDTH, INNER)),
            ("ffn_down", (INNER, WIDTH)))]
    header, offset, sizes = b"", 0, []
    for name, shape in tensors:
        header += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, offset)
        count = 1
        for length in shape:
            count *= length
        sizes.append(count)
        offset += (count * 4 + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + header)
        file.write(b"\0" * (-file.tell() % ALIGNMENT))
        for count in sizes:
            file.write(struct.pack("<f", 0.01) * count)
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
    print(json.dumps({name: count * 4 for (name, _), count in zip(tensors, sizes)}))


if __name__ == "__main__":
    main()
