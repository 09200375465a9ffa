// The tables of pieces of memory, their events, and what was reported about them.

#include <algorithm>
#include <array>
#include <iterator>

#include "analysis/trace/memory_event.h"
#include "answers/sql/table_list.h"
#include "format/event.h"
#include "interop/event_log/event_log_fields.h"

namespace gmt::answers::sql {

using analysis::kNever;
using analysis::kNoRow;
using analysis::RowId;
using analysis::Rows;
using analysis::Step;

namespace {

std::pair<uint64_t, uint64_t> OneOf(uint64_t count, int64_t key) {
  if (key < 0 || static_cast<uint64_t>(key) >= count) return {0, 0};
  return {static_cast<uint64_t>(key), static_cast<uint64_t>(key) + 1};
}

void WriteAddress(uint64_t address, Cell& cell) { cell.Integer(static_cast<int64_t>(address)); }

// Roles are bits of a byte (format::Role); others have no name.
void WriteRoles(uint32_t roles, Cell& cell) {
  static const auto& texts = *[] {
    auto* all = new std::array<std::string, 256>;
    for (uint32_t each = 0; each < all->size(); ++each) {
      for (const std::string_view name : interop::RoleNames(each))
        (*all)[each].append((*all)[each].empty() ? "" : "+").append(name);
    }
    return all;
  }();
  cell.LastingText(texts[roles % texts.size()]);
}

// The number of the training step that a birth or death belongs to, counted from 1.
std::optional<uint64_t> TrainingStep(Source& source, Step step) {
  const auto& cycles = source.recording().examination().cycles().cycles;
  const auto behind = std::upper_bound(cycles.begin(), cycles.end(), step,
                                       [](Step s, const auto& cycle) { return s <= cycle.begin; });
  if (behind == cycles.begin()) return std::nullopt;
  const auto cycle = std::prev(behind);
  if (step > cycle->end) return std::nullopt;
  return static_cast<uint64_t>(cycle - cycles.begin()) + 1;
}

const Rows& RowsOf(Source& source) { return source.trace().rows; }
RowId IdOf(uint64_t row) { return static_cast<RowId>(row); }

}  // namespace

Table MemoryTable() {
  return {
      "memory",
      "every piece of memory that was held: device memory, host memory, PyTorch's blocks",
      [](Source& s) { return uint64_t{RowsOf(s).count()}; },
      {
          {"id", "INTEGER", "number of the piece, from 0",
           [](Source&, uint64_t row, Cell& cell) { cell.Integer(static_cast<int64_t>(row)); }},
          {"device", "INTEGER", "GPU; null for host memory",
           [](Source& s, uint64_t row, Cell& cell) { WriteDevice(RowsOf(s).device[row], cell); }},
          {"heap", "TEXT", "what manages it: driver, host, pytorch, ...",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.trace().heaps[RowsOf(s).heap[row]]);
           }},
          {"kind", "TEXT", "device, pinned, managed, pool, vmm, array, block, region, ...",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(interop::MemoryName(static_cast<Memory>(RowsOf(s).memory[row])));
           }},
          {"bytes", "INTEGER", "size",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(RowsOf(s).size[row]));
           }},
          {"requested", "INTEGER", "bytes that were requested, if the size is rounded",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(RowsOf(s).Requested(IdOf(row)));
           }},
          {"category", "TEXT", "what it is for: parameters, activations, ...",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(NameOf(s.recording().categories().Of(IdOf(row)).category));
           }},
          {"reason", "TEXT", "why it has this category",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.recording().categories().Reason(IdOf(row)));
           }},
          {"alloc_ns", "INTEGER", "when it was allocated, in ns since the start; null if before",
           [](Source& s, uint64_t row, Cell& cell) {
             const Step birth = RowsOf(s).birth[row];
             if (birth != 0) return cell.Integer(s.trace().TimeOf(birth));
             cell.Integer(RowsOf(s).BornBefore(IdOf(row)));
           }},
          {"free_ns", "INTEGER", "when it was freed; null if it was held at the end",
           [](Source& s, uint64_t row, Cell& cell) {
             const Step death = RowsOf(s).death[row];
             if (death != kNever) cell.Integer(s.trace().TimeOf(death));
           }},
          {"alloc_event", "INTEGER", "its allocation in the table events; null if before",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(RowsOf(s).birth[row]); }},
          {"free_event", "INTEGER", "its free in the table events",
           [](Source& s, uint64_t row, Cell& cell) {
             const Step death = RowsOf(s).death[row];
             if (death != kNever) cell.Integer(death);
           }},
          {"step", "INTEGER", "training step in which it was allocated, from 1",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(TrainingStep(s, RowsOf(s).birth[row]));
           }},
          {"stack", "INTEGER", "id of the stack that allocated it",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(RowsOf(s).stack[row]); }},
          {"forward_stack", "INTEGER",
           "id of the stack of the forward pass, for memory of a backward pass",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(RowsOf(s).forward_stack[row]); }},
          {"free_stack", "INTEGER", "id of the stack that freed it, if recorded",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(RowsOf(s).FreeStack(IdOf(row))); }},
          {"dtype", "TEXT", "type of the tensor",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.String(RowsOf(s).Dtype(IdOf(row))));
           }},
          {"shape", "TEXT", "shape of the tensor",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.String(RowsOf(s).Shape(IdOf(row))));
           }},
          {"roles", "TEXT", "what PyTorch reported at any time: parameter, gradient, saved",
           [](Source& s, uint64_t row, Cell& cell) {
             WriteRoles(RowsOf(s).Roles(IdOf(row)), cell);
           }},
          {"name", "TEXT", "the program's own name for it",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.String(RowsOf(s).Name(IdOf(row))));
           }},
          {"address", "INTEGER", "address, or handle of physical memory and arrays",
           [](Source& s, uint64_t row, Cell& cell) {
             if (const uint64_t address = RowsOf(s).address[row]; address != 0)
               WriteAddress(address, cell);
           }},
          {"stream", "INTEGER", "stream that it was allocated on",
           [](Source& s, uint64_t row, Cell& cell) {
             if ((RowsOf(s).flags[row] & analysis::kRowHasStream) != 0)
               WriteAddress(RowsOf(s).stream[row], cell);
           }},
          {"thread", "INTEGER", "thread that allocated it",
           [](Source& s, uint64_t row, Cell& cell) {
             if ((RowsOf(s).flags[row] & analysis::kRowHasThread) != 0)
               cell.Integer(RowsOf(s).thread[row]);
           }},
          {"pool", "INTEGER", "private or stream-ordered pool",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(RowsOf(s).Pool(IdOf(row))); }},
          {"holds_blocks", "INTEGER", "1 for driver memory in which a framework has blocks",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer((RowsOf(s).flags[row] & analysis::kRowHoldsBlocks) != 0 ? 1 : 0);
           }},
      },
      [](Source& s, int64_t key) { return OneOf(RowsOf(s).count(), key); }};
}

