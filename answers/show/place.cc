// The history of an address: which memory contained it, and when.

#include "analysis/show/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/categories/alive_by_category.h"
#include "analysis/text.h"
#include "analysis/trace/recorded_time.h"
#include "answers/json.h"
#include "answers/show/row.h"
#include "answers/stacks/alive_text.h"

namespace gmt::answers {
namespace {

using analysis::kNever;
using analysis::kNoRow;
using analysis::Place;
using analysis::RowId;
using analysis::Rows;
using analysis::Subject;
using analysis::Trace;
using Json = nlohmann::ordered_json;

// Returns the memory that a user most likely asks for: the innermost that is held at the end,
// otherwise the last.
RowId LastOwner(const Trace& trace, const Place& place) {
  for (const auto* rows : {&place.inner, &place.outer}) {
    for (auto row = rows->rbegin(); row != rows->rend(); ++row) {
      if (trace.rows.death[*row] == kNever) return *row;
    }
  }
  if (!place.inner.empty()) return place.inner.back();
  return place.outer.empty() ? kNoRow : place.outer.back();
}

std::string HeadlineOf(const ShowInput& input, const Place& place, RowId owner) {
  const std::string address = Address(place.address);
  if (owner == kNoRow) {
    return fmt::format("block/{}: mapped {}, but no recorded memory was there", address,
                       Plural(place.mappings.size(), "time"));
  }
  const Rows& rows = input.trace().rows;
  const bool is_held = rows.death[owner] == kNever;
  const size_t before = place.inner.size() + place.outer.size() - 1;
  return fmt::format("block/{} {} in {} of {} on {}: {}; {}", address, is_held ? "is" : "was last",
                     Bytes(rows.size[owner]), input.trace().heaps[rows.heap[owner]],
                     PlaceName(rows.device[owner]), HeldText(input.trace(), owner),
                     before == 0   ? "the only one at this address"
                     : before == 1 ? "1 other at this address"
                                   : fmt::format("{} others at this address", Count(before)));
}

void AddOwners(const ShowInput& input, const std::string& heading, const std::vector<RowId>& rows,
               ShowPage& page) {
  if (rows.empty()) return;
  const size_t shown = std::min(rows.size(), input.top);
  page.Part(shown == rows.size()
                ? heading
                : fmt::format("{}, the last {} of {}", heading, shown, Count(rows.size())));
  for (size_t i = rows.size() - shown; i < rows.size(); ++i) {
    const RowId row = rows[i];
    const uint32_t stack = input.trace().rows.stack[row];
    const std::string numbers = fmt::format("  {:<32} {:>9}  ", HeldText(input.trace(), row),
                                            Bytes(input.trace().rows.size[row]));
    const std::string id = stack == 0 ? "" : "   " + StackId(stack);
    const size_t taken = numbers.size() + id.size();
    const size_t room = page.width() > taken + 10 ? page.width() - taken : 10;
    page.Line(numbers + Shortened(StackName(input, stack, room), room) + id);
  }
}

std::string Neighbour(const ShowInput& input, const char* where, RowId row) {
  const Rows& rows = input.trace().rows;
  return fmt::format("{} is {} of {} at {}", where, Bytes(rows.size[row]),
                     input.trace().heaps[rows.heap[row]], Address(rows.address[row]));
}

absl::Status Nothing(const ShowInput& input, const Subject& subject, const Place& place) {
  std::string why = fmt::format("no recorded memory contains {}", Address(place.address));
  if (place.below != kNoRow) why += "; " + Neighbour(input, "below it", place.below);
  if (place.above != kNoRow) why += "; " + Neighbour(input, "above it", place.above);
  return NoSuch(input, subject, why);
}

}  // namespace

std::string HeldText(const Trace& trace, RowId row) {
  const Rows& rows = trace.rows;
  const int64_t from = trace.TimeOf(rows.birth[row]);
  const std::string begin = rows.birth[row] == 0 ? "from before" : Duration(from);
  if (rows.death[row] == kNever) return begin + " to the end";
  const int64_t to = trace.TimeOf(rows.death[row]);
  if (rows.birth[row] == 0) return fmt::format("{} to {}", begin, Duration(to));
  const auto lasted =
      static_cast<int64_t>(std::min<uint64_t>(analysis::Between(from, to), INT64_MAX));
  return fmt::format("{} to {} ({})", begin, Duration(to), Duration(lasted));
}

namespace {

std::vector<analysis::Alive> AliveAtItsEnd(const ShowInput& input, RowId row) {
  const Trace& trace = input.trace();
  const analysis::Step death = trace.rows.death[row];
  const analysis::Step end = death == kNever ? trace.last_step() : death - 1;
  analysis::AliveSums sums;
  analysis::AliveByCategory(trace, input.categories, end).AddTo(sums, row, trace.rows.size[row]);
  return sums.Sorted(input.examination.stacks());
}

std::string TensorText(const ShowInput& input, RowId row) {
  const format::Definitions& definitions = input.examination.definitions();
  const std::string dtype(definitions.string(input.trace().rows.Dtype(row)));
  const std::string shape(definitions.string(input.trace().rows.Shape(row)));
  return dtype.empty() || shape.empty() ? dtype + shape : dtype + " " + shape;
}

}  // namespace

void AddTensorFacts(const ShowInput& input, RowId row, ShowPage& page) {
  page.Fact("tensor", TensorText(input, row));
  const std::vector<analysis::Alive> alive = AliveAtItsEnd(input, row);
  page.Fact("alive as", AliveText(alive));
  AddSavers(alive, page);
}

void AddSavers(const std::vector<analysis::Alive>& alive, ShowPage& page) {
  const std::vector<std::string> lines = SaverLines(alive);
  if (lines.empty()) return;
  page.Part("Saved for backward, by node (what several nodes saved counts for each)");
  for (const std::string& line : lines) page.Line("  " + line);
}

Json RowJson(const ShowInput& input, RowId row) {
  const Trace& trace = input.trace();
  const Rows& rows = trace.rows;
  const bool has_stream = (rows.flags[row] & analysis::kRowHasStream) != 0;
  const bool has_thread = (rows.flags[row] & analysis::kRowHasThread) != 0;
  const auto requested = rows.Requested(row);
  const analysis::Categories::Assignment& category = input.categories.Of(row);
  return {
      {"address", rows.address[row]},
      {"size", rows.size[row]},
      {"requested", requested ? Json(*requested) : Json(nullptr)},
      {"device", DeviceJson(rows.device[row])},
      {"heap", trace.heaps[rows.heap[row]]},
      {"from_t_ns", rows.birth[row] == 0 ? Json(nullptr) : Json(trace.TimeOf(rows.birth[row]))},
      {"to_t_ns", rows.death[row] == kNever ? Json(nullptr) : Json(trace.TimeOf(rows.death[row]))},
      {"stream", has_stream ? Json(rows.stream[row]) : Json(nullptr)},
      {"thread", has_thread ? Json(rows.thread[row]) : Json(nullptr)},
      {"category", NameOf(category.category)},
      {"confidence", NameOf(category.confidence)},
      {"id", rows.stack[row] == 0 ? Json(nullptr) : Json(StackId(rows.stack[row]))},
      {"dtype", OrNull(std::string(input.examination.definitions().string(rows.Dtype(row))))},
      {"shape", OrNull(std::string(input.examination.definitions().string(rows.Shape(row))))},
      {"alive", AliveJson(AliveAtItsEnd(input, row))}};
}

ShowResult ShowPlace(const ShowInput& input, const Subject& subject) {
  const Place place = PlaceAt(input.trace(), subject.number);
  if (place.empty()) return Nothing(input, subject, place);
  const RowId owner = LastOwner(input.trace(), place);
  ShowAnswer answer{ShowPage(input.terminal, input.file), {}};
  ShowPage& page = answer.page;
  const std::string headline = HeadlineOf(input, place, owner);
  page.Headline(headline);
  if (owner != kNoRow) AddTensorFacts(input, owner, page);
  AddOwners(input, "Blocks at this address", place.inner, page);
  AddOwners(input, "Driver memory at this address", place.outer, page);
  if (!place.mappings.empty()) {
    page.Fact("mapped",
              fmt::format("{}, the last one at {}", Plural(place.mappings.size(), "time"),
                          Duration(input.trace().mappings[place.mappings.back()].birth_t_ns)));
  }
  const uint32_t stack = owner == kNoRow ? 0 : input.trace().rows.stack[owner];
  if (stack != 0) page.Next("show", StackId(stack));
  answer.json = {{"id", subject.id()},       {"kind", NameOf(subject.kind)},
                 {"what", headline},         {"address", place.address},
                 {"inner", Json::array()},   {"outer", Json::array()},
                 {"mappings", Json::array()}};
  for (const RowId row : place.inner) answer.json["inner"].push_back(RowJson(input, row));
  for (const RowId row : place.outer) answer.json["outer"].push_back(RowJson(input, row));
  for (const uint32_t index : place.mappings) {
    const analysis::Mapping& mapping = input.trace().mappings[index];
    answer.json["mappings"].push_back(
        {{"address", mapping.address},
         {"size", mapping.size},
         {"device", DeviceJson(mapping.device)},
         {"from_t_ns", mapping.birth_t_ns},
         {"to_t_ns", mapping.death == kNever ? Json(nullptr) : Json(mapping.death_t_ns)}});
  }
  return answer;
}

}  // namespace gmt::answers
