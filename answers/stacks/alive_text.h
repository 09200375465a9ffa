// answers/stacks/alive_text.h
//
// Why memory is alive (analysis/examination/alive.h), in words and in JSON.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_STACKS_ALIVE_TEXT_H_
#define GMT_ANSWERS_STACKS_ALIVE_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/examination/alive.h"

namespace gmt::answers {

// "saved for backward by SoftmaxBackward0 (model.py:31) and 2 other nodes", "a parameter",
// "only the program holds it"; "" where nothing is known.
std::string AliveText(const analysis::Alive& alive);

// Of several, with the bytes of each: "a parameter: 4.00 MiB in 3 blocks; a gradient: ...". "" if PyTorch
// said nothing: what follows from categories stands beside them already.
std::string AliveText(const std::vector<analysis::Alive>& all);

// {"reason", "observed", "nodes" [{"name", "frames", "bytes", "count"}], "bytes", "count", "others" []}
// of most of the bytes; null without any.
nlohmann::ordered_json AliveJson(const std::vector<analysis::Alive>& all);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_STACKS_ALIVE_TEXT_H_
