// interop/event_log/event_log_fields.h
//
// The vocabulary of the event log: the names of kinds, memory and roles, and the keys of each kind
// in the order in which they are printed. Reader and writer both use these tables, so that they
// know the same keys.
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

// Returns "alloc", or "" for a kind that the log does not have.
std::string_view KindName(Kind kind);
std::optional<Kind> KindByName(std::string_view name);

// Returns "device", or "" for MEMORY_UNSPECIFIED.
std::string_view MemoryName(Memory memory);
std::optional<Memory> MemoryByName(std::string_view name);

// Returns the names of a set of format::Role, without those that the log does not have:
// "parameter", "saved".
std::vector<std::string_view> RoleNames(uint32_t roles);
std::optional<format::Role> RoleByName(std::string_view name);

// One key of an event. A key of type kNumber is printed if the event has its bit. Other keys are
// printed if they are not 0, and the roles of a "role" always.
struct EventField {
  enum class Type { kNumber, kText, kStack, kMemory, kRoles };
  const char* key;
  Type type;
  format::Present bit;
  std::variant<uint32_t format::Event::*, uint64_t format::Event::*, int32_t format::Event::*,
               int64_t format::Event::*, Memory format::Event::*>
      member;
};

// Returns all keys of an event except "kind" and those in lists (samples, gaps, ...).
const std::vector<EventField>& FieldsOf(format::Family family);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_EVENT_LOG_EVENT_LOG_FIELDS_H_
