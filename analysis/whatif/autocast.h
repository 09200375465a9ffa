// analysis/whatif/autocast.h
//
// What autocast would do with saved tensors: PyTorch's torch.autocast computes some operators in
// half precision and others in float32, and autograd's nodes say which operator saved a tensor.

#ifndef GMT_ANALYSIS_WHATIF_AUTOCAST_H_
#define GMT_ANALYSIS_WHATIF_AUTOCAST_H_

#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::analysis {

// The nodes that saved a tensor, by what autocast does with their operators.
struct Savers {
  bool half = false, full = false;  // computed in half precision, in float32
  bool is_softmax = false;
  bool is_log_softmax = false, is_loss = false;  // both: of cross_entropy()
};

// Whether autocast computes the operator of a node, such as "MmBackward0", in half precision. Then
// the gradient of its input is in half precision too.
bool IsComputedInHalf(std::string_view node);
bool IsLogSoftmax(std::string_view node);

// Returns the savers of each row that a node saved. Empty if roles were not recorded.
absl::flat_hash_map<RowId, Savers> FindSavers(const Trace& trace,
                                              const format::Definitions& definitions);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_AUTOCAST_H_
