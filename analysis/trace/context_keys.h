// analysis/trace/context_keys.h
//
// ContextKeys: the context that a call belongs to, as far as it can be told. Some calls say their
// context, some only their device, some neither: PyTorch's blocks have a device, an event's record has
// a stream. A program with one context has all its calls there; with several, a call that does not
// say is of context 0, "not known".
//
// Thread safety: one thread at a time.

#ifndef GMT_ANALYSIS_TRACE_CONTEXT_KEYS_H_
#define GMT_ANALYSIS_TRACE_CONTEXT_KEYS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace gmt::analysis {

class ContextKeys {
 public:
  static constexpr uint32_t kUnknown = 0;

  // Keys are 1, 2, ...; equal keys are one context.
  uint32_t KeyOf(std::optional<uint32_t> context, std::optional<uint32_t> device);
  uint32_t KeyOf(const auto& event, auto has_context, auto has_device) {
    return KeyOf(event.has(has_context) ? std::optional(event.context) : std::nullopt,
                 event.has(has_device) ? std::optional(event.device) : std::nullopt);
  }

 private:
  struct Key {
    std::optional<uint32_t> context, device;
  };

  uint32_t OfContext(uint32_t context, std::optional<uint32_t> device);
  uint32_t OfDevice(uint32_t device);

  std::vector<Key> keys_;
  absl::flat_hash_map<uint32_t, uint32_t> by_context_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_CONTEXT_KEYS_H_
