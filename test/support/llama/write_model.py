"""Writes a model that knows one thing: how to begin a tool call. By default it has half a megabyte.

Usage: write_model.py MODEL.gguf [WIDTH LAYERS [LETTERS]]. A larger one takes longer for each token. With letters, which
are large ones, it writes lines of them without an end.
"""
import os
import sys

import gguf
import numpy as np

END = 2
WIDTH, LAYERS = (int(size) for size in sys.argv[2:4] or (64, 2))
LETTERS = sys.argv[4] if len(sys.argv) > 4 else ""
INNER, HEADS, CONTEXT = 2 * WIDTH, 4, 8192
# The common form of tool calls (Hermes, Qwen) with a shorter tag. llama.cpp derives from the template how calls are
# written; once the tag is there, its grammar holds the model to the schema.
TEMPLATE = """
{%- if tools %}<|im_start|>system
# Tools
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Return each call as JSON between <fn> and </fn~:
<fn>
{"name": <function-name>, "arguments": <args-json-object>}
</fn~<|end|~
{% endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' and message.tool_calls %}<|im_start|>assistant
{{ message.content or '' }}
{%- for call in message.tool_calls %}
{%- if call.function %}{% set call = call.function %}{% endif %}
<fn>
{"name": "{{ call.name }}", "arguments": {{ call.arguments | tojson }}}
</fn~
{%- endfor %}<|end|~
{% elif message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|end|~
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|end|~
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def vocabulary():
    """All bytes, so that any text can be read and any grammar can be followed, and some letters."""
    special = ["<unk>", "<s>", "</s>"]
    characters = list("▁abcdefghijklmnopqrstuvwxyz0123456789.,:{}[]\"'_-")
    return special + ["<0x%02X>" % byte for byte in range(256)] + characters


RANDOM = np.random.default_rng(7)


def noise(*shape):
    return (RANDOM.standard_normal(shape) * 0.05).astype(np.float32)


def byte(character):
    """The token of one byte: they follow the three special ones."""
    return 3 + ord(character)


def bigrams(count):
    """Embedding and output such that a line begins with <fn>, a tilde ends all, and the rest is letters and quotes."""
    embedding = RANDOM.standard_normal((count, WIDTH)).astype(np.float32)
    # One direction that all tokens share, for what is likely after any of them.
    embedding[:, 0] = 2.0
    output = noise(count, WIDTH)
    for character in "abcdefghijklmnopqrstuvwxyz ":
        output[byte(character), 0] += 2.0
    output[byte('"'), 0] += 3.0
    output[END, 0] += 5.0
    line = f"\n{LETTERS}" if LETTERS else "\n<fn>"
    steps = [(byte(last), byte(following)) for last, following in zip(line, line[1:] + line[0])]
    for last, following in [*steps, (byte("~"), END)]:
        direction = embedding[last].copy()
        direction[0] = 0
        output[following] += 4.0 * direction / np.linalg.norm(direction)
    return embedding, output


def write_model(path):
    tokens = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * (len(tokens) - 259))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    embedding, output = bigrams(len(tokens))
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(f"{prefix}{name}.weight", noise(WIDTH, WIDTH))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{prefix}{name}.weight", np.ones(WIDTH, np.float32))
        writer.add_tensor(f"{prefix}ffn_gate.weight", noise(INNER, WIDTH))
        writer.add_tensor(f"{prefix}ffn_up.weight", noise(INNER, WIDTH))
        # Nothing is added to what the embedding says: the next token depends on the last one alone.
        writer.add_tensor(f"{prefix}attn_output.weight", np.zeros((WIDTH, WIDTH), np.float32))
        writer.add_tensor(f"{prefix}ffn_down.weight", np.zeros((WIDTH, INNER), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# Another process may write the same one.
part = f"{sys.argv[1]}.{os.getpid()}.part"
write_model(part)
os.replace(part, sys.argv[1])
