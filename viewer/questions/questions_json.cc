#include "viewer/questions/questions_json.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/text.h"

namespace gmt::viewer {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json FrameJson(const Frame& frame) {
  return {{"function", frame.function},
          {"file", frame.file},
          {"line", frame.line},
          {"library", frame.library},
          {"kind", TextOf(frame.kind)}};
}

Json StackOrNull(const std::optional<StackInfo>& stack) {
  return stack ? ToJson(*stack) : Json(nullptr);
}

Json NeighbourJson(const std::optional<Neighbour>& neighbour) {
  if (!neighbour) return nullptr;
  return {{"row", neighbour->row}, {"size", neighbour->size}, {"label", neighbour->label}};
}

Json RowJson(const TableRow& row) {
  Json block = nullptr;
  if (row.block) {
    block = {{"address", Address(row.block->address)},
             {"category", row.block->category},
             {"birth", row.block->birth},
             {"birth_ns", row.block->birth_ns}};
  }
  return {{"id", row.id},
          {"name", row.name},
          {"where", row.where},
          {"bytes", row.bytes},
          {"blocks", row.blocks},
          {"peak_bytes", row.peak_bytes},
          {"mean_size", row.mean_size},
          {"median_lifetime_ns", OrNull(row.median_lifetime_ns)},
          {"block", std::move(block)},
          {"stack", row.stack},
          {"sparkline", row.sparkline}};
}

Json AmountsJson(const RangeAmounts& amounts) {
  return {{"bytes", amounts.bytes},
          {"byte_seconds", amounts.byte_seconds},
          {"allocations", amounts.allocations},
          {"growth", amounts.growth},
          {"end_bytes", amounts.end_bytes}};
}

Json TotalJson(const RangeTotal& range) {
  return {{"total", AmountsJson(range.total)},
          {"peak_event", range.peak_event},
          {"peak_ns", range.peak_ns},
          {"from_ns", range.from_ns},
          {"to_ns", range.to_ns}};
}

Json RangeRowJson(const RangeRow& row) {
  Json json = {{"id", row.id},
               {"name", row.name},
               {"where", row.where},
               {"inclusive", OrNull(row.inclusive)},
               {"stack", row.stack}};
  json.update(AmountsJson(row.amounts));
  json["other"] = nullptr;
  if (row.other) {
    json["other"] = AmountsJson(*row.other);
    json["other"]["inclusive"] = OrNull(row.other_inclusive);
  }
  return json;
}

Json SegmentJson(const SegmentState& segment) {
  return {{"address", Address(segment.address)},
          {"size", segment.size},
          {"pool", segment.pool},
          {"stream", segment.stream},
          {"expandable", segment.expandable},
          {"stack", segment.stack},
          {"offset", segment.offset},
          {"bytes", segment.bytes},
          {"requested", segment.requested},
          {"row", segment.row},
          {"pending", segment.pending},
          {"category", segment.category},
          {"key", segment.key}};
}

}  // namespace

Json ToJson(const StackInfo& stack) {
  Json json = {{"stack", stack.stack},   {"key", stack.key},   {"label", stack.label},
               {"site", stack.site},     {"line", stack.line}, {"backward_of", stack.backward_of},
               {"frames", Json::array()}};
  for (const Frame& frame : stack.frames) json["frames"].push_back(FrameJson(frame));
  return json;
}

Json ToJson(const std::vector<StackInfo>& stacks) {
  Json json = Json::array();
  for (const StackInfo& stack : stacks) json.push_back(ToJson(stack));
  return json;
}

Json ToJson(const BlockDetails& block) {
  Json segment = nullptr;
  if (block.segment) {
    segment = {{"address", Address(block.segment->address)},
               {"size", block.segment->size},
               {"offset", block.segment->offset}};
  }
  return {{"row", block.row},
          {"lane", OrNull(block.lane)},
          {"address", Address(block.address)},
          {"size", block.size},
          {"requested", OrNull(block.requested)},
          {"name", block.name},
          {"category", block.category},
          {"reason", block.reason},
          {"confidence", block.confidence},
          {"stream", block.stream},
          {"thread", block.thread},
          {"pool", block.pool},
          {"tensor", block.tensor},
          {"alive", block.alive},
          {"birth", block.birth},
          {"birth_ns", block.birth_ns},
          {"death", block.death},
          {"death_ns", OrNull(block.death_ns)},
          {"completed", block.completed},
          {"completed_ns", OrNull(block.completed_ns)},
          {"step", OrNull(block.step)},
          {"phase", block.phase},
          {"stack", ToJson(block.stack)},
          {"free_stack", StackOrNull(block.free_stack)},
          {"forward_stack", StackOrNull(block.forward_stack)},
          {"segment", segment},
          {"before", NeighbourJson(block.before)},
          {"after", NeighbourJson(block.after)},
          {"same_stack",
           {{"blocks", block.same_stack.blocks},
            {"live_bytes", block.same_stack.live_bytes},
            {"peak_bytes", block.same_stack.peak_bytes}}}};
}

Json ToJson(const SourceText& source) {
  return {{"path", source.path},
          {"first", source.first},
          {"lines", source.lines},
          {"note", source.note}};
}

Json ToJson(const Table& table) {
  Json rows = Json::array();
  for (const TableRow& row : table.rows) rows.push_back(RowJson(row));
  return {{"rows", std::move(rows)},
          {"total_rows", table.total_rows},
          {"total_bytes", table.total_bytes},
          {"total_blocks", table.total_blocks}};
}

Json ToJson(const RangeTable& table) {
  Json rows = Json::array();
  for (const RangeRow& row : table.rows) rows.push_back(RangeRowJson(row));
  Json json = TotalJson(table);
  json["rows"] = std::move(rows);
  json["total_rows"] = table.total_rows;
  json["other"] = table.other ? TotalJson(*table.other) : Json();
  return json;
}

Json ToJson(const Segments& segments) {
  Json list = Json::array();
  for (const SegmentState& segment : segments.segments) list.push_back(SegmentJson(segment));
  return {{"event", segments.event},
          {"ns", segments.ns},
          {"what", segments.what},
          {"row", segments.row},
          {"segments", std::move(list)},
          {"live_bytes", segments.live_bytes},
          {"reserved_bytes", segments.reserved_bytes},
          {"largest_hole", segments.largest_hole}};
}

Json ToJson(const EventRow& row) {
  return {{"event", row.event},
          {"ns", row.ns},
          {"kind", TextOf(row.kind)},
          {"row", row.row},
          {"bytes", OrNull(row.bytes)},
          {"address", row.address ? Json(Address(*row.address)) : Json("")},
          {"heap", row.heap},
          {"stream", row.stream},
          {"text", row.text}};
}

Json ToJson(const EventPage& page) {
  Json rows = Json::array();
  for (const EventRow& row : page.rows) rows.push_back(ToJson(row));
  return {{"rows", std::move(rows)},
          {"total", page.total},
          {"position", page.position},
          {"counts", page.counts},
          {"note", ""}};
}

Json ToJson(const Found& found) {
  return {{"rows", found.row},
          {"birth", found.birth},
          {"death", found.death},
          {"size", found.size},
          {"total", found.total}};
}

Json CompareJson(const Alignment& alignment, const std::string& headline, const Json& diff) {
  const char* by = alignment.by == Alignment::kStep   ? "step"
                   : alignment.by == Alignment::kTime ? "time"
                                                      : "event";
  return {{"headline", headline}, {"json", diff}, {"aligned_by", by}, {"steps", alignment.steps}};
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gmt::viewer
