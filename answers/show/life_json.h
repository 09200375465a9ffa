// answers/show/life_json.h
//
// The life of some memory (analysis/show/life.h) as JSON: bytes and nanoseconds, null for unknown
// values.
//
// Thread safety: one thread at a time (Examination).

#ifndef GMT_ANSWERS_SHOW_LIFE_JSON_H_
#define GMT_ANSWERS_SHOW_LIFE_JSON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/show/life.h"

namespace gmt::answers {

nlohmann::ordered_json LifeJson(const analysis::Examination& examination,
                                const analysis::Life& life);

// Returns [{"id": "stack/7", "bytes", "count", "frames"}], at most `top`.
nlohmann::ordered_json StacksJson(const analysis::Examination& examination,
                                  const std::vector<analysis::LifeValue>& stacks, size_t top);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_LIFE_JSON_H_
