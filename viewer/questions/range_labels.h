// viewer/questions/range_labels.h
//
// RangeLabels: which modules, functions or lines memory passes through, as rows of a table of a
// range (range_table.h). Labels are described once per frame, and stacks once per grouping.
//
//   module     "libtorch_cuda.so"; of Python code the package, "torch", or the file, "train.py"
//   function   "Block.forward (train_gpt.py)", "at::native::linear"
//   line       "train_gpt.py:45"
//
// Ownership: the frame table must outlive it.
// Thread safety: one thread at a time.

#ifndef GMT_VIEWER_QUESTIONS_RANGE_LABELS_H_
#define GMT_VIEWER_QUESTIONS_RANGE_LABELS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "viewer/questions/frame_table.h"

namespace gmt::viewer {

// Returns "" if it is not known.
std::string ModuleOf(const analysis::FrameText& frame);

class RangeLabels {
 public:
  static constexpr uint32_t kUnknown = 0;

  // REQUIRES: `by` is kModule, kFunction or kLine.
  // `folded`: without frames that are noise, as in flame graphs (queries.h).
  RangeLabels(FrameTable& frames, RangeQuery::By by, bool folded)
      : frames_(frames), by_(by), folded_(folded) {}

  struct Labels {
    uint32_t own = kUnknown;    // of the program's own frame
    std::vector<uint32_t> all;  // of all frames, each once; kUnknown only if it is `own`
  };
  // `forward_stack`: that of the forward call which caused memory of a backward pass; 0 for other
  // memory. Valid until the next call.
  const Labels& Of(uint32_t stack, uint32_t forward_stack);
  // Returns the label of one frame, kUnknown if it has none.
  uint32_t LabelOf(const analysis::FrameText& frame);
  uint32_t count() const { return static_cast<uint32_t>(texts_.size()); }
  const std::string& TextOf(uint32_t label) const { return texts_[label]; }  // "" for kUnknown

 private:
  FrameTable& frames_;
  const RangeQuery::By by_;
  const bool folded_;
  std::vector<std::string> texts_{""};  // by label
  absl::flat_hash_map<std::string, uint32_t> by_text_;
  absl::flat_hash_map<const analysis::FrameText*, uint32_t> by_frame_;
  absl::node_hash_map<std::pair<uint32_t, uint32_t>, Labels> by_stacks_;
};

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_QUESTIONS_RANGE_LABELS_H_
