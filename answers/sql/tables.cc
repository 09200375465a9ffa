#include "answers/sql/tables.h"

#include <algorithm>
#include <array>

#include "absl/container/btree_set.h"
#include "absl/strings/str_join.h"
#include "analysis/trace/memory_event.h"
#include "answers/stacks/stack_text.h"
#include "format/event.h"
#include "interop/event_log/event_log_fields.h"

namespace gmt::answers::sql {

using analysis::FrameText;
using analysis::kNever;
using analysis::kNoRow;
using analysis::RowId;
using analysis::Rows;
using analysis::Step;

// ---- Source --------------------------------------------------------------------------------

const std::string& Source::StackLine(uint32_t stack) {
  const uint32_t count = recording_.definitions().stack_count();
  if (stack > count) stack = 0;  // unknown
  if (stack_lines_.empty()) stack_lines_.resize(size_t{count} + 1);
  std::optional<std::string>& line = stack_lines_[stack];
  if (!line) {
    const auto& frames = recording_.examination().stacks().Frames(stack);
    line = frames.empty() ? "" : answers::StackLine(frames, kStackLabelWidth);
  }
  return *line;
}

const std::vector<uint32_t>& Source::stacks() {
  if (stacks_) return *stacks_;
  std::vector<bool> used(size_t{recording_.definitions().stack_count()} + 1);
  const auto add = [&used](uint32_t stack) {
    if (stack < used.size()) used[stack] = true;
  };
  const Rows& rows = trace().rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    add(rows.stack[row]);
    add(rows.forward_stack[row]);
    add(rows.FreeStack(row));
  }
  for (const auto& failed : trace().failed) add(failed.stack), add(failed.forward_stack);
  for (const auto& mark : trace().marks) add(mark.stack);
  for (const auto& range : trace().ranges) add(range.stack);
  for (const auto& role : trace().role_changes) add(role.stack);
  stacks_.emplace();
  for (uint32_t stack = 1; stack < used.size(); ++stack) {
    if (used[stack]) stacks_->push_back(stack);
  }
  return *stacks_;
}

const std::vector<uint64_t>& Source::first_frames() {
  if (first_frames_) return *first_frames_;
  uint64_t next = 0;
  first_frames_.emplace();
  for (const uint32_t stack : stacks()) {
    first_frames_->push_back(next);
    next += recording_.examination().stacks().Frames(stack).size();
  }
  first_frames_->push_back(next);
  return *first_frames_;
}

const std::vector<Source::StepUse>& Source::step_uses() {
  if (step_uses_) return *step_uses_;
  const analysis::Cycles& cycles = recording_.examination().cycles();
  step_uses_.emplace();
  for (uint32_t step = 0; step < cycles.cycles.size(); ++step) {
    for (uint32_t device = 0; device < cycles.devices.size(); ++device)
      step_uses_->push_back({step, device});
  }
  return *step_uses_;
}

const std::vector<Source::PhaseRow>& Source::phases() {
  if (phases_) return *phases_;
  const analysis::Cycles& cycles = recording_.examination().cycles();
  phases_.emplace();
  for (const StepUse& use : step_uses()) {
    for (uint32_t phase = 0; phase < analysis::kPhases; ++phase) {
      if (cycles.devices[use.device].cycles[use.step].phases[phase].present)
        phases_->push_back({use, phase});
    }
  }
  return *phases_;
}

const std::vector<Source::CategoryRow>& Source::categories() {
  if (categories_) return *categories_;
  categories_.emplace();
  const analysis::Examination& examination = recording_.examination();
  for (const auto& [device, totals] : examination.replay().devices()) {
    const Step step = totals.bytes.peak_step;
    for (analysis::CategoryUse& use :
         analysis::CategoriesAt(examination, recording_.categories(), device, step)) {
      categories_->push_back({device, trace().TimeOf(step), std::move(use)});
    }
  }
  return *categories_;
}

const ColumnCodes* Source::CodesOf(const Table& table, const Column& column) {
  auto found = codes_.find(&column);
  if (found == codes_.end())
    found = codes_.emplace(&column, ColumnCodes::Make(*this, table, column)).first;
  return found->second ? &*found->second : nullptr;
}

