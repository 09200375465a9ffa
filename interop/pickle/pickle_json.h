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

// A pickle of a few bytes can stand for more values than fit any memory, or contain itself: what
// lies deeper, comes behind so many values, or is a text behind so many bytes of texts, is null.
struct JsonLimits {
  uint32_t depth = 32;
  uint64_t values = 10'000;
  uint64_t text = 1 << 20;
};

// Tuples and bytes become lists; keys that are no strings become their JSON text; numbers that JSON
// does not have (infinities, more than 64 bits) become null.
nlohmann::ordered_json JsonOf(const PickleTree& tree, PickleValue value,
                              const JsonLimits& limits = {});

// As one line. Text that is no UTF-8 gets replacement characters.
std::string JsonText(const PickleTree& tree, PickleValue value, const JsonLimits& limits = {});

}  // namespace gmt::interop

#endif  // GMT_INTEROP_PICKLE_PICKLE_JSON_H_