Table EventsTable() {
  return {
      "events",
      "every allocation and every free, in order",
      [](Source& s) { return uint64_t{s.trace().steps.size()}; },
      {
          {"id", "INTEGER", "number of the event, from 1",
           [](Source&, uint64_t row, Cell& cell) { cell.Integer(static_cast<int64_t>(row) + 1); }},
          {"t_ns", "INTEGER", "time in ns since the start",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.trace().steps.TimeOf(row)); }},
          {"kind", "TEXT", "alloc or free; null for a free that the driver refused",
           [](Source& s, uint64_t row, Cell& cell) {
             const analysis::StepRecord step = s.trace().steps[row];
             if (step.row != kNoRow) cell.LastingText(step.is_death ? "free" : "alloc");
           }},
          {"memory", "INTEGER", "id in the table memory",
           [](Source& s, uint64_t row, Cell& cell) {
             const analysis::StepRecord step = s.trace().steps[row];
             if (step.row != kNoRow) cell.Integer(step.row);
           }},
          {"device", "INTEGER", "GPU; null for host memory",
           [](Source& s, uint64_t row, Cell& cell) {
             const RowId id = s.trace().steps[row].row;
             if (id != kNoRow) WriteDevice(RowsOf(s).device[id], cell);
           }},
          {"heap", "TEXT", "as in the table memory",
           [](Source& s, uint64_t row, Cell& cell) {
             const RowId id = s.trace().steps[row].row;
             if (id != kNoRow) cell.LastingText(s.trace().heaps[RowsOf(s).heap[id]]);
           }},
          {"change", "INTEGER", "bytes allocated; negative for a free",
           [](Source& s, uint64_t row, Cell& cell) {
             const analysis::StepRecord step = s.trace().steps[row];
             if (step.row == kNoRow) return;
             const auto bytes = static_cast<int64_t>(RowsOf(s).size[step.row]);
             cell.Integer(step.is_death ? -bytes : bytes);
           }},
          {"stack", "INTEGER", "id of the stack of the call, if recorded",
           [](Source& s, uint64_t row, Cell& cell) {
             const analysis::StepRecord step = s.trace().steps[row];
             if (step.row == kNoRow) return;
             cell.Id(step.is_death ? RowsOf(s).FreeStack(step.row) : RowsOf(s).stack[step.row]);
           }},
      },
      [](Source& s, int64_t key) { return OneOf(s.trace().steps.size(), key - 1); }};
}

Table WaitsTable() {
  return {"waits",
          "frees of blocks that had to wait for other streams",
          [](Source& s) { return uint64_t{s.trace().completions.size()}; },
          {
              {"memory", "INTEGER", "id in the table memory",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(s.trace().completions[row].row);
               }},
              {"free_ns", "INTEGER", "when the free was requested",
               [](Source& s, uint64_t row, Cell& cell) {
                 const Step death = RowsOf(s).death[s.trace().completions[row].row];
                 if (death != kNever) cell.Integer(s.trace().TimeOf(death));
               }},
              {"done_ns", "INTEGER", "when the memory could be used again",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(s.trace().completions[row].t_ns);
               }},
          }};
}

Table RolesTable() {
  return {
      "roles",
      "what PyTorch reported about its tensors, in order",
      [](Source& s) { return uint64_t{s.trace().role_changes.size()}; },
      {
          {"memory", "INTEGER", "id in the table memory",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().role_changes[row].row);
           }},
          {"event", "INTEGER", "the last event before it",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().role_changes[row].step);
           }},
          {"roles", "TEXT", "the roles from now on; null: none",
           [](Source& s, uint64_t row, Cell& cell) {
             WriteRoles(s.trace().role_changes[row].roles, cell);
           }},
          {"node", "TEXT", "class of the node that saves it",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.String(s.trace().role_changes[row].node));
           }},
          {"stack", "INTEGER", "the forward pass that created the node",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(s.trace().role_changes[row].stack); }},
      }};
}

}  // namespace gmt::answers::sql
