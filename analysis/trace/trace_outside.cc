// TraceBuilder (analysis/trace/trace_builder.h): device memory outside the process's allocations
// (analysis/trace/outside_notes.h).

#include <charconv>
#include <string_view>
#include <utility>

#include "analysis/trace/trace_builder.h"

namespace gmt::analysis {
namespace {

using format::Event;

// The recording library's report about CUPTI's own buffers (docs/cupti.md).
constexpr std::string_view kCuptiMemory = "cupti device memory";

std::optional<uint64_t> LeadingNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

void TraceBuilder::NoteOutside(const Event& event) {
  if (Failed(event)) return;
  OutsideNote note;
  note.step = trace_.last_step();
  note.t_ns = event.t_ns;
  if (event.has(format::kHasDevice)) note.device = static_cast<int32_t>(event.device);
  note.object = event.object;
  note.bytes = event.value;
  switch (event.kind) {
    case CONTEXT_CREATE:
    case CONTEXT_RESET:
      note.kind =
          event.kind == CONTEXT_CREATE ? OutsideNote::kContextMade : OutsideNote::kContextEnded;
      if (event.has(format::kHasContext)) note.object = event.context;
      break;
    case MODULE_ACTION: {
      const std::string_view action = definitions_.string(event.action);
      if (action != "load" && action != "unload") return;
      note.kind = action == "load" ? OutsideNote::kModuleLoaded : OutsideNote::kModuleUnloaded;
      break;
    }
    case LIMIT_ACTION:
      note.kind = OutsideNote::kLimitSet;
      note.name = definitions_.string(event.action);
      break;
    case SOURCE_CHANGE: {
      if (definitions_.string(event.name) != kCuptiMemory) return;
      const std::optional<uint64_t> bytes = LeadingNumber(definitions_.string(event.text));
      if (!bytes) return;
      note.kind = OutsideNote::kCuptiMemory;
      note.bytes = *bytes;
      break;
    }
    case IMPORT:
    case UNIMPORT:
      note.kind = event.kind == IMPORT ? OutsideNote::kImported : OutsideNote::kUnimported;
      note.object = event.address;
      note.bytes = event.size;
      break;
    default:
      return;
  }
  trace_.outside.push_back(std::move(note));
}

}  // namespace gmt::analysis
