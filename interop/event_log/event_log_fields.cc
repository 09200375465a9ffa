#include "interop/event_log/event_log_fields.h"

#include <array>
#include <utility>

namespace gmt::interop {
namespace {

using format::Event;
using format::Family;
using format::Present;

constexpr std::array<std::pair<Kind, std::string_view>, 38> kKinds = {{
    {ALLOC, "alloc"},
    {FREE, "free"},
    {FREE_DONE, "free_done"},
    {ALLOC_FAILED, "alloc_failed"},
    {RESERVE, "reserve"},
    {UNRESERVE, "unreserve"},
    {CREATE, "create"},
    {RELEASE, "release"},
    {MAP, "map"},
    {UNMAP, "unmap"},
    {IMPORT, "import"},
    {UNIMPORT, "unimport"},
    {REGISTER, "register"},
    {UNREGISTER, "unregister"},
    {CONTEXT_CREATE, "context_create"},
    {CONTEXT_RESET, "context_reset"},
    {STREAM, "stream"},
    {EVENT_RECORD, "event_record"},
    {EVENT_WAIT, "event_wait"},
    {SYNC, "sync"},
    {MARK, "mark"},
    {RANGE_BEGIN, "range_begin"},
    {RANGE_END, "range_end"},
    {THREAD, "thread"},
    {SAMPLE, "sample"},
    {SNAPSHOT_TAKEN, "snapshot"},
    {GAP, "gap"},
    {POOL_ACTION, "pool"},
    {GRAPH_ACTION, "graph"},
    {MODULE_ACTION, "module"},
    {LIMIT_ACTION, "limit"},
    {ALLOCATOR_ACTION, "allocator"},
    {COPY, "copy"},
    {SOURCE_CHANGE, "source"},
    {DEVICE_NAME, "device"},
    {WITNESS, "witness"},
    {ROLE, "role"},
    {STACK_LINE, "stack"},
}};

constexpr std::array<std::pair<Memory, std::string_view>, 15> kMemories = {{
    {DEVICE, "device"},
    {MANAGED, "managed"},
    {PINNED, "pinned"},
    {REGISTERED, "registered"},
    {POOL, "pool"},
    {VMM, "vmm"},
    {ARRAY, "array"},
    {MIPMAPPED, "mipmapped"},
    {IPC, "ipc"},
    {EXTERNAL, "external"},
    {GRAPH, "graph"},
    {GRAPHICS, "graphics"},
    {MULTICAST, "multicast"},
    {BLOCK, "block"},
    {REGION, "region"},
}};

constexpr std::array<std::pair<format::Role, std::string_view>, 4> kRoleNames = {{
    {format::kRoleParameter, "parameter"},
    {format::kRoleGradient, "gradient"},
    {format::kRoleSaved, "saved"},
    {format::kRoleExpectsGradient, "expects_gradient"},
}};

template <typename Table, typename Value>
std::string_view NameIn(const Table& table, Value value) {
  for (const auto& [known, name] : table) {
    if (known == value) return name;
  }
  return "";
}

template <typename Table>
auto ValueIn(const Table& table, std::string_view name) -> std::optional<decltype(table[0].first)> {
  for (const auto& [value, known] : table) {
    if (known == name) return value;
  }
  return std::nullopt;
}

constexpr auto kNone = static_cast<Present>(0);

template <typename Member>
EventField NumberField(const char* key, Present bit, Member member) {
  return {key, EventField::Type::kNumber, bit, member};
}
EventField TextField(const char* key, uint32_t Event::*member) {
  return {key, EventField::Type::kText, kNone, member};
}
EventField Stack(const char* key, uint32_t Event::*member) {
  return {key, EventField::Type::kStack, kNone, member};
}

const EventField kTime = NumberField("t_ns", format::kHasTime, &Event::t_ns);
const EventField kThread = NumberField("thread", format::kHasThread, &Event::thread);
const EventField kHeap = TextField("heap", &Event::heap);
const EventField kMemory = {"memory", EventField::Type::kMemory, kNone, &Event::memory};
const EventField kDevice = NumberField("device", format::kHasDevice, &Event::device);
const EventField kContext = NumberField("context", format::kHasContext, &Event::context);
const EventField kAddress = NumberField("address", format::kHasAddress, &Event::address);
const EventField kSize = NumberField("size", format::kHasSize, &Event::size);
const EventField kStack = Stack("stack", &Event::stack);
const EventField kStream = NumberField("stream", format::kHasStream, &Event::stream);
const EventField kApi = TextField("api", &Event::api);
const EventField kDuration = NumberField("duration_ns", format::kHasDuration, &Event::duration_ns);
const EventField kResult = NumberField("result", format::kHasResult, &Event::result);
const EventField kPool = NumberField("pool", format::kHasPool, &Event::pool);
const EventField kAllocated =
    NumberField("total_allocated", format::kHasTotalAllocated, &Event::total_allocated);
const EventField kReserved =
    NumberField("total_reserved", format::kHasTotalReserved, &Event::total_reserved);
const EventField kFlags = NumberField("flags", format::kHasFlags, &Event::flags);
const EventField kName = TextField("name", &Event::name);
const EventField kForwardStack = Stack("forward_stack", &Event::forward_stack);
const EventField kRoles = {"role", EventField::Type::kRoles, kNone, &Event::roles};

std::vector<EventField> MakeFields(Family family) {
  switch (family) {
    case Family::kAcquisition:
      return {kTime,
              kHeap,
              kMemory,
              kDevice,
              kContext,
              kAddress,
              kSize,
              NumberField("requested", format::kHasRequested, &Event::requested),
              kStack,
              kForwardStack,
              kStream,
              kThread,
              kApi,
              kDuration,
              kResult,
              kPool,
              NumberField("handle", format::kHasHandle, &Event::handle),
              NumberField("offset", format::kHasOffset, &Event::offset),
              kFlags,
              kAllocated,
              kReserved,
              kName,
              TextField("scope", &Event::scope),
              TextField("dtype", &Event::dtype),
              TextField("shape", &Event::shape),
              kRoles};
    case Family::kReturn:
      return {kTime,   kHeap,   kMemory, kDevice,   kContext, kAddress, kSize,      kStack,
              kStream, kThread, kApi,    kDuration, kResult,  kPool,    kAllocated, kReserved};
    case Family::kActivity:
      return {kTime,
              kHeap,
              kMemory,
              kDevice,
              kContext,
              kStream,
              NumberField("object", format::kHasObject, &Event::object),
              TextField("action", &Event::action),
              NumberField("value", format::kHasValue, &Event::value),
              kName,
              NumberField("priority", format::kHasPriority, &Event::priority),
              kFlags,
              kStack,
              kThread,
              kApi,
              kDuration,
              kResult};
    case Family::kNote:
      return {kTime,
              kName,
              NumberField("index", format::kHasIndex, &Event::index),
              TextField("domain", &Event::domain),
              NumberField("range", format::kHasRange, &Event::range),
              NumberField("color", format::kHasColor, &Event::color),
              TextField("text", &Event::text),
              kDevice,
              kStack,
              kThread};
    case Family::kRole:
      return {kTime,   kHeap,         kMemory,
              kDevice, kAddress,      kSize,
              kRoles,  kForwardStack, TextField("node", &Event::name),
              kThread};
    default:
      return {kTime, kThread};
  }
}

}  // namespace

std::string_view KindName(Kind kind) { return NameIn(kKinds, kind); }
std::optional<Kind> KindByName(std::string_view name) { return ValueIn(kKinds, name); }
std::string_view MemoryName(Memory memory) { return NameIn(kMemories, memory); }
std::optional<Memory> MemoryByName(std::string_view name) { return ValueIn(kMemories, name); }

std::vector<std::string_view> RoleNames(uint32_t roles) {
  std::vector<std::string_view> names;
  for (const auto& [role, name] : kRoleNames) {
    if ((roles & role) != 0) names.push_back(name);
  }
  return names;
}
std::optional<format::Role> RoleByName(std::string_view name) { return ValueIn(kRoleNames, name); }

const std::vector<EventField>& FieldsOf(Family family) {
  static const auto* const fields = [] {
    auto* all = new std::vector<std::vector<EventField>>;
    for (int f = 0; f <= static_cast<int>(Family::kOther); ++f)
      all->push_back(MakeFields(static_cast<Family>(f)));
    return all;
  }();
  return (*fields)[static_cast<size_t>(family)];
}

}  // namespace gmt::interop