// ---- Columns ------------------------------------------------------------------------------------

namespace {

std::pair<uint64_t, uint64_t> OneOf(uint64_t count, int64_t key) {
  if (key < 0 || static_cast<uint64_t>(key) >= count) return {0, 0};
  return {static_cast<uint64_t>(key), static_cast<uint64_t>(key) + 1};
}

void WriteDevice(int32_t device, Cell& cell) {
  if (device != analysis::kHostDevice) cell.Integer(device);
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
          {"heap", "TEXT", "who manages it: driver, host, pytorch, ...",
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

const FrameText* OwnFrameOf(Source& s, uint64_t row) {
  return s.recording().examination().stacks().Own(s.stacks()[row]);
}

std::pair<uint64_t, uint64_t> FindStack(Source& s, int64_t key) {
  const std::vector<uint32_t>& stacks = s.stacks();
  const auto found = std::lower_bound(stacks.begin(), stacks.end(), key);
  if (found == stacks.end() || *found != key) return {0, 0};
  const auto row = static_cast<uint64_t>(found - stacks.begin());
  return {row, row + 1};
}

Table StacksTable() {
  return {"stacks",
          "the stacks that other tables refer to",
          [](Source& s) { return uint64_t{s.stacks().size()}; },
          {
              {"id", "INTEGER", "id of the stack",
               [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.stacks()[row]); }},
              {"text", "TEXT", "the program's line and what it called, as in reports",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.LastingText(s.StackLine(s.stacks()[row]));
               }},
              {"function", "TEXT", "the program's own function",
               [](Source& s, uint64_t row, Cell& cell) {
                 if (const FrameText* frame = OwnFrameOf(s, row)) cell.Text(frame->Name());
               }},
              {"source_file", "TEXT", "its file",
               [](Source& s, uint64_t row, Cell& cell) {
                 if (const FrameText* frame = OwnFrameOf(s, row)) cell.Text(frame->file);
               }},
              {"line", "INTEGER", "its line",
               [](Source& s, uint64_t row, Cell& cell) {
                 if (const FrameText* frame = OwnFrameOf(s, row)) cell.Id(frame->line);
               }},
              {"library", "TEXT", "the library that allocated: PyTorch, cuBLAS, NCCL, ...",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Text(s.recording().examination().stacks().Library(s.stacks()[row]));
               }},
          },
          FindStack};
}

struct FramePlace {
  uint32_t stack;
  uint64_t depth;
  const FrameText& frame;
};

FramePlace FrameAt(Source& s, uint64_t row) {
  const std::vector<uint64_t>& first = s.first_frames();
  const auto behind = std::upper_bound(first.begin(), first.end(), row);
  const auto index = static_cast<size_t>(behind - first.begin()) - 1;
  const uint32_t stack = s.stacks()[index];
  const uint64_t depth = row - first[index];
  return {stack, depth, s.recording().examination().stacks().Frames(stack)[depth]};
}

Table FramesTable() {
  return {
      "frames",
      "the frames of the stacks",
      [](Source& s) { return s.first_frames().back(); },
      {
          {"stack", "INTEGER", "id of the stack",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(FrameAt(s, row).stack); }},
          {"depth", "INTEGER", "0 for the innermost frame",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(FrameAt(s, row).depth));
           }},
          {"function", "TEXT", "name of the function",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.Name()); }},
          {"source_file", "TEXT", "source file",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.file); }},
          {"line", "INTEGER", "line in the file",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(FrameAt(s, row).frame.line); }},
          {"module", "TEXT", "path of the library or program",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.module); }},
          {"language", "TEXT", "python, c++, ...",
           [](Source& s, uint64_t row, Cell& cell) { cell.Text(FrameAt(s, row).frame.language); }},
      },
      [](Source& s, int64_t key) -> std::pair<uint64_t, uint64_t> {
        const auto [row, end] = FindStack(s, key);
        if (row == end) return {0, 0};
        return {s.first_frames()[row], s.first_frames()[end]};
      }};
}

