#include "analysis/advise/catalog.h"

#include <algorithm>
#include <string>

namespace gmt::analysis {
namespace {

struct Entry {
  std::string_view name, what, cost, why;
  Confidence confidence = Confidence::kMedium;
  bool is_of_reserved = false;
};

constexpr std::string_view kNoCost = "none";

constexpr Entry kCatalog[] = {
    {"fix_leak", "fix a leak", kNoCost, "what it keeps after each step is not needed"},
    {"set_to_none", "optimizer.zero_grad(set_to_none=True) directly after optimizer.step()",
     kNoCost, "gradients then do not live through the next forward pass", Confidence::kHigh},
    {"fused_optimizer", "fused=True for the optimizer", kNoCost,
     "the optimizer's step then allocates no temporary memory", Confidence::kHigh},
    {"single_tensor_optimizer", "foreach=False for the optimizer", "a slower step of the optimizer",
     "the step then has temporary memory for one parameter at a time"},
    {"allocator_settings", "PYTORCH_CUDA_ALLOC_CONF", kNoCost, "", Confidence::kHigh, true},
    {"half_precision",
     "with torch.autocast(\"cuda\", dtype=torch.bfloat16): around the forward pass and the loss",
     "less precision; faster on GPUs since Ampere",
     "half of what products save, less copies of the weights"},
    {"attention", "torch.nn.functional.scaled_dot_product_attention(q, k, v)", "none; faster",
     "no tensor then has the square of the sequence", Confidence::kLow},
    {"micro_batch",
     "two micro-batches of half the batch: (loss / 2).backward() for each, then one "
     "optimizer.step()",
     "smaller kernels: somewhat slower",
     "half of activations, temporaries and inputs; gradients live through both"},
    {"checkpoint", "torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)",
     "20 to 33 % more computation", ""},
    {"eight_bit_optimizer", "an 8-bit optimizer of bitsandbytes",
     "another library; slightly different training", "three quarters of the optimizer's state"},
    {"shard", "torch.distributed.fsdp.fully_shard(layer) for each layer", "", "", Confidence::kLow},
    {"offload_state", "torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW)",
     "2 to 5 times slower steps of the optimizer, and host memory",
     "the optimizer's state is in host memory"},
    {"in_place", "operators that write into their input: inplace=True, add_(), mul_()",
     "none; autograd refuses it if the input is needed",
     "inputs that are freed directly after they were read", Confidence::kLow},
    {"empty_cache", "torch.cuda.empty_cache()", "driver calls that wait for the GPU", "",
     Confidence::kLow, true},
};

}  // namespace

Advice NewAdvice(std::string_view name) {
  const Entry& entry = *std::find_if(std::begin(kCatalog), std::end(kCatalog),
                                     [&](const Entry& one) { return one.name == name; });
  Advice advice;
  advice.name = entry.name;
  advice.what = entry.what;
  advice.cost = entry.cost;
  advice.why = entry.why;
  advice.confidence = entry.confidence;
  advice.is_of_reserved = entry.is_of_reserved;
  return advice;
}

}  // namespace gmt::analysis
