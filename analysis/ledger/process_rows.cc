#include "analysis/ledger/process_rows.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analysis/fragmentation/fragmentation.h"
#include "analysis/trace/device_use.h"
#include "symbols/demangle.h"

namespace gmt::analysis {
namespace {

constexpr const char* kEvents = "events";
constexpr const char* kTheProgram = "the program";  // as returned by LibraryOf()

struct Sum {
  uint64_t bytes = 0, count = 0;

  void Add(uint64_t more) { bytes += more, ++count; }
};

// What is held on a device, by kind.
struct Held {
  std::map<uint32_t, Sum> blocks_by_heap;  // in known memory
  Sum unbacked;
  Sum segments;
  absl::flat_hash_map<uint32_t, Sum> others_by_stack;  // driver memory without blocks
  Sum managed;
  uint64_t recorded = 0;
};

Held HeldOn(const Trace& trace, int32_t device, Step step) {
  const Rows& rows = trace.rows;
  Held held;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.device[row] != device || !rows.HeldAfter(row, step)) continue;
    const uint64_t bytes = rows.size[row];
    const bool counts = IsInDriverFigure(rows, row);
    if (counts) held.recorded += bytes;
    if (rows.heap[row] > kHostHeap) {
      if (counts) {
        held.unbacked.Add(bytes);
      } else if (!rows.IsRegion(row)) {
        held.blocks_by_heap[rows.heap[row]].Add(bytes);
      }
    } else if (rows.memory[row] == MANAGED) {
      held.managed.Add(bytes);
    } else if (counts && (rows.flags[row] & kRowHoldsBlocks) != 0) {
      held.segments.Add(bytes);
    } else if (counts) {
      held.others_by_stack[rows.stack[row]].Add(bytes);
    }
  }
  return held;
}

// Bytes of a framework's private pools, live and free.
uint64_t PrivateBytes(const std::vector<SegmentMap>& segments) {
  uint64_t bytes = 0;
  for (const SegmentMap& segment : segments) {
    if (segment.is_private) bytes += segment.size;
  }
  return bytes;
}

class RowMaker {
 public:
  explicit RowMaker(std::vector<LedgerRow>& rows) : rows_(rows) {}

  LedgerRow& Add(LedgerGroup group, std::string name, uint64_t bytes, std::string detail = "") {
    LedgerRow row;
    row.group = group;
    row.name = std::move(name);
    row.bytes = bytes;
    row.known_by = kEvents;
    row.detail = std::move(detail);
    rows_.push_back(std::move(row));
    return rows_.back();
  }

 private:
  std::vector<LedgerRow>& rows_;
};

void AddLiveRow(std::string name, const Sum& blocks, std::string detail, RowMaker& rows) {
  LedgerRow& row =
      rows.Add(LedgerGroup::kReserved, std::move(name), blocks.bytes, std::move(detail));
  row.count = blocks.count;
  row.is_live = true;
}

// Adds one row per heap if there are several and they add up to what lies in the segments.
void AddLive(const Trace& trace, const Held& held, uint64_t allocated, RowMaker& rows) {
  if (allocated == 0) return;
  Sum all;
  for (const auto& [heap, blocks] : held.blocks_by_heap) {
    all.bytes += blocks.bytes;
    all.count += blocks.count;
  }
  if (held.blocks_by_heap.size() > 1 && all.bytes == allocated) {
    for (const auto& [heap, blocks] : held.blocks_by_heap) {
      AddLiveRow(absl::StrCat("live blocks of ", trace.heaps[heap]), blocks, "", rows);
    }
    return;
  }
  const bool one = held.blocks_by_heap.size() == 1;
  AddLiveRow("live blocks", {allocated, all.count},
             one ? absl::StrCat("of ", trace.heaps[held.blocks_by_heap.begin()->first]) : "", rows);
}

