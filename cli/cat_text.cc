#include "cli/cat_text.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <type_traits>

#include "analysis/text.h"
#include "interop/event_log/event_log_fields.h"
#include "proto/gmt.pb.h"

namespace gmt::cli {
namespace {

using format::Event;
using format::EventBatch;
using interop::EventField;

bool IsBytes(std::string_view key) {
  return key == "size" || key == "requested" || key == "total_allocated" || key == "total_reserved";
}

bool IsHandle(std::string_view key) {
  return key == "address" || key == "handle" || key == "stream" || key == "object" || key == "pool";
}

std::string Number(std::string_view key, uint64_t value) {
  if (key == "address") return Address(value);
  if (IsBytes(key)) return fmt::format("{} {}", key, Bytes(value));
  if (IsHandle(key)) return fmt::format("{} {:#x}", key, value);
  if (key == "duration_ns") return Duration(static_cast<int64_t>(value));
  return fmt::format("{} {}", key, value);
}

std::string Sampled(const Sample& sample) {
  const bool is_free_only = !sample.has_used_bytes() && sample.has_free_bytes();
  std::string text = is_free_only ? fmt::format("free {}", Bytes(sample.free_bytes()))
                                  : fmt::format("used {} of {}", Bytes(sample.used_bytes()),
                                                Bytes(sample.total_bytes()));
  for (const Sample::ProcessUse& process : sample.processes()) {
    text += fmt::format(", pid {} {}", process.pid(),
                        process.has_bytes() ? Bytes(process.bytes()) : "?");
  }
  return text;
}

std::string Detail(const EventBatch& batch, const Event& event) {
  switch (format::FamilyOf(event.kind)) {
    case format::Family::kSample:
      return Sampled(batch.samples[event.detail]);
    case format::Family::kSnapshot:
      return batch.snapshots[event.detail].name();
    case format::Family::kGap:
      return fmt::format("{} events lost: {}", Count(batch.gaps[event.detail].events()),
                         batch.gaps[event.detail].reason());
    case format::Family::kOther:
      return event.kind == OTHER_KIND ? batch.others[event.detail] : "";
    default:
      return "";
  }
}

std::string RolesText(const Event& event) {
  if (event.kind == ROLE && event.roles == 0) return "no role";
  return fmt::format("{}", fmt::join(interop::RoleNames(event.roles), "+"));
}

std::string Seconds(int64_t t_ns) { return fmt::format("{:.9f}", static_cast<double>(t_ns) / 1e9); }

}  // namespace

std::string CatText::Describe(const EventBatch& batch, const Event& event) const {
  std::string text;
  const auto append = [&](const std::string& word) {
    if (!word.empty()) text.append("  ").append(word);
  };
  for (const EventField& field : interop::FieldsOf(format::FamilyOf(event.kind))) {
    if (std::string_view(field.key) == "t_ns") continue;
    std::visit(
        [&](auto member) {
          const auto value = event.*member;
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Memory>) {
            append(std::string(interop::MemoryName(value)));
          } else if (field.type == EventField::Type::kText) {
            append(std::string(definitions_.string(static_cast<uint32_t>(value))));
          } else if (field.type == EventField::Type::kStack) {
            if (value != 0) append(fmt::format("{}/{}", field.key, value));
          } else if (field.type == EventField::Type::kRoles) {
            append(RolesText(event));
          } else if (event.has(field.bit)) {
            append(Number(field.key, static_cast<uint64_t>(value)));
          }
        },
        field.member);
  }
  append(Detail(batch, event));
  return text;
}

absl::Status CatText::OnEvents(const EventBatch& batch) {
  for (const Event& event : batch.events) {
    if (event.kind == STACK_LINE) continue;
    const std::string_view kind = interop::KindName(event.kind);
    const std::string time = event.has(format::kHasTime) ? Seconds(event.t_ns) : "-";
    fmt::print("{:>16}  {:<14}{}\n", time, kind.empty() ? "other" : kind, Describe(batch, event));
  }
  return absl::OkStatus();
}

absl::Status CatText::OnSnapshot(const Snapshot& snapshot) {
  fmt::print("{:>16}  {:<14}  snapshot/{}  {}{}\n", Seconds(snapshot.t_ns()), "live_set",
             snapshot.name(), Plural(snapshot.live().count(), "live allocation"),
             snapshot.exact() ? "" : "  not exact");
  return absl::OkStatus();
}

}  // namespace gmt::cli
