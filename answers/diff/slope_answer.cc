#include "answers/diff/slope_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/text.h"
#include "answers/diff/diff_text.h"
#include "answers/json.h"
#include "answers/report/tensors.h"
#include "answers/stacks/stack_json.h"

namespace gmt::answers {
namespace {

using analysis::GrowthParts;
using analysis::InputSize;
using analysis::Slope;
using analysis::SlopeRow;
using Json = nlohmann::ordered_json;

constexpr size_t kSlopeRows = 12;
constexpr size_t kSlopeColumn = 36;  // at which the text of a row begins
constexpr size_t kMinSlopeTitle = 30;

// ---- Text ---------------------------------------------------------------------------------------

std::string InputsText(const Slope& slope, const InputSize& inputs) {
  switch (slope.unit) {
    case Slope::Unit::kByte:
      return Bytes(inputs.bytes) + " of inputs";
    case Slope::Unit::kToken:
      return fmt::format("{} x {} tokens", Count(inputs.samples), Count(inputs.tokens));
    case Slope::Unit::kSample:
      break;
  }
  return Plural(inputs.samples, "sample") +
         (inputs.tokens > 0 ? fmt::format(" of {} tokens", Count(inputs.tokens)) : "");
}

std::string PerUnitText(const Slope& slope, uint64_t bytes) {
  if (bytes == 0) return "-";
  const double each = slope.PerUnit(bytes);
  return each < 1000 ? fmt::format("{:.3g} B", each) : Bytes(static_cast<uint64_t>(each));
}

std::string SlopeLine(const std::string& bytes, const std::string& each, const std::string& growth,
                      const std::string& what) {
  std::string line = fmt::format("{:>9}  {:>11}  {:<10}  {}", bytes, each, growth, what);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string PartsText(const Slope& slope) {
  std::string text = SlopeLine("bytes", fmt::format("per {}", NameOf(slope.unit)), "growth", "");
  const auto add = [&](uint64_t bytes, bool grows, const char* growth, const std::string& what) {
    if (bytes > 0)
      text += SlopeLine(Bytes(bytes), grows ? PerUnitText(slope, bytes) : "-", growth, what);
  };
  add(slope.parts.constant, false, "constant", "");
  add(slope.parts.linear, true, "linear", "");
  add(slope.parts.quadratic, true, "quadratic",
      slope.unit == Slope::Unit::kToken
          ? fmt::format("at {} tokens; twice that at {}", Count(slope.large.tokens),
                        Count(2 * slope.large.tokens))
          : "at this size; twice that at twice the size");
  add(slope.parts.unclear, false, "unclear", "");
  return text + SlopeLine(Bytes(slope.moment.new_bytes), "", "", "total");
}

std::string SquareText(const Slope& slope, size_t width) {
  if (slope.square.empty()) return "";
  const std::string origin = OriginOf(slope.square.front());
  return Wrapped(
             fmt::format("attention: {}{}{}; F.scaled_dot_product_attention keeps none of its {}",
                         slope.square.front().shape, origin.empty() ? "" : " of ", origin,
                         Bytes(slope.square_bytes)),
             width, "  ") +
         "\n";
}

std::string SlopeRowText(const Slope& slope, const SlopeRow& row, size_t width) {
  const GrowthParts& parts = row.parts;
  const std::string id = "   " + row.row.new_id;
  const size_t room = std::max(kMinSlopeTitle, width - std::min(width, kSlopeColumn + id.size()));
  return SlopeLine(Bytes(parts.linear + parts.quadratic + parts.unclear),
                   PerUnitText(slope, parts.linear + parts.quadratic),
                   std::string(NameOf(row.growth)), Shortened(DiffTitle(row.row, room), room) + id);
}

std::string SlopeText(const Slope& slope, size_t top, const Terminal& terminal) {
  const size_t width = static_cast<size_t>(std::max(terminal.width, 60));
  std::string text =
      terminal.Bold(fmt::format("GPU {}: {} with {}, {} with {}", slope.moment.device,
                                Bytes(slope.moment.base_bytes), InputsText(slope, slope.base),
                                Bytes(slope.moment.new_bytes), InputsText(slope, slope.large)));
  text +=
      "\n" + DiffMoment(slope.moment) + "\n\n" + PartsText(slope) + SquareText(slope, width) + "\n";
  size_t shown = 0;
  for (const SlopeRow& row : slope.rows) {
    // What only the smaller run held.
    if (row.row.new_bytes == 0) continue;
    if (shown++ < top) text += SlopeRowText(slope, row, width);
  }
  if (shown > top) text += Plural(shown - top, "other stack") + "; --top N shows more\n";
  return text;
}

// ---- JSON ---------------------------------------------------------------------------------------

Json InputsJson(const InputSize& inputs) {
  const auto known = [](uint64_t value) { return value == 0 ? Json(nullptr) : Json(value); };
  return {{"samples", known(inputs.samples)},
          {"tokens", known(inputs.tokens)},
          {"bytes", known(inputs.bytes)}};
}

void AddParts(const Slope& slope, const GrowthParts& parts, Json& json) {
  json["constant_bytes"] = parts.constant;
  json["linear_bytes"] = parts.linear;
  json["quadratic_bytes"] = parts.quadratic;
  json["unclear_bytes"] = parts.unclear;
  json["linear_bytes_per_unit"] = slope.PerUnit(parts.linear);
  json["quadratic_bytes_per_unit"] = slope.PerUnit(parts.quadratic);
}

Json SlopeRowJson(const Slope& slope, const SlopeRow& row) {
  Json json = {{"growth", NameOf(row.growth)}};
  AddParts(slope, row.parts, json);
  json.update(
      Json{{"base_bytes", row.row.base_bytes},
           {"new_bytes", row.row.new_bytes},
           {"base_count", row.row.base_count},
           {"new_count", row.row.new_count},
           {"heap", row.row.heap},
           {"category", NameOf(row.row.category)},
           {"base_id", OrNull(row.row.base_id)},
           {"new_id", OrNull(row.row.new_id)},
           {"frames", FramesJson(row.row.frames)},
           {"forward_frames",
            row.row.forward_frames.empty() ? Json(nullptr) : FramesJson(row.row.forward_frames)}});
  return json;
}

Json SlopeJson(const Slope& slope) {
  Json json = {{"device", slope.moment.device},         {"base_device", slope.moment.base_device},
               {"aligned_on", slope.moment.aligned_on}, {"base_t_ns", slope.moment.base_at.t_ns},
               {"new_t_ns", slope.moment.new_at.t_ns},  {"base_bytes", slope.moment.base_bytes},
               {"new_bytes", slope.moment.new_bytes},   {"base_inputs", InputsJson(slope.base)},
               {"new_inputs", InputsJson(slope.large)}, {"unit", NameOf(slope.unit)}};
  AddParts(slope, slope.parts, json);
  json["square_bytes"] = slope.square_bytes;
  json["rows"] = Json::array();
  for (const SlopeRow& row : slope.rows) json["rows"].push_back(SlopeRowJson(slope, row));
  return json;
}

}  // namespace

SlopeAnswer::SlopeAnswer(analysis::Slopes slopes, std::string base_file, std::string large_file)
    : slopes_(std::move(slopes)),
      base_file_(std::move(base_file)),
      large_file_(std::move(large_file)) {}

absl::StatusOr<SlopeAnswer> SlopeAnswer::Make(const Recording& first, const Recording& second,
                                              const analysis::DiffOptions& options) {
  auto slopes = analysis::FindSlopes(first.examination(), first.categories(), second.examination(),
                                     second.categories(), options);
  if (!slopes.ok()) return slopes.status();
  const bool swapped = slopes->swapped;
  return SlopeAnswer(*std::move(slopes), swapped ? second.path() : first.path(),
                     swapped ? first.path() : second.path());
}

std::string SlopeAnswer::Text(const Terminal& terminal, size_t top) const {
  std::string text;
  for (const Slope& slope : slopes_.devices) {
    if (!text.empty()) text += "\n";
    text += SlopeText(slope, top == 0 ? kSlopeRows : top, terminal);
  }
  const std::vector<SlopeRow>& rows = slopes_.devices.front().rows;
  if (rows.empty() || rows.front().row.new_id.empty()) return text;
  return text + fmt::format("Next: gpumemtrace show {} {}\n", large_file_, rows.front().row.new_id);
}

std::string SlopeAnswer::Json() const {
  nlohmann::ordered_json json = NewJson("slope", large_file_);
  json["base_file"] = base_file_;
  json["devices"] = Json::array();
  for (const Slope& slope : slopes_.devices) json["devices"].push_back(SlopeJson(slope));
  return JsonText(json, -1);
}

}  // namespace gmt::answers