const analysis::Cycles& CyclesOf(Source& s) { return s.recording().examination().cycles(); }
const analysis::CycleUse& UseOf(Source& s, const Source::StepUse& use) {
  return CyclesOf(s).devices[use.device].cycles[use.step];
}

Table StepsTable() {
  return {
      "steps",
      "the steps of the training loop, one row for each GPU",
      [](Source& s) { return uint64_t{s.step_uses().size()}; },
      {
          {"step", "INTEGER", "number of the step, from 1",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(int64_t{s.step_uses()[row].step} + 1);
           }},
          {"device", "INTEGER", "GPU",
           [](Source& s, uint64_t row, Cell& cell) {
             WriteDevice(CyclesOf(s).devices[s.step_uses()[row].device].device, cell);
           }},
          {"begin_ns", "INTEGER", "its beginning",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(CyclesOf(s).cycles[s.step_uses()[row].step].begin_t_ns);
           }},
          {"end_ns", "INTEGER", "its end",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(CyclesOf(s).cycles[s.step_uses()[row].step].end_t_ns);
           }},
          {"begin_bytes", "INTEGER", "live bytes at its beginning",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(UseOf(s, s.step_uses()[row]).live_begin));
           }},
          {"end_bytes", "INTEGER", "live bytes at its end",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(UseOf(s, s.step_uses()[row]).live_end));
           }},
          {"peak_bytes", "INTEGER", "most live bytes in it",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(UseOf(s, s.step_uses()[row]).peak));
           }},
          {"peak_phase", "TEXT", "the phase of that moment",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(NameOf(UseOf(s, s.step_uses()[row]).peak_phase));
           }},
      },
      [](Source& s, int64_t key) -> std::pair<uint64_t, uint64_t> {
        const auto devices = static_cast<int64_t>(CyclesOf(s).devices.size());
        if (key < 1 || key > static_cast<int64_t>(CyclesOf(s).cycles.size())) return {0, 0};
        return {static_cast<uint64_t>((key - 1) * devices), static_cast<uint64_t>(key * devices)};
      }};
}

const analysis::PhaseUse& PhaseOf(Source& s, uint64_t row) {
  const Source::PhaseRow& at = s.phases()[row];
  return UseOf(s, at.use).phases[at.phase];
}

Table PhasesTable() {
  return {"phases",
          "the phases of each step: forward, backward, optimizer and others",
          [](Source& s) { return uint64_t{s.phases().size()}; },
          {
              {"step", "INTEGER", "number of the step",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(int64_t{s.phases()[row].use.step} + 1);
               }},
              {"device", "INTEGER", "GPU",
               [](Source& s, uint64_t row, Cell& cell) {
                 WriteDevice(CyclesOf(s).devices[s.phases()[row].use.device].device, cell);
               }},
              {"phase", "TEXT", "forward, backward, optimizer, evaluation, init, other",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.LastingText(NameOf(static_cast<analysis::Phase>(s.phases()[row].phase)));
               }},
              {"peak_bytes", "INTEGER", "most live bytes in it",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(static_cast<int64_t>(PhaseOf(s, row).peak));
               }},
              {"change_bytes", "INTEGER", "live bytes at its end less those at its beginning",
               [](Source& s, uint64_t row, Cell& cell) { cell.Integer(PhaseOf(s, row).change); }},
              {"times", "INTEGER", "how often it occurs in the step",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(static_cast<int64_t>(PhaseOf(s, row).times));
               }},
          },
          [](Source& s, int64_t key) -> std::pair<uint64_t, uint64_t> {
            const std::vector<Source::PhaseRow>& rows = s.phases();
            const auto row_of = [&rows](int64_t step) {
              const auto found = std::partition_point(
                  rows.begin(), rows.end(),
                  [step](const Source::PhaseRow& r) { return r.use.step + 1 < step; });
              return static_cast<uint64_t>(found - rows.begin());
            };
            return {row_of(key), row_of(key == INT64_MAX ? key : key + 1)};
          }};
}

