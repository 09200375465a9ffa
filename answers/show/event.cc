// One allocation or free, by its number.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/text.h"
#include "answers/show/row.h"
#include "answers/stacks/stack_json.h"

namespace gmt::answers {
namespace {

using analysis::kNoRow;
using analysis::RowId;
using analysis::Rows;
using analysis::Step;
using analysis::Subject;
using analysis::Trace;
using Json = nlohmann::ordered_json;

std::string Whose(const Rows& rows, RowId row) {
  std::string text;
  if ((rows.flags[row] & analysis::kRowHasThread) != 0) {
    text += fmt::format("thread {}", rows.thread[row]);
  }
  if ((rows.flags[row] & analysis::kRowHasStream) != 0) {
    text += fmt::format("{}stream {:#x}", text.empty() ? "" : ", ", rows.stream[row]);
  }
  return text;
}

// Describes the matching free or allocation.
std::string Other(const Trace& trace, RowId row, bool is_death) {
  const Step other = is_death ? trace.rows.birth[row] : trace.rows.death[row];
  if (other == 0) return "allocated before the recording";
  if (other == analysis::kNever) return "never freed";
  return fmt::format("{} at {}: event/{}", is_death ? "allocated" : "freed",
                     Duration(trace.TimeOf(other)), other);
}

std::string StepOf(const ShowInput& input, Step step) {
  const analysis::Cycles& cycles = input.examination.cycles();
  for (size_t i = 0; i < cycles.cycles.size(); ++i) {
    if (cycles.cycles[i].begin < step && step <= cycles.cycles[i].end) {
      return fmt::format("in step/{} of {}", i + 1, cycles.cycles.size());
    }
  }
  return "";
}

}  // namespace

ShowResult ShowEvent(const ShowInput& input, const Subject& subject) {
  const Trace& trace = input.trace();
  if (subject.number == 0 || subject.number > trace.last_step()) return NoSuch(input, subject);
  const auto step = static_cast<Step>(subject.number);
  const analysis::StepRecord record = trace.steps[step - 1];
  if (record.row == kNoRow) {
    return NoSuch(
        input, subject,
        fmt::format("{} is a free that the driver refused: it had no effect", subject.id()));
  }
  const Rows& rows = trace.rows;
  const RowId row = record.row;
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  ShowPage& page = answer.page;
  const std::string headline = fmt::format(
      "{} {} {} of {} on {}, at {}: {}", subject.id(), record.is_death ? "freed" : "allocated",
      Bytes(rows.size[row]), trace.heaps[rows.heap[row]], PlaceName(rows.device[row]),
      Duration(record.t_ns), StackName(input, rows.stack[row], 60));
  page.Headline(headline);
  page.Fact("block",
            fmt::format(
                "{}, {} B{}", Address(rows.address[row]), rows.size[row],
                rows.Requested(row) ? fmt::format(", {} B requested", *rows.Requested(row)) : ""));
  page.Fact("held",
            fmt::format("{}; {}", HeldText(trace, row), Other(trace, row, record.is_death)));
  page.Fact("from", Whose(rows, row));
  const analysis::Categories::Assignment& category = input.categories.Of(row);
  page.Fact("category", fmt::format("{} (confidence {}): {}", TextOf(category.category),
                                    NameOf(category.confidence), input.categories.Reason(row)));
  AddTensorFacts(input, row, page);
  page.Fact("step", StepOf(input, step));
  page.Part("Allocated by");
  for (const std::string& line :
       FramesWithSource(input.examination.stacks().Frames(rows.stack[row]), input.shown,
                        input.sources, page.width())) {
    page.Line(line);
  }
  if (rows.stack[row] != 0) page.Next("show", StackId(rows.stack[row]));
  page.Next("show", fmt::format("block/{}", Address(rows.address[row])));
  page.Next("report", fmt::format("--at event:{}", step));
  answer.json = {{"id", subject.id()},
                 {"kind", NameOf(subject.kind)},
                 {"what", headline},
                 {"event", step},
                 {"t_ns", record.t_ns},
                 {"is_free", record.is_death},
                 {"memory", RowJson(input, row)},
                 {"frames", FramesJson(input.examination.stacks().Frames(rows.stack[row]))}};
  return answer;
}

}  // namespace gmt::answers
