#include "answers/show/life_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "answers/json.h"
#include "answers/show/show.h"
#include "answers/stacks/alive_text.h"
#include "answers/stacks/stack_json.h"

namespace gmt::answers {
namespace {

using analysis::Life;
using analysis::LifeValue;
using Json = nlohmann::ordered_json;

Json ValuesJson(const std::vector<LifeValue>& values) {
  Json json = Json::array();
  for (const LifeValue& value : values) {
    json.push_back({{"value", value.value}, {"count", value.count}, {"bytes", value.bytes}});
  }
  return json;
}

Json PartsJson(const analysis::Trace& trace, const Life& life) {
  Json json = Json::array();
  for (const analysis::LifePart& part : life.parts) {
    json.push_back({{"device", DeviceJson(part.device)},
                    {"heap", trace.heaps[part.heap]},
                    {"peak_bytes", part.peak_bytes},
                    {"allocations", part.allocations},
                    {"frees", part.frees},
                    {"from_before", part.from_before},
                    {"held", part.held},
                    {"held_bytes", part.held_bytes}});
  }
  return json;
}

Json AtPeaksJson(const analysis::Trace& trace, const Life& life) {
  Json json = Json::array();
  for (const analysis::LifeAtPeak& at : life.at_peaks) {
    json.push_back({{"device", DeviceJson(at.device)},
                    {"heap", trace.heaps[at.heap]},
                    {"t_ns", at.t_ns},
                    {"bytes", at.bytes},
                    {"count", at.count},
                    {"device_bytes", at.device_bytes}});
  }
  return json;
}

Json CategoriesJson(const Life& life) {
  Json json = Json::array();
  for (const analysis::LifeCategory& category : life.categories) {
    json.push_back({{"category", NameOf(category.category)},
                    {"confidence", NameOf(category.confidence)},
                    {"reason", category.reason},
                    {"bytes", category.bytes},
                    {"count", category.count}});
  }
  return json;
}

Json CyclesJson(const Life& life) {
  Json json = Json::array();
  for (const analysis::LifeCycle& cycle : life.cycles) {
    json.push_back(
        {{"births", cycle.births}, {"frees", cycle.frees}, {"peak_bytes", cycle.peak_bytes}});
  }
  return json;
}

}  // namespace

Json LifeJson(const analysis::Examination& examination, const Life& life) {
  const analysis::Trace& trace = examination.trace();
  const analysis::Lifetimes& lifetimes = life.lifetimes;
  const analysis::LifeSizes& sizes = life.sizes;
  return {{"peak_bytes", life.peak_bytes},
          {"peak_count", life.peak_count},
          {"peak_t_ns", life.peak_t_ns},
          {"allocations", life.allocations},
          {"frees", life.frees},
          {"from_before", life.from_before},
          {"held", life.held},
          {"held_bytes", life.held_bytes},
          {"allocated_bytes", life.allocated_bytes},
          {"first_t_ns", OrNull(life.first_t_ns)},
          {"last_t_ns", OrNull(life.last_t_ns)},
          {"begin_t_ns", life.begin_t_ns},
          {"end_t_ns", life.end_t_ns},
          {"most_bytes", life.most_bytes},
          {"parts", PartsJson(trace, life)},
          {"at_peaks", AtPeaksJson(trace, life)},
          {"lifetimes",
           {{"count", lifetimes.count},
            {"median_ns", lifetimes.median_ns},
            {"p90_ns", lifetimes.p90_ns},
            {"longest_ns", lifetimes.longest_ns},
            {"same_step", lifetimes.same_step},
            {"next_step", lifetimes.next_step},
            {"later_step", lifetimes.later_step}}},
          {"sizes",
           {{"smallest", sizes.smallest},
            {"biggest", sizes.biggest},
            {"distinct", sizes.distinct},
            {"more", sizes.more},
            {"most_common", sizes.most_common},
            {"most_common_count", sizes.most_common_count}}},
          {"steps", CyclesJson(life)},
          {"categories", CategoriesJson(life)},
          {"alive", AliveJson(life.alive)},
          {"threads", ValuesJson(life.threads)},
          {"streams", ValuesJson(life.streams)},
          {"forward_stacks", ValuesJson(life.forward_stacks)},
          {"free_stacks", ValuesJson(life.free_stacks)}};
}

Json StacksJson(const analysis::Examination& examination, const std::vector<LifeValue>& stacks,
                size_t top) {
  Json json = Json::array();
  for (size_t i = 0; i < std::min(stacks.size(), top); ++i) {
    const auto stack = static_cast<uint32_t>(stacks[i].value);
    json.push_back({{"id", StackId(stack)},
                    {"bytes", stacks[i].bytes},
                    {"count", stacks[i].count},
                    {"frames", FramesJson(examination.stacks().Frames(stack))}});
  }
  return json;
}

}  // namespace gmt::answers
