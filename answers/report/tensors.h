// answers/report/tensors.h
//
// What types and shapes of tensors show (analysis/categories/tensor_facts.h), in a report.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_TENSORS_H_
#define GMT_ANSWERS_REPORT_TENSORS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/categories/tensor_facts.h"

namespace gmt::answers {

// Returns up to a few lines, or "" if nothing is known of the device's tensors.
std::string TensorFactsText(const std::vector<analysis::TensorFacts>& all, int32_t device);

// Returns "SoftmaxBackward0 (model.py:31)", "model.py:31", or "" if neither is known.
std::string OriginOf(const analysis::ShapedMemory& memory);

// Returns {"batch", "master_weights", "mixed_activations"}, each null if there is none. Returns
// null if no tensor has a type and a shape.
nlohmann::ordered_json TensorFactsJson(const std::vector<analysis::TensorFacts>& all,
                                       int32_t device);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_TENSORS_H_
