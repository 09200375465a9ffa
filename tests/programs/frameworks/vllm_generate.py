"""Generates tokens with vLLM and a small model of random weights. The last line of its output is JSON: what vLLM and PyTorch say
they hold.

Usage: vllm_generate.py FOLDER    (an existing one, for the model)
"""

import json
import os
import pathlib
import sys

# The engine in this process, so that its tensors can be asked; and only kernels that need no compiler of CUDA.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")

import torch  # noqa: E402
from vllm import LLM, SamplingParams  # noqa: E402

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 1024, "max_position_embeddings": 2048,
         "rms_norm_eps": 1e-5, "torch_dtype": "float16", "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu"}


def size(tensors):
    return sum({tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "config.json").write_text(json.dumps(MODEL))
    llm = LLM(model=str(folder), skip_tokenizer_init=True, load_format="dummy", enforce_eager=True, gpu_memory_utilization=0.5,
              max_model_len=512)
    output, = llm.generate([{"prompt_token_ids": [1, 5, 6, 7]}], SamplingParams(max_tokens=4, detokenize=False), use_tqdm=False)
    runner = llm.llm_engine.model_executor.driver_worker.worker.model_runner
    print(json.dumps({
        "generated": len(output.outputs[0].token_ids),
        "kv_cache": size(runner.kv_caches),
        "parameters": size(runner.get_model().parameters()),
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }), flush=True)


if __name__ == "__main__":
    main()