Table CategoriesTable() {
  return {"categories",
          "what each GPU holds at its peak, by category; the bytes add up",
          [](Source& s) { return uint64_t{s.categories().size()}; },
          {
              {"device", "INTEGER", "GPU; null for host memory",
               [](Source& s, uint64_t row, Cell& cell) {
                 WriteDevice(s.categories()[row].device, cell);
               }},
              {"t_ns", "INTEGER", "time of the peak",
               [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.categories()[row].t_ns); }},
              {"category", "TEXT", "what the memory is for",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.LastingText(NameOf(s.categories()[row].use.category));
               }},
              {"bytes", "INTEGER", "each byte once",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(static_cast<int64_t>(s.categories()[row].use.bytes));
               }},
              {"count", "INTEGER", "number of pieces",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(static_cast<int64_t>(s.categories()[row].use.count));
               }},
              {"reason", "TEXT", "why most of them have this category",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.LastingText(s.categories()[row].use.reason);
               }},
          }};
}

Table FailuresTable() {
  return {
      "failures",
      "allocations that failed for lack of memory",
      [](Source& s) { return uint64_t{s.trace().failed.size()}; },
      {
          {"t_ns", "INTEGER", "when",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.trace().failed[row].t_ns); }},
          {"device", "INTEGER", "GPU; null for host memory",
           [](Source& s, uint64_t row, Cell& cell) {
             WriteDevice(s.trace().failed[row].device, cell);
           }},
          {"heap", "TEXT", "who refused: driver, pytorch, ...",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.trace().heaps[s.trace().failed[row].heap]);
           }},
          {"bytes", "INTEGER", "bytes that were requested",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(s.trace().failed[row].size));
           }},
          {"stack", "INTEGER", "id of the stack",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(s.trace().failed[row].stack); }},
          {"dtype", "TEXT", "type of the tensor",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.String(s.trace().failed[row].dtype));
           }},
          {"shape", "TEXT", "shape of the tensor",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.String(s.trace().failed[row].shape));
           }},
          {"allocated", "INTEGER", "what the allocator had in blocks",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().failed[row].total_allocated);
           }},
          {"reserved", "INTEGER", "what it had taken from the driver",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().failed[row].total_reserved);
           }},
          {"driver_free", "INTEGER", "free memory by the driver's last answer",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().failed[row].driver_free);
           }},
      }};
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

Table MarksTable() {
  return {
      "marks",
      "marks that the program set",
      [](Source& s) { return uint64_t{s.trace().marks.size()}; },
      {
          {"name", "TEXT", "its name",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.trace().marks[row].name);
           }},
          {"number", "INTEGER", "its number, if it has one",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.trace().marks[row].index); }},
          {"t_ns", "INTEGER", "when",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.trace().marks[row].t_ns); }},
          {"event", "INTEGER", "the last event before it",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.trace().marks[row].step); }},
          {"thread", "INTEGER", "thread",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(s.trace().marks[row].thread); }},
          {"stack", "INTEGER", "id of the stack",
           [](Source& s, uint64_t row, Cell& cell) { cell.Id(s.trace().marks[row].stack); }},
      }};
}

Table RangesTable() {
  return {"ranges",
          "ranges of NVTX, record_function and PyTorch's own: optimizers, backward passes",
          [](Source& s) { return uint64_t{s.trace().ranges.size()}; },
          {
              {"name", "TEXT", "its name, or the place of a record_function",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Text(KindOfRange(s.trace().ranges[row], s.recording().definitions()));
               }},
              {"begin_ns", "INTEGER", "its beginning; null if before the recording",
               [](Source& s, uint64_t row, Cell& cell) {
                 const int64_t begin = s.trace().ranges[row].begin_t_ns;
                 if (begin != INT64_MIN) cell.Integer(begin);
               }},
              {"end_ns", "INTEGER", "its end; null if it was open at the end",
               [](Source& s, uint64_t row, Cell& cell) {
                 const int64_t end = s.trace().ranges[row].end_t_ns;
                 if (end != INT64_MAX) cell.Integer(end);
               }},
              {"thread", "INTEGER", "thread",
               [](Source& s, uint64_t row, Cell& cell) { cell.Id(s.trace().ranges[row].thread); }},
              {"stack", "INTEGER", "id of the stack",
               [](Source& s, uint64_t row, Cell& cell) { cell.Id(s.trace().ranges[row].stack); }},
          }};
}

