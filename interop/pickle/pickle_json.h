// interop/pickle/pickle_json.h
//
// Values of a pickle as JSON, for what a recording keeps as text: settings, metadata, test output.
//
// Thread safety: pure function.

#ifndef GMT_INTEROP_PICKLE_PICKLE_JSON_H_
#define GMT_INTEROP_PICKLE_PICKLE_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "interop/pickle/pickle_value.h"

namespace gmt::interop {

// Limits of the output. A pickle of a few bytes can expand to more values than fit in memory, or
// contain itself. Values that exceed a limit of depth, number of values or text bytes become null.
struct JsonLimits {
  uint32_t depth = 32;
  uint64_t values = 10'000;
  uint64_t text = 1 << 20;
};

// Tuples and bytes become lists. Keys that are not strings become their JSON text. Numbers that
// JSON does not have (infinities, more than 64 bits) become null.
nlohmann::ordered_json JsonOf(const PickleTree& tree, PickleValue value,
                              const JsonLimits& limits = {});

// Returns JsonOf() on one line. Invalid UTF-8 gets replacement characters.
std::string JsonText(const PickleTree& tree, PickleValue value, const JsonLimits& limits = {});

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_PICKLE_JSON_H_
