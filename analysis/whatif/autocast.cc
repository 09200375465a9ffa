#include "analysis/whatif/autocast.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "format/event.h"

namespace gmt::analysis {
namespace {

bool StartsWithOneOf(std::string_view name, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

bool IsComputedInFull(std::string_view node) {
  return StartsWithOneOf(node, {"NativeLayerNorm",
                                "NativeGroupNorm",
                                "Softmax",
                                "LogSoftmax",
                                "NllLoss",
                                "Pow",
                                "Exp",
                                "Log",
                                "LinalgVectorNorm",
                                "Norm",
                                "Cumsum",
                                "Cumprod",
                                "Prod",
                                "Mse",
                                "SmoothL1",
                                "Huber",
                                "KlDiv",
                                "BinaryCrossEntropy",
                                "Cosine",
                                "Rsqrt",
                                "Reciprocal",
                                "Renorm"});
}

}  // namespace

// Both lists, here and above, follow PyTorch's list of CUDA operators
// (aten/src/ATen/autocast_mode.h). The results of other operators have the type of their inputs.
bool IsComputedInHalf(std::string_view node) {
  return StartsWithOneOf(node, {"Addmm", "Mm", "Bmm", "Baddbmm", "Mv", "Linear", "Convolution",
                                "CudnnConv", "CudnnRnn", "ScaledDot", "Prelu", "_ThnnFused"});
}

bool IsLogSoftmax(std::string_view node) { return node.starts_with("LogSoftmax"); }

absl::flat_hash_map<RowId, Savers> FindSavers(const Trace& trace,
                                              const format::Definitions& definitions) {
  absl::flat_hash_map<RowId, Savers> savers;
  for (const RoleChange& role : trace.role_changes) {
    if ((role.roles & format::kRoleSaved) == 0 || role.node == 0) continue;
    const std::string_view node = definitions.string(role.node);
    Savers& found = savers[role.row];
    found.half |= IsComputedInHalf(node);
    found.full |= IsComputedInFull(node);
    found.is_softmax |= StartsWithOneOf(node, {"Softmax", "LogSoftmax"});
    found.is_log_softmax |= IsLogSoftmax(node);
    found.is_loss |= node.starts_with("NllLoss");
  }
  return savers;
}

}  // namespace gmt::analysis