Table SamplesTable() {
  return {
      "samples",
      "the use of each GPU by NVML and cudaMemGetInfo",
      [](Source& s) { return uint64_t{s.trace().samples.size()}; },
      {
          {"t_ns", "INTEGER", "when",
           [](Source& s, uint64_t row, Cell& cell) { cell.Integer(s.trace().samples[row].t_ns); }},
          {"device", "INTEGER", "GPU",
           [](Source& s, uint64_t row, Cell& cell) {
             WriteDevice(s.trace().samples[row].device, cell);
           }},
          {"source", "TEXT", "nvml or cudaMemGetInfo",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.LastingText(s.trace().samples[row].source);
           }},
          {"used", "INTEGER", "bytes in use",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(s.trace().samples[row].used_bytes));
           }},
          {"total", "INTEGER", "bytes that the GPU has",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(static_cast<int64_t>(s.trace().samples[row].total_bytes));
           }},
          {"process", "INTEGER", "bytes of this process, if known",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().samples[row].process_bytes);
           }},
          {"others", "INTEGER", "bytes of other processes, if known",
           [](Source& s, uint64_t row, Cell& cell) {
             cell.Integer(s.trace().samples[row].others_bytes);
           }},
      }};
}

Table RecordingsTable() {
  return {
      "recordings",
      "the recordings that were opened",
      [](Source&) { return uint64_t{1}; },
      {
          {"command", "TEXT", "command line of the process",
           [](Source& s, uint64_t, Cell& cell) { cell.Text(absl::StrJoin(s.trace().argv, " ")); }},
          {"pid", "INTEGER", "process ID",
           [](Source& s, uint64_t, Cell& cell) {
             if (s.trace().pid != 0) cell.Integer(static_cast<int64_t>(s.trace().pid));
           }},
          {"run", "TEXT", "id of the `gpumemtrace run` that started it; null without one",
           [](Source& s, uint64_t, Cell& cell) { cell.LastingText(s.trace().run_id); }},
          {"host", "TEXT", "name of its machine",
           [](Source& s, uint64_t, Cell& cell) { cell.LastingText(s.trace().hostname); }},
          {"rank", "INTEGER", "rank in its job",
           [](Source& s, uint64_t, Cell& cell) { cell.Integer(s.trace().rank); }},
          {"start_unix_ns", "INTEGER", "start, in ns since 1970",
           [](Source& s, uint64_t, Cell& cell) { cell.Integer(s.trace().start_unix_ns); }},
          {"end_ns", "INTEGER", "time of the last event since the start",
           [](Source& s, uint64_t, Cell& cell) { cell.Integer(s.trace().end_t_ns); }},
          {"complete", "INTEGER", "1 unless the file was cut off or is still written",
           [](Source& s, uint64_t, Cell& cell) { cell.Integer(s.recording().complete() ? 1 : 0); }},
      }};
}

}  // namespace

const std::vector<Table>& Tables() {
  static const auto& tables = *new std::vector<Table>{
      MemoryTable(), EventsTable(),     StacksTable(),   FramesTable(),    StepsTable(),
      PhasesTable(), CategoriesTable(), FailuresTable(), WaitsTable(),     RolesTable(),
      MarksTable(),  RangesTable(),     SamplesTable(),  RecordingsTable()};
  return tables;
}

const std::vector<View>& Views() {
  static const auto& views = *new std::vector<View>{
      {"blocks", "rows of memory that are a framework's blocks", "kind = 'block'"},
      {"segments", "rows of memory from which a framework's allocator makes its blocks",
       "holds_blocks = 1"}};
  return views;
}

}  // namespace gmt::answers::sql
