#include "interop/event_log/event_log_json.h"

#include <algorithm>

#include "proto/gmt.pb.h"

// Fields whose key is their name in the proto. PUT and TAKE of a message list the same fields in
// the same order.
#define GMT_PUT(message, field) \
  if (message.has_##field()) (*object)[#field] = message.field();
#define GMT_PUT_IF_SET(message, field)                              \
  if (message.field() != std::decay_t<decltype(message.field())>{}) \
    (*object)[#field] = message.field();
#define GMT_TAKE_NUMBER(message, field)                                                        \
  if (const Json* value = Find(object, #field); value != nullptr) {                            \
    message.set_##field(WholeNumber<std::decay_t<decltype(message.field())>>(*value, #field)); \
  }
#define GMT_TAKE_TEXT(message, field)                               \
  if (const Json* value = Find(object, #field); value != nullptr) { \
    message.set_##field(Text(*value, #field));                      \
  }

// clang-format off
#define GMT_LOSSES(FIELD, losses) \
  FIELD(losses, written) FIELD(losses, delivered) FIELD(losses, overrun) FIELD(losses, holes) \
  FIELD(losses, abandoned) FIELD(losses, backlog) FIELD(losses, stacks_full) \
  FIELD(losses, live_full) FIELD(losses, before_session) FIELD(losses, no_real_function) \
  FIELD(losses, in_flight_full) FIELD(losses, modules_full) FIELD(losses, unrepresentable) \
  FIELD(losses, passed_unhooked) FIELD(losses, contexts_full) \
  FIELD(losses, texts_full) FIELD(losses, codes_full) FIELD(losses, activities_dropped)
// clang-format on

namespace gmt::interop {
namespace {

const Json& Array(const Json& value, const char* key) {
  if (!value.is_array()) throw BadLine(std::string("\"") + key + "\" must be a list");
  return value;
}

const Json& Object(const Json& value, const char* key) {
  if (!value.is_object()) throw BadLine(std::string("\"") + key + "\" must be an object");
  return value;
}

// Reads a list of objects with `take`.
template <typename Target, typename Take>
void TakeList(const Json& object, const char* key, Target* target, Take take) {
  const Json* list = Find(object, key);
  if (list == nullptr) return;
  for (const Json& item : Array(*list, key)) *target->Add() = take(Object(item, key));
}

template <typename List, typename Put>
void PutList(const List& list, const char* key, Json* object, Put put) {
  if (list.empty()) return;
  Json& items = (*object)[key] = Json::array();
  for (const auto& item : list) {
    items.push_back(Json::object());
    put(item, &items.back());
  }
}

using Settings = google::protobuf::RepeatedPtrField<Setting>;

// The line and the settings themselves are two levels.
constexpr int kMaxSettingNesting = kMaxNesting - 2;

void PutSettings(const Settings& settings, const char* key, Json* object) {
  if (settings.empty()) return;
  Json& values = (*object)[key] = Json::object();
  for (const Setting& setting : settings) {
    const bool is_json = setting.json() && NestingOf(setting.value()) <= kMaxSettingNesting;
    Json value = is_json ? Json::parse(setting.value(), nullptr, false) : Json(setting.value());
    values[setting.name()] = value.is_discarded() ? Json(setting.value()) : std::move(value);
  }
}

void TakeSettings(const Json& object, const char* key, Settings* settings) {
  const Json* values = Find(object, key);
  if (values == nullptr) return;
  for (const auto& [name, value] : Object(*values, key).items()) {
    Setting* setting = settings->Add();
    setting->set_name(name);
    setting->set_json(!value.is_string());
    setting->set_value(value.is_string() ? value.get<std::string>() : value.dump());
  }
}

void PutDevice(const Device& device, Json* object) {
  (*object)["index"] = device.index();
  GMT_PUT(device, name)
  GMT_PUT(device, uuid)
  GMT_PUT(device, pci_bus_id)
  GMT_PUT(device, total_bytes)
  GMT_PUT(device, physical_index)
  GMT_PUT(device, compute_capability)
}

Device TakeDevice(const Json& object) {
  Device device;
  GMT_TAKE_NUMBER(device, index)
  GMT_TAKE_TEXT(device, name)
  GMT_TAKE_TEXT(device, uuid)
  GMT_TAKE_TEXT(device, pci_bus_id)
  GMT_TAKE_NUMBER(device, total_bytes)
  GMT_TAKE_NUMBER(device, physical_index)
  GMT_TAKE_TEXT(device, compute_capability)
  return device;
}

constexpr std::pair<Exit::How, const char*> kExits[] = {{Exit::EXITED, "exited"},
                                                        {Exit::SIGNALLED, "signalled"},
                                                        {Exit::RUNNING, "running"},
                                                        {Exit::LOST, "lost"}};

void PutExit(const Exit& exit, Json* object) {
  for (const auto& [how, name] : kExits) {
    if (exit.kind() == how) (*object)["kind"] = name;
  }
  GMT_PUT(exit, code)
  GMT_PUT_IF_SET(exit, known_by)
}

Exit TakeExit(const Json& object) {
  Exit exit;
  const Json* kind = Find(object, "kind");
  for (const auto& [how, name] : kExits) {
    if (kind != nullptr && *kind == name) exit.set_kind(how);
  }
  GMT_TAKE_NUMBER(exit, code)
  GMT_TAKE_TEXT(exit, known_by)
  return exit;
}

void PutProcess(const Sample::ProcessUse& process, Json* object) {
  (*object)["pid"] = process.pid();
  GMT_PUT(process, bytes)
  GMT_PUT_IF_SET(process, name)
}

Sample::ProcessUse TakeProcess(const Json& object) {
  Sample::ProcessUse process;
  GMT_TAKE_NUMBER(process, pid)
  GMT_TAKE_NUMBER(process, bytes)
  GMT_TAKE_TEXT(process, name)
  return process;
}

void PutTotal(const HeapTotal& total,
              Json* object){GMT_PUT_IF_SET(total, heap) GMT_PUT(total, device)
                                GMT_PUT(total, allocated_bytes) GMT_PUT(total, reserved_bytes)}

HeapTotal TakeTotal(const Json& object) {
  HeapTotal total;
  GMT_TAKE_TEXT(total, heap)
  GMT_TAKE_NUMBER(total, device)
  GMT_TAKE_NUMBER(total, allocated_bytes)
  GMT_TAKE_NUMBER(total, reserved_bytes)
  return total;
}

}  // namespace

// ---- Values -------------------------------------------------------------------------------------

int NestingOf(std::string_view text) {
  int depth = 0, deepest = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (is_quoted) {
      i += c == '\\';
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

const Json* Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const std::string& Text(const Json& value, const char* key) {
  if (!value.is_string())
    throw BadLine(std::string("\"") + key + "\" must be text, not " + value.dump());
  return value.get_ref<const std::string&>();
}

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string FromHex(const std::string& digits, const char* key) {
  const auto digit = [&](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw BadLine(std::string("\"") + key + "\" must be hexadecimal digits");
  };
  if (digits.size() % 2 != 0)
    throw BadLine(std::string("\"") + key + "\" must be pairs of hexadecimal digits");
  std::string bytes;
  for (size_t at = 0; at < digits.size(); at += 2) {
    bytes.push_back(static_cast<char>(digit(digits[at]) << 4 | digit(digits[at + 1])));
  }
  return bytes;
}

std::string Line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// ---- Header and facts ---------------------------------------------------------------------------

void PutHeader(const Header& header, Json* object) {
  (*object)["schema"] = kEventLogSchema;
  GMT_PUT_IF_SET(header, start_unix_ns)
  GMT_PUT_IF_SET(header, start_monotonic_ns)
  GMT_PUT_IF_SET(header, tool_version)
  GMT_PUT_IF_SET(header, run_id)
  GMT_PUT_IF_SET(header, hostname)
  if (!header.boot_id().empty()) (*object)["boot_id"] = Hex(header.boot_id());
  GMT_PUT_IF_SET(header, pid)
  GMT_PUT_IF_SET(header, pid_namespace)
  GMT_PUT_IF_SET(header, part)
}

Header TakeHeader(const Json& object) {
  if (const Json* schema = Find(object, "schema");
      schema != nullptr && *schema != kEventLogSchema) {
    throw BadLine("its schema is " + schema->dump() + "; this release reads \"" + kEventLogSchema +
                  "\"");
  }
  Header header;
  header.set_has_start(true);
  GMT_TAKE_NUMBER(header, start_unix_ns)
  GMT_TAKE_NUMBER(header, start_monotonic_ns)
  GMT_TAKE_TEXT(header, tool_version)
  GMT_TAKE_TEXT(header, run_id)
  GMT_TAKE_TEXT(header, hostname)
  if (const Json* boot_id = Find(object, "boot_id"); boot_id != nullptr) {
    header.set_boot_id(FromHex(Text(*boot_id, "boot_id"), "boot_id"));
  }
  GMT_TAKE_NUMBER(header, pid)
  GMT_TAKE_NUMBER(header, pid_namespace)
  GMT_TAKE_NUMBER(header, part)
  return header;
}

void PutFacts(const Facts& facts, Json* object) {
  GMT_PUT(facts, pid)
  GMT_PUT(facts, parent_pid)
  PutList(facts.devices(), "devices", object, PutDevice);
  if (!facts.argv().empty()) (*object)["argv"] = Json(facts.argv());
  GMT_PUT_IF_SET(facts, executable)
  GMT_PUT_IF_SET(facts, working_directory)
  PutSettings(facts.settings(), "settings", object);
  PutSettings(facts.libraries(), "libraries", object);
  PutSettings(facts.sources(), "sources", object);
  PutSettings(facts.options(), "options", object);
  GMT_PUT(facts, rank)
  GMT_PUT(facts, local_rank)
  GMT_PUT(facts, world_size)
  GMT_PUT(facts, node_rank)
  GMT_PUT(facts, restart_count)
  GMT_PUT_IF_SET(facts, job)
  GMT_PUT_IF_SET(facts, started_by)
  GMT_PUT_IF_SET(facts, ended_by)
  GMT_PUT(facts, end_t_ns)
  if (facts.has_exit()) PutExit(facts.exit(), &((*object)["exit"] = Json::object()));
  if (facts.has_losses()) PutLosses(facts.losses(), &((*object)["losses"] = Json::object()));
}

Facts TakeFacts(const Json& object) {
  Facts facts;
  GMT_TAKE_NUMBER(facts, pid)
  GMT_TAKE_NUMBER(facts, parent_pid)
  TakeList(object, "devices", facts.mutable_devices(), TakeDevice);
  if (const Json* argv = Find(object, "argv"); argv != nullptr) {
    for (const Json& word : Array(*argv, "argv")) facts.add_argv(Text(word, "argv"));
  }
  GMT_TAKE_TEXT(facts, executable)
  GMT_TAKE_TEXT(facts, working_directory)
  TakeSettings(object, "settings", facts.mutable_settings());
  TakeSettings(object, "libraries", facts.mutable_libraries());
  TakeSettings(object, "sources", facts.mutable_sources());
  TakeSettings(object, "options", facts.mutable_options());
  GMT_TAKE_NUMBER(facts, rank)
  GMT_TAKE_NUMBER(facts, local_rank)
  GMT_TAKE_NUMBER(facts, world_size)
  GMT_TAKE_NUMBER(facts, node_rank)
  GMT_TAKE_NUMBER(facts, restart_count)
  GMT_TAKE_TEXT(facts, job)
  GMT_TAKE_TEXT(facts, started_by)
  GMT_TAKE_TEXT(facts, ended_by)
  GMT_TAKE_NUMBER(facts, end_t_ns)
  if (const Json* exit = Find(object, "exit"); exit != nullptr)
    *facts.mutable_exit() = TakeExit(Object(*exit, "exit"));
  if (const Json* losses = Find(object, "losses"); losses != nullptr) {
    *facts.mutable_losses() = TakeLosses(Object(*losses, "losses"));
  }
  return facts;
}

void PutLosses(const Losses& losses, Json* object){GMT_LOSSES(GMT_PUT, losses)}

Losses TakeLosses(const Json& object) {
  Losses losses;
  GMT_LOSSES(GMT_TAKE_NUMBER, losses)
  return losses;
}

// ---- Details of an event ------------------------------------------------------------------------

void PutSample(const Sample& sample, Json* object) {
  GMT_PUT(sample, device)
  GMT_PUT(sample, used_bytes)
  GMT_PUT(sample, total_bytes)
  GMT_PUT(sample, free_bytes)
  GMT_PUT(sample, reserved_bytes)
  GMT_PUT_IF_SET(sample, source)
  PutList(sample.processes(), "processes", object, PutProcess);
}

Sample TakeSample(const Json& object) {
  Sample sample;
  GMT_TAKE_NUMBER(sample, device)
  GMT_TAKE_NUMBER(sample, used_bytes)
  GMT_TAKE_NUMBER(sample, total_bytes)
  GMT_TAKE_NUMBER(sample, free_bytes)
  GMT_TAKE_NUMBER(sample, reserved_bytes)
  GMT_TAKE_TEXT(sample, source)
  TakeList(object, "processes", sample.mutable_processes(), TakeProcess);
  return sample;
}

void PutSnapshotTaken(const SnapshotTaken& snapshot,
                      Json* object){GMT_PUT_IF_SET(snapshot, name) GMT_PUT_IF_SET(snapshot, reason)}

SnapshotTaken TakeSnapshotTaken(const Json& object) {
  SnapshotTaken snapshot;
  GMT_TAKE_TEXT(snapshot, name)
  GMT_TAKE_TEXT(snapshot, reason)
  return snapshot;
}

void PutGap(const Gap& gap, Json* object) {
  if (gap.has_from_t_ns()) (*object)["from"] = gap.from_t_ns();
  if (gap.has_to_t_ns()) (*object)["to"] = gap.to_t_ns();
  GMT_PUT(gap, events)
  GMT_PUT_IF_SET(gap, reason)
  GMT_PUT(gap, first_ticket)
  GMT_PUT(gap, last_ticket)
}

Gap TakeGap(const Json& object) {
  Gap gap;
  if (const Json* from = Find(object, "from"); from != nullptr)
    gap.set_from_t_ns(WholeNumber<int64_t>(*from, "from"));
  if (const Json* to = Find(object, "to"); to != nullptr)
    gap.set_to_t_ns(WholeNumber<int64_t>(*to, "to"));
  GMT_TAKE_NUMBER(gap, events)
  GMT_TAKE_TEXT(gap, reason)
  GMT_TAKE_NUMBER(gap, first_ticket)
  GMT_TAKE_NUMBER(gap, last_ticket)
  return gap;
}

// ---- Live sets ----------------------------------------------------------------------------------

void PutSnapshot(const Snapshot& snapshot, Json* object) {
  (*object)["t_ns"] = snapshot.t_ns();
  GMT_PUT_IF_SET(snapshot, name)
  GMT_PUT_IF_SET(snapshot, reason)
  (*object)["exact"] = snapshot.exact();
  GMT_PUT_IF_SET(snapshot, inexact_because)
  PutList(snapshot.totals(), "totals", object, PutTotal);
  PutList(snapshot.samples(), "samples", object, PutSample);
  if (snapshot.has_losses()) PutLosses(snapshot.losses(), &((*object)["losses"] = Json::object()));
}

Snapshot TakeSnapshot(const Json& object) {
  Snapshot snapshot;
  GMT_TAKE_NUMBER(snapshot, t_ns)
  GMT_TAKE_TEXT(snapshot, name)
  GMT_TAKE_TEXT(snapshot, reason)
  if (const Json* exact = Find(object, "exact"); exact != nullptr) {
    if (!exact->is_boolean()) throw BadLine("\"exact\" must be true or false");
    snapshot.set_exact(exact->get<bool>());
  }
  GMT_TAKE_TEXT(snapshot, inexact_because)
  TakeList(object, "totals", snapshot.mutable_totals(), TakeTotal);
  TakeList(object, "samples", snapshot.mutable_samples(), TakeSample);
  if (const Json* losses = Find(object, "losses"); losses != nullptr) {
    *snapshot.mutable_losses() = TakeLosses(Object(*losses, "losses"));
  }
  return snapshot;
}

}  // namespace gmt::interop
