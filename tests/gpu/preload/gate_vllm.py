"""vLLM's engine in this process, idle between requests.

With GATE_VLLM=graph it decodes in CUDA graphs. With GATE_VLLM=sleep it uses its own sleep
mode: each odd turn sleeps, each even one wakes and answers. The weights are random, and there
is no tokenizer: nothing is fetched.
"""

import os
import sys

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",  # the engine in this process
    VLLM_USE_FLASHINFER_SAMPLER="0",  # it would compile one
    VLLM_NO_USAGE_STATS="1",
    VLLM_LOGGING_LEVEL=os.environ.get("VLLM_LOGGING_LEVEL", "WARNING"),
    HF_HUB_OFFLINE="1",
)

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from vllm import LLM, SamplingParams

from gate_requests import serve, turns

FOLDER = sys.argv[1]
MODE = os.environ.get("GATE_VLLM", "eager")
CACHE_BYTES = 256 << 20
QUESTIONS = [{"prompt_token_ids": list(range(first, first + 24))} for first in (10, 500, 9000)]


def model():
    """The folder of a model with random weights, and their size."""
    torch.manual_seed(1)
    made = LlamaForCausalLM(
        LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=16,
                    num_attention_heads=8, num_key_value_heads=8, max_position_embeddings=512)
    ).to(torch.bfloat16)
    folder = os.path.join(FOLDER, "model")
    made.save_pretrained(folder)
    return folder, sum(p.numel() for p in made.parameters()) * 2


def engine(folder):
    graphs = {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": [1, 2, 4]}
    return LLM(
        model=folder,
        skip_tokenizer_init=True,
        dtype="bfloat16",
        max_model_len=256,
        max_num_seqs=4,
        max_num_batched_tokens=512,
        gpu_memory_utilization=0.5,
        kv_cache_memory_bytes=CACHE_BYTES,
        enable_prefix_caching=False,  # each answer reads all
        enforce_eager=MODE != "graph",
        enable_sleep_mode=MODE == "sleep",
        **({"compilation_config": graphs} if MODE == "graph" else {}),
    )


def answer(llm):
    """Of each question 16 tokens, and all bits of the chances of the likeliest ones."""
    likeliest = SamplingParams(temperature=0, max_tokens=16, ignore_eos=True, detokenize=False,
                               logprobs=4)
    texts = [text.outputs[0] for text in llm.generate(QUESTIONS, likeliest, use_tqdm=False)]
    return [(list(text.token_ids), [sorted((token, one.logprob) for token, one in place.items())
                                    for place in text.logprobs]) for text in texts]


def sleep_and_wake(llm, what):
    before = answer(llm)
    print(f"ready {what}", flush=True)
    for turn in turns():
        if turn % 2:
            llm.sleep(level=1)
            print(f"turn {turn}: asleep", flush=True)
        else:
            llm.wake_up()
            print(f"turn {turn}: equal {answer(llm) == before}", flush=True)


def main():
    folder, size = model()
    llm = engine(folder)
    what = f"{MODE}: {size >> 20} MiB of weights, {CACHE_BYTES >> 20} MiB of cache"
    if MODE == "sleep":
        sleep_and_wake(llm, what)
    else:
        serve(lambda: answer(llm), what)


if __name__ == "__main__":
    main()
