// analysis/trace/context_keys.h
//
// ContextKeys: the context of a call, if it can be determined. Some calls name their context, some
// only their device, some neither: PyTorch's blocks have a device, the record of an event has a
// stream. In a program with a single context all calls belong to it. With several contexts, a call
// that names none belongs to context 0, "unknown".
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

  // Keys are 1, 2, ...; equal keys mean the same context.
  uint32_t KeyOf(std::optional<uint32_t> context, std::optional<uint32_t> device);
  uint32_t KeyOf(const auto& event, auto has_context, auto has_device) {
    const bool is_last =
        !event.has(has_context) && event.has(has_device) && last_device_ == event.device;
    if (is_last) return last_key_;
    return KeyOf(event.has(has_context) ? std::optional(event.context) : std::nullopt,
                 event.has(has_device) ? std::optional(event.device) : std::nullopt);
  }

 private:
  struct Key {
    std::optional<uint32_t> context, device;
  };

  uint32_t OfContext(uint32_t context, std::optional<uint32_t> device);
  uint32_t OfDevice(uint32_t device);
  uint32_t FindOrAddDevice(uint32_t device);

  std::vector<Key> keys_;
  absl::flat_hash_map<uint32_t, uint32_t> by_context_;
  // The last device of a call without a context, and its key; empty after keys_ has changed.
  std::optional<uint32_t> last_device_;
  uint32_t last_key_ = kUnknown;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_TRACE_CONTEXT_KEYS_H_