void AddReserved(const Examination& examination, int32_t device, Step step, const Held& held,
                 RowMaker& rows) {
  const Fragmentation segments = FragmentationAfter(examination, device, step);
  const FragmentationSplit& split = segments.split;
  AddLive(examination.trace(), held, segments.allocated_bytes, rows);
  const auto add = [&](const char* name, uint64_t bytes, const char* detail) -> LedgerRow* {
    return bytes == 0 ? nullptr : &rows.Add(LedgerGroup::kReserved, name, bytes, detail);
  };
  if (LedgerRow* row = add("cached", split.releasable, "empty_cache() would give it back")) {
    row->releasable = true;
  }
  add("holes", split.pinned + split.stream, "free beside live blocks, which pin it");
  add("awaiting streams", split.awaiting_stream, "freed, but another stream may still use it");
  if (LedgerRow* row = add("graph pools", split.private_pool, "")) {
    row->private_bytes = PrivateBytes(segments.segments);
  }
  if (held.segments.bytes > segments.reserved_bytes) {
    add("not mapped", held.segments.bytes - segments.reserved_bytes,
        "physical memory of segments, currently unmapped");
  }
  if (held.unbacked.bytes > 0) {
    AddLiveRow("blocks elsewhere", held.unbacked, "in memory whose allocation was not seen", rows);
  }
}

// Adds driver memory without a framework's blocks: grouped by library, or by the program's own
// frame if no library allocated it.
void AddOthers(const Examination& examination, const Held& held, RowMaker& rows) {
  struct Group {
    Sum sum;
    Sum biggest;
    uint32_t stack = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;  // by library and own frame
  for (const auto& [stack, sum] : held.others_by_stack) {
    const std::string& library = examination.stacks().Library(stack);
    const FrameText* own = examination.stacks().Own(stack);
    const bool is_own = library == kTheProgram && own != nullptr;
    Group& group = groups[{library, is_own ? own->Name() : ""}];
    group.sum.bytes += sum.bytes;
    group.sum.count += sum.count;
    const bool is_bigger = sum.bytes > group.biggest.bytes ||
                           (sum.bytes == group.biggest.bytes && stack < group.stack);
    if (group.stack == 0 || is_bigger) group.biggest = sum, group.stack = stack;
  }
  for (const auto& [key, group] : groups) {
    const std::string& library = key.first;
    const FrameText* own = examination.stacks().Own(group.stack);
    std::string detail = "no stack was recorded";
    if (own != nullptr) {
      detail = own->is_python() ? own->Name() : symbols::BareName(own->Name());
      if (const std::string place = own->Place(); !place.empty()) {
        absl::StrAppend(&detail, " (", place, ")");
      }
    }
    const bool is_library = !library.empty() && library != kTheProgram;
    LedgerRow& row = rows.Add(LedgerGroup::kOutsideFramework,
                              is_library ? library : "other allocations", group.sum.bytes, detail);
    row.count = group.sum.count;
    row.stack = group.stack;
  }
}

uint64_t ImportedAfter(const Trace& trace, int32_t device, Step step) {
  std::map<uint64_t, uint64_t> imported;
  for (const OutsideNote& note : trace.outside) {
    if (note.step > step) break;
    if (note.kind == OutsideNote::kImported && note.device.value_or(0) == device) {
      imported[note.object] = note.bytes;
    } else if (note.kind == OutsideNote::kUnimported) {
      imported.erase(note.object);
    }
  }
  uint64_t bytes = 0;
  for (const auto& [address, size] : imported) bytes += size;
  return bytes;
}

}  // namespace

ProcessRows ProcessRowsAfter(const Examination& examination, int32_t device, Step step) {
  const Trace& trace = examination.trace();
  const Held held = HeldOn(trace, device, step);
  ProcessRows process;
  process.recorded_bytes = held.recorded;
  RowMaker rows(process.rows);
  AddReserved(examination, device, step, held, rows);
  AddOthers(examination, held, rows);
  if (held.managed.bytes > 0) {
    process.not_counted.push_back({"managed memory", held.managed.bytes,
                                   "on the device or on the host, depending on its last use"});
  }
  if (const uint64_t bytes = ImportedAfter(trace, device, step); bytes > 0) {
    process.not_counted.push_back({"imported memory", bytes, "counted where it was allocated"});
  }
  return process;
}

}  // namespace gmt::analysis
