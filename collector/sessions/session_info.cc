#include "collector/sessions/session_info.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "format/version.h"
#include "proto/gmt.pb.h"
#include "session/session_file.h"

namespace gmt::collector {
namespace {

constexpr uint32_t kMaxApi = 4096;  // API numbers have 12 bits

std::pair<std::string, std::string> Split(std::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == std::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

void AddApi(std::string_view value, std::vector<std::string>* apis) {
  const auto [number, name] = Split(value, ' ');
  uint32_t id;
  if (!absl::SimpleAtoi(number, &id) || id >= kMaxApi) return;
  if (id >= apis->size()) apis->resize(id + 1);
  (*apis)[id] = name;
}

// Returns the field that receives the whole value of a name in the info section, or nullptr.
std::string* TextField(std::string_view name, SessionInfo* info) {
  const std::pair<std::string_view, std::string*> fields[] = {
      {"output", &info->output},
      {"run_id", &info->run_id},
      {"exe", &info->exe},
      {"cwd", &info->cwd},
      {"hostname", &info->hostname},
      {"shim", &info->shim},
      {"rank", &info->rank},
      {"job", &info->job},
      {"local_rank", &info->local_rank},
      {"version", &info->version},
      {"unwinder", &info->unwinder},
      {"world_size", &info->world_size},
      {"node_rank", &info->node_rank},
      {"restart_count", &info->restart_count},
  };
  for (const auto& [field, text] : fields) {
    if (field == name) return text;
  }
  return nullptr;
}

void SetNumber(const std::string& text, void (gmt::Facts::*set)(int32_t), gmt::Facts* facts) {
  int32_t value;
  if (absl::SimpleAtoi(text, &value)) (facts->*set)(value);
}

// Adds the options of the attach after the process's own, so that they take precedence.
void AddOptionsOfAttach(const session::Control& control, SessionInfo* info) {
  const uint32_t size = control.attach_options_size.load(std::memory_order_acquire);
  const std::string text(control.attach_options,
                         std::min<size_t>(size, sizeof(control.attach_options)));
  for (const std::string& pair :
       std::vector<std::string>(absl::StrSplit(text, ',', absl::SkipEmpty())))
    info->options.push_back(Split(pair, '='));
}

}  // namespace

SessionInfo ReadSessionInfo(const session::SessionMap& session) {
  // Copied first, because its writer may overwrite it while it is parsed.
  const std::string text(session.section<const char>(session::kInfo),
                         session.count(session::kInfo));
  SessionInfo info;
  session::ForEachInfo(text, [&](std::string_view name, std::string_view value) {
    if (std::string* field = TextField(name, &info)) *field = value;
    if (name == "arg") info.argv.emplace_back(value);
    if (name == "api") AddApi(value, &info.apis);
    if (name == "option") info.options.push_back(Split(value, '='));
    if (name == "setting") info.settings.push_back(Split(value, '='));
    if (name == "source") info.sources.push_back(Split(value, '='));
  });
  if (session.has_attach_gate()) {
    info.started_by = "attach";
    AddOptionsOfAttach(session.control(), &info);
  }
  return info;
}

gmt::Header MakeHeader(const session::Header& session, const SessionInfo& info) {
  gmt::Header header;
  header.set_tool_version(std::string(format::ToolVersion()));
  header.set_run_id(info.run_id);
  header.set_start_unix_ns(session.realtime_ns);
  header.set_start_monotonic_ns(session.monotonic_ns);
  header.set_pid(session.pid);
  header.set_pid_namespace(session.pid_namespace);
  header.set_hostname(info.hostname);
  header.set_boot_id(session.boot_id, sizeof(session.boot_id));
  return header;
}

gmt::Facts MakeStartFacts(const session::Header& session, const SessionInfo& info) {
  gmt::Facts facts;
  facts.set_pid(session.pid);
  for (const std::string& arg : info.argv) facts.add_argv(arg);
  facts.set_executable(info.exe);
  facts.set_working_directory(info.cwd);
  for (const auto& [name, value] : info.settings) AddSetting(facts.mutable_settings(), name, value);
  for (const auto& [name, value] : info.options) AddSetting(facts.mutable_options(), name, value);
  for (const auto& [name, value] : info.sources) AddSetting(facts.mutable_sources(), name, value);
  SetNumber(info.rank, &gmt::Facts::set_rank, &facts);
  SetNumber(info.local_rank, &gmt::Facts::set_local_rank, &facts);
  SetNumber(info.world_size, &gmt::Facts::set_world_size, &facts);
  SetNumber(info.node_rank, &gmt::Facts::set_node_rank, &facts);
  SetNumber(info.restart_count, &gmt::Facts::set_restart_count, &facts);
  if (!info.job.empty()) facts.set_job(info.job);
  if (!info.started_by.empty()) facts.set_started_by(info.started_by);
  facts.mutable_exit()->set_kind(gmt::Exit::RUNNING);
  return facts;
}

void AddSetting(google::protobuf::RepeatedPtrField<gmt::Setting>* settings, const std::string& name,
                const std::string& value) {
  gmt::Setting* setting = settings->Add();
  setting->set_name(name);
  setting->set_value(value);
}

}  // namespace gmt::collector
