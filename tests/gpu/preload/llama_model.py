"""A model for llama.cpp with weights by chance, and a vocabulary of bytes."""

import gguf
import numpy

WORDS = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
KINDS = ([gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256)


def make(path, layers, width, context, seed=11):
    """Returns the bytes of its tensors, in half precision but for the norms."""
    writer = gguf.GGUFWriter(path, "llama")
    heads, inner = width // 128, 4 * width
    writer.add_context_length(context)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(128)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(WORDS)
    writer.add_token_scores([0.0] * len(WORDS))
    writer.add_token_types(KINDS)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    generator = numpy.random.default_rng(seed)
    # A value drawn for each weight would take 8 s a GiB: each matrix is another piece of one row.
    row = generator.standard_normal(2 * inner * width, dtype=numpy.float32)
    scaled = {n: (row / n**0.5).astype(numpy.float16) for n in (width, inner)}
    total = 0

    def add(name, *shape):
        nonlocal total
        if len(shape) == 1:
            tensor = numpy.ones(shape, dtype=numpy.float32)
        else:
            values = shape[0] * shape[1]
            begin = generator.integers(row.size - values)
            tensor = scaled[shape[1]][begin:begin + values].reshape(shape)
        total += tensor.nbytes
        writer.add_tensor(name, tensor)

    add("token_embd.weight", len(WORDS), width)
    for i in range(layers):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{i}.{part}.weight", width, width)
        add(f"blk.{i}.ffn_gate.weight", inner, width)
        add(f"blk.{i}.ffn_up.weight", inner, width)
        add(f"blk.{i}.ffn_down.weight", width, inner)
        add(f"blk.{i}.attn_norm.weight", width)
        add(f"blk.{i}.ffn_norm.weight", width)
    add("output_norm.weight", width)
    add("output.weight", len(WORDS), width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return total
