#include "answers/report/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/text.h"
#include "answers/json.h"
#include "answers/stacks/stack_json.h"

namespace gmt::answers {
namespace {

using analysis::BatchFacts;
using analysis::ShapedMemory;
using analysis::TensorFacts;
using Json = nlohmann::ordered_json;

constexpr size_t kLargestShown = 2;

const TensorFacts* Find(const std::vector<TensorFacts>& all, int32_t device) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const TensorFacts& of) { return of.device == device; });
  return found == all.end() ? nullptr : &*found;
}

std::string BatchText(const BatchFacts& batch) {
  std::string text = fmt::format("  batch      {:>9}   per sample, batch size {}",
                                 Bytes(batch.bytes_per_sample()), Count(batch.samples));
  if (batch.tokens > 0) {
    text += fmt::format("; {} per token, {} tokens", Bytes(batch.bytes_per_token()),
                        Count(batch.tokens));
  }
  text += fmt::format(" (inputs {} {})\n", batch.input_shape, batch.input_dtype);
  if (batch.square_bytes == 0) return text;
  text += fmt::format("  square     {:>9}   {} with the square of the sequence",
                      Bytes(batch.square_bytes), batch.certain ? "grow" : "may grow");
  const ShapedMemory& first = batch.square.front();
  const std::string origin = OriginOf(first);
  text += fmt::format(": {}{}{}\n", first.shape, origin.empty() ? "" : " of ", origin);
  if (batch.certain) {
    text += fmt::format("  {:21}  F.scaled_dot_product_attention keeps none of it\n", "");
  }
  return text;
}

std::string MixedText(const analysis::MixedActivations& mixed) {
  std::vector<std::string> origins;
  for (const ShapedMemory& memory : mixed.largest) {
    const std::string origin = OriginOf(memory);
    if (origin.empty() || std::find(origins.begin(), origins.end(), origin) != origins.end())
      continue;
    if (origins.size() < kLargestShown) origins.push_back(origin);
  }
  std::string text =
      fmt::format("  float32    {:>9}   of activations next to {} in {}", Bytes(mixed.float_bytes),
                  Bytes(mixed.half_bytes), mixed.half_dtype);
  for (size_t i = 0; i < origins.size(); ++i) text += (i == 0 ? ": " : ", ") + origins[i];
  return text + "\n";
}

Json ShapedJson(const std::vector<ShapedMemory>& all) {
  Json json = Json::array();
  for (const ShapedMemory& memory : all) {
    std::string id = fmt::format("stack/{}", memory.stack);
    if (memory.forward_stack != 0) id += fmt::format("+{}", memory.forward_stack);
    json.push_back({{"id", id},
                    {"dtype", memory.dtype},
                    {"shape", memory.shape},
                    {"node", OrNull(memory.node)},
                    {"place", OrNull(memory.place)},
                    {"bytes", memory.bytes},
                    {"count", memory.count}});
  }
  return json;
}

Json BatchJson(const BatchFacts& batch) {
  return {{"samples", batch.samples},
          {"tokens", batch.tokens == 0 ? Json(nullptr) : Json(batch.tokens)},
          {"input_dtype", batch.input_dtype},
          {"input_shape", batch.input_shape},
          {"bytes", batch.batch_bytes},
          {"bytes_per_sample", batch.bytes_per_sample()},
          {"bytes_per_token", batch.tokens == 0 ? Json(nullptr) : Json(batch.bytes_per_token())},
          {"square_bytes", batch.square_bytes},
          {"certain", batch.certain},
          {"square", ShapedJson(batch.square)}};
}

}  // namespace

std::string OriginOf(const ShapedMemory& memory) {
  if (memory.node.empty()) return memory.place;
  return memory.place.empty() ? memory.node : fmt::format("{} ({})", memory.node, memory.place);
}

std::string TensorFactsText(const std::vector<TensorFacts>& all, int32_t device) {
  const TensorFacts* facts = Find(all, device);
  if (facts == nullptr) return "";
  std::string text;
  if (facts->batch) text += BatchText(*facts->batch);
  if (facts->mixed) text += MixedText(*facts->mixed);
  if (facts->master) {
    text +=
        fmt::format("  master     {:>9}   of float32 master weights, for {} of parameters in {}\n",
                    Bytes(facts->master->master_bytes), Bytes(facts->master->parameter_bytes),
                    facts->master->dtype);
  }
  return text;
}

Json TensorFactsJson(const std::vector<TensorFacts>& all, int32_t device) {
  const TensorFacts* facts = Find(all, device);
  if (facts == nullptr) return nullptr;
  Json json = {{"batch", nullptr}, {"master_weights", nullptr}, {"mixed_activations", nullptr}};
  if (facts->batch) json["batch"] = BatchJson(*facts->batch);
  if (facts->master) {
    json["master_weights"] = {{"dtype", facts->master->dtype},
                              {"parameter_bytes", facts->master->parameter_bytes},
                              {"master_bytes", facts->master->master_bytes}};
  }
  if (facts->mixed) {
    json["mixed_activations"] = {{"half_dtype", facts->mixed->half_dtype},
                                 {"half_bytes", facts->mixed->half_bytes},
                                 {"float32_bytes", facts->mixed->float_bytes},
                                 {"largest", ShapedJson(facts->mixed->largest)}};
  }
  return json;
}

}  // namespace gmt::answers
