// interop/torch_import/torch_import_fields.h
//
// Setters for the fields that events of an imported snapshot have in common. They also set the
// presence bits.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_FIELDS_H_
#define GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_FIELDS_H_

#include <cstdint>
#include <optional>

#include "format/event.h"

namespace gmt::interop {

inline void SetStream(std::optional<uint64_t> stream, format::Event* event) {
  if (!stream.has_value()) return;
  event->stream = *stream;
  event->present |= format::kHasStream;
}

inline constexpr int64_t kNsPerUs = 1000;

inline void SetRange(uint64_t address, uint64_t size, format::Event* event) {
  event->address = address;
  event->size = size;
  event->present |= format::kHasAddress | format::kHasSize;
}

inline void SetPool(uint64_t pool, format::Event* event) {
  event->pool = pool;
  event->present |= format::kHasPool;
}

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_IMPORT_TORCH_IMPORT_FIELDS_H_
