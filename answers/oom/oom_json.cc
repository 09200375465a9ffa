#include <nlohmann/json.hpp>

#include "answers/frag/pins.h"
#include "answers/json.h"
#include "answers/oom/oom_text.h"
#include "answers/stacks/alive_text.h"
#include "answers/stacks/stack_json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Examination;
using analysis::OomReport;
using analysis::OomVerdict;
using Json = nlohmann::ordered_json;

constexpr size_t kPinningStacks = 5;

Json ExpectedJson(const analysis::ExpectedPeak& expected) {
  if (expected.bytes == 0) return nullptr;
  return {{"bytes", expected.bytes},
          {"from", NameOf(expected.basis)},
          {"floor_bytes", expected.floor_bytes},
          {"least_bytes", expected.least_bytes},
          {"earlier_steps", expected.earlier_steps},
          {"earlier_peak_bytes", expected.earlier_peak},
          {"input_ratio", expected.input_ratio}};
}

Json EvidenceJson(const analysis::OomEvidence& evidence) {
  return {
      {"total_bytes", evidence.total_bytes == 0 ? Json(nullptr) : Json(evidence.total_bytes)},
      {"needed_bytes", evidence.needed_bytes},
      {"live_bytes", evidence.live_bytes},
      {"free_bytes", evidence.free_bytes},
      {"largest_free_bytes", evidence.largest_free_bytes},
      {"reserved_bytes", evidence.reserved_bytes},
      {"outside_bytes", evidence.outside_bytes},
      {"other_processes_bytes", evidence.other_processes_bytes},
      {"not_apart_bytes", evidence.not_apart_bytes},
      {"system_bytes", evidence.system_bytes},
      {"unexplained_bytes", evidence.unexplained_bytes},
      {"leaked_bytes", evidence.leaked_bytes},
      {"available_bytes", evidence.available_bytes},
      {"expected", ExpectedJson(evidence.expected)},
      {"driver_free_bytes", OrNull(evidence.driver_free_bytes)},
      {"limit_bytes", OrNull(evidence.limit_bytes)},
      {"driver_refused", evidence.driver_refused},
      {"captures", evidence.captures},
      {"retries", evidence.retries},
      {"first_retry_t_ns", evidence.retries == 0 ? Json(nullptr) : Json(evidence.first_retry_t_ns)},
      {"retry_ns", evidence.retry_ns},
      {"split",
       {{"releasable", evidence.split.releasable},
        {"pinned", evidence.split.pinned},
        {"stream", evidence.split.stream},
        {"private_pool", evidence.split.private_pool},
        {"awaiting_stream", evidence.split.awaiting_stream}}}};
}

Json ActionsJson(const std::vector<analysis::OomAction>& actions) {
  Json json = Json::array();
  for (const analysis::OomAction& action : actions) {
    json.push_back({{"do", action.what},
                    {"effect_bytes", action.effect_bytes},
                    {"enough", action.suffices == analysis::Suffices::kYes},
                    {"perhaps_enough", action.suffices != analysis::Suffices::kNo},
                    {"estimate", action.is_estimate},
                    {"why", action.why}});
  }
  return json;
}

Json LiveJson(const OomReport& report, const Examination& examination) {
  Json categories = Json::array(), holders = Json::array();
  for (const analysis::CategoryUse& use : report.categories) {
    categories.push_back({{"category", NameOf(use.category)},
                          {"bytes", use.bytes},
                          {"count", use.count},
                          {"confidence", NameOf(use.confidence)}});
  }
  for (const analysis::OomHolder& holder : report.holders) {
    Json& row =
        holders.emplace_back(Json{{"id", OrNull(StackId(holder.stack, holder.forward_stack))},
                                  {"bytes", holder.bytes},
                                  {"count", holder.count},
                                  {"category", NameOf(holder.category)},
                                  {"alive", AliveJson(holder.alive)}});
    AddStack(examination, holder.stack, holder.forward_stack, row);
  }
  return {{"categories", categories}, {"stacks", holders}};
}

