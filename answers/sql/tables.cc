#include "answers/sql/tables.h"

#include "absl/strings/str_join.h"
#include "answers/sql/table_list.h"

namespace gmt::answers::sql {

namespace {

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
          {"heap", "TEXT", "what refused it: driver, pytorch, ...",
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
          {"used", "INTEGER", "bytes in use, if known",
           [](Source& s, uint64_t row, Cell& cell) {
             const analysis::DeviceSample& sample = s.trace().samples[row];
             if (sample.knows_use()) cell.Integer(static_cast<int64_t>(sample.used_bytes));
           }},
          {"total", "INTEGER", "bytes that the GPU has, if known",
           [](Source& s, uint64_t row, Cell& cell) {
             const uint64_t total = s.trace().samples[row].total_bytes;
             if (total > 0) cell.Integer(static_cast<int64_t>(total));
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
