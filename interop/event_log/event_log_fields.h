// interop/event_log/event_log_fields.h
//
// The event log's vocabulary: names of kinds, of memory, of roles, and which keys each kind has, in
// the order in which they are printed. Reader and writer both follow these tables, so that
// neither can know a key that the other does not.
//
// Thread safety: constants.

#ifndef GMT_INTEROP_EVENT_LOG_EVENT_LOG_FIELDS_H_
#define GMT_INTEROP_EVENT_LOG_EVENT_LOG_FIELDS_H_

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "format/event.h"

namespace gmt::interop {

// "alloc"; "" for a kind that the log does not know.
std::string_view KindName(Kind kind);
std::optional<Kind> KindByName(std::string_view name);

// "device"; "" for MEMORY_UNSPECIFIED.
std::string_view MemoryName(Memory memory);
std::optional<Memory> MemoryByName(std::string_view name);

// Of a set of format::Role, without those that the log does not know: "parameter", "saved".
std::vector<std::string_view> RoleNames(uint32_t roles);
std::optional<format::Role> RoleByName(std::string_view name);

// One key of an event. A key of type kNumber is printed where the event has its bit; the others
// where they are not 0, and the roles of a "role" always.
struct EventField {
  enum class Type { kNumber, kText, kStack, kMemory, kRoles };
  const char* key;
  Type type;
  format::Present bit;
  std::variant<uint32_t format::Event::*, uint64_t format::Event::*, int32_t format::Event::*,
               int64_t format::Event::*, Memory format::Event::*>
      member;
};

// All keys of an event but "kind" and what stands in lists (samples, gaps ...).
const std::vector<EventField>& FieldsOf(format::Family family);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_EVENT_LOG_FIELDS_H_
