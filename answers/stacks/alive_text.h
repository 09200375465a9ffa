// answers/stacks/alive_text.h
//
// Why memory is alive (analysis/examination/alive.h), as text and as JSON.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_STACKS_ALIVE_TEXT_H_
#define GMT_ANSWERS_STACKS_ALIVE_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/examination/alive.h"

namespace gmt::answers {

// Returns "saved for backward by SoftmaxBackward0 (model.py:31) and 2 other nodes", "a parameter"
// or "only the program holds it", or "" if nothing is known.
std::string AliveText(const analysis::Alive& alive);

// Returns the text for several reasons with the bytes of each: "a parameter: 4.00 MiB in 3 blocks;
// a gradient: ...". Returns "" if PyTorch reported nothing, because reasons derived from categories
// are shown with the categories.
std::string AliveText(const std::vector<analysis::Alive>& all);

// Returns a line for each node of the autograd graph that saved the memory, "1.25 GiB  4
// SoftmaxBackward0 (model.py:31)", or nothing if fewer than two did: AliveText names one.
std::vector<std::string> SaverLines(const std::vector<analysis::Alive>& all);

// Returns {"reason", "observed", "nodes" [{"name", "frames", "bytes", "count"}], "bytes", "count",
// "others" []} of the reason with the most bytes, or null if there is none.
nlohmann::ordered_json AliveJson(const std::vector<analysis::Alive>& all);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_STACKS_ALIVE_TEXT_H_
