// The tables of training steps and their phases, and of what each GPU holds at its peak.

#include <algorithm>

#include "answers/sql/table_list.h"

namespace gmt::answers::sql {

namespace {

const analysis::Cycles& CyclesOf(Source& s) { return s.recording().examination().cycles(); }
const analysis::CycleUse& UseOf(Source& s, const Source::StepUse& use) {
  return CyclesOf(s).devices[use.device].cycles[use.step];
}

const analysis::PhaseUse& PhaseOf(Source& s, uint64_t row) {
  const Source::PhaseRow& at = s.phases()[row];
  return UseOf(s, at.use).phases[at.phase];
}

}  // namespace

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
          {"peak_bytes", "INTEGER", "maximum of live bytes during it",
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
              {"peak_bytes", "INTEGER", "maximum of live bytes during it",
               [](Source& s, uint64_t row, Cell& cell) {
                 cell.Integer(static_cast<int64_t>(PhaseOf(s, row).peak));
               }},
              {"change_bytes", "INTEGER", "live bytes at its end minus those at its beginning",
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

}  // namespace gmt::answers::sql
