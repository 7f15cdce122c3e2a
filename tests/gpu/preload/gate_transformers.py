"""transformers' generate, as it comes, idle between requests. The weights are random."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from gate_requests import serve

torch.manual_seed(1)
model = LlamaForCausalLM(
    LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=12,
                num_attention_heads=16, num_key_value_heads=16, max_position_embeddings=512)
).to(torch.bfloat16).cuda().eval()
question = torch.arange(1, 33, device="cuda")[None]


def answer():
    with torch.no_grad():
        tokens = model.generate(question, attention_mask=torch.ones_like(question),
                                max_new_tokens=16, do_sample=False, pad_token_id=0)
    return tokens.cpu().tolist()


serve(answer, f"{sum(p.numel() for p in model.parameters()) * 2 >> 20} MiB of weights")
