// analysis/whatif/layer_runs.h
//
// The layers of a model, one run for each time that a layer computes in a forward pass. A stack
// does not show which of several equal layers allocated; but a layer that runs again begins with
// the same request again.
//
//   births   embed | norm qkv attn add | norm qkv attn add | head
//   runs            ------ Block ------ ------ Block ------
//
// Thread safety: pure functions. Cost: one walk over the births for each kind of layer.

#ifndef GMT_ANALYSIS_WHATIF_LAYER_RUNS_H_
#define GMT_ANALYSIS_WHATIF_LAYER_RUNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/loop/phase_spans.h"

namespace gmt::analysis {

struct LayerRun {
  Step begin = 0, end = 0;         // its first and its last birth
  std::vector<RowId> activations;  // born in it, in order
  bool is_last_of_pass = true;
};

// Equal layers: modules with the same path.
struct Layers {
  std::string path;  // "GPT > Block"
  std::string
      caller;  // the program's line that calls them, "GPT.forward (gpt.py:30)"; "" if unknown
  std::vector<LayerRun> runs;
  size_t most_in_a_pass = 0;  // how many run in one forward pass

  // The last part of the path: "Block", or "forward (gpt.py:45)".
  std::string name() const {
    const size_t last = path.rfind(" > ");
    return last == std::string::npos ? path : path.substr(last + 3);
  }
};

// Returns the kinds of layers of which one forward pass runs several, those with most activations
// first, at most `most`. Outer kinds come with their inner ones: "GPT > Block" and
// "GPT > Block > Linear".
std::vector<Layers> FindLayers(const Examination& examination, const Categories& categories,
                               const PhaseSpans& spans, int32_t device, size_t most);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_LAYER_RUNS_H_