Json PinnedJson(const OomReport& report, const Examination& examination,
                analysis::SourceLines& sources) {
  if (report.pins.empty()) return nullptr;
  const MainPins main = MainPinsOf(examination.trace(), report.pins);
  return {{"blocks", main.blocks},
          {"block_bytes", main.block_bytes},
          {"pinned_bytes", main.pinned_bytes},
          {"stacks", PinsJson(analysis::GroupPins(examination.trace(), report.pins), examination,
                              sources, kPinningStacks)}};
}

Json OutsideJson(const std::vector<analysis::LedgerRow>& outside) {
  Json rows = Json::array();
  for (const analysis::LedgerRow& row : outside) {
    rows.push_back({{"name", row.name},
                    {"bytes", row.bytes},
                    {"group", analysis::NameOf(row.group)},
                    {"detail", OrNull(row.detail)}});
  }
  return rows;
}

Json OptimizerJson(const analysis::Optimizer& optimizer) {
  if (optimizer.name.empty()) return nullptr;
  return {
      {"class", optimizer.name}, {"place", OrNull(optimizer.place)}, {"known", optimizer.is_known}};
}

void AddFailure(const OomReport& report, const Examination& examination,
                analysis::SourceLines& sources, Json& json) {
  json["device"] = report.device;
  json["heap"] = report.heap;
  json["t_ns"] = report.t_ns;
  json["step"] = OrNull(report.cycle);
  json["phase"] = report.phase ? Json(NameOf(*report.phase)) : Json(nullptr);
  json["fatal"] = report.was_fatal;
  json["stack"] = OrNull(StackId(report.stack, report.forward_stack));
  AddStack(examination, report.stack, report.forward_stack, json);
  json["source"] = OrNull(SourceText(examination, report.stack, report.forward_stack, sources));
  json["leak"] = OrNull(report.leak_id);
  json["dtype"] = OrNull(report.dtype);
  json["shape"] = OrNull(report.shape);
  json["square"] = OrNull(report.square);
}

}  // namespace

std::string OomJson(const OomReport& report, const Examination& examination,
                    analysis::SourceLines& sources, const std::string& file) {
  Json json = NewJson("oom", file);
  const bool failed = IsFailure(report.verdict);
  json["verdict"] = NameOf(report.verdict);
  json["confidence"] = NameOf(report.confidence);
  json["requested_bytes"] = failed ? Json(report.requested_bytes) : Json(nullptr);
  json["evidence"] = EvidenceJson(report.evidence);
  json["actions"] = ActionsJson(report.actions);
  json["not"] = ActionsJson(report.not_helpful);
  json["failures"] = report.failures;
  json["host_failures"] = report.host_failures;
  json["findings"] = report.findings;
  json["causes"] = Json::array();
  for (const analysis::OomCause& cause : report.causes) {
    json["causes"].push_back({{"verdict", NameOf(cause.verdict)}, {"bytes", cause.bytes}});
  }
  if (failed) AddFailure(report, examination, sources, json);
  json["live"] = LiveJson(report, examination);
  json["pins"] = PinnedJson(report, examination, sources);
  json["outside"] = OutsideJson(report.outside);
  json["still_to_come"] = nullptr;
  if (report.still_to_come) {
    const analysis::StillToCome& coming = *report.still_to_come;
    json["still_to_come"] = {{"observed", coming.observed},
                             {"gradient_bytes", coming.gradient_bytes},
                             {"optimizer_bytes", coming.optimizer_bytes},
                             {"most_optimizer_bytes", coming.most_optimizer_bytes},
                             {"optimizer", OptimizerJson(coming.optimizer)},
                             {"floor_bytes", coming.floor_bytes}};
  }
  return JsonText(json);
}

}  // namespace gmt::answers
