#include <nlohmann/json.hpp>

#include "answers/json.h"
#include "answers/ledger/ledger_text.h"

namespace gmt::answers {
namespace {

using analysis::Ledger;
using analysis::LedgerRow;
using Json = nlohmann::ordered_json;

Json RowJson(const LedgerRow& row) {
  Json json = {
      {"name", row.name},
      {"bytes", row.bytes},
      {"group", std::string(analysis::NameOf(row.group))},
      {"releasable", row.releasable},
      {"known_by", row.known_by},
      {"detail", OrNull(row.detail)},
      {"count", row.count == 0 ? Json(nullptr) : Json(row.count)},
      {"stack", row.stack == 0 ? Json(nullptr) : Json("stack/" + std::to_string(row.stack))}};
  if (row.private_bytes > 0) json["private_bytes"] = row.private_bytes;
  return json;
}

// Adds the keys of one device after those that `json` already has.
void AddLedger(const Ledger& ledger, Json& json) {
  json["device"] = ledger.device;
  json["at"] = ledger.at.name;
  json["t_ns"] = ledger.at.t_ns;
  json["source"] = OrNull(ledger.source);
  json["driver_used_bytes"] = ledger.driver_used_bytes;
  json["total_bytes"] = OrNull(ledger.total_bytes);
  json["process_bytes"] = ledger.process_bytes();
  json["reported_process_bytes"] = OrNull(ledger.reported_process_bytes);
  json["rows"] = Json::array();
  for (const LedgerRow& row : ledger.rows) json["rows"].push_back(RowJson(row));
  json["unexplained_bytes"] = ledger.unexplained_bytes;
  json["unexplained_in_process_bytes"] = ledger.unexplained_in_process;
  json["not_counted"] = Json::array();
  for (const analysis::NotCounted& uncounted : ledger.not_counted) {
    json["not_counted"].push_back(
        {{"name", uncounted.name}, {"bytes", uncounted.bytes}, {"why", uncounted.why}});
  }
  json["reading"] = nullptr;
  if (!ledger.source.empty()) {
    json["reading"] = {{"t_ns", ledger.reading_t_ns},
                       {"used_bytes", ledger.reading_used_bytes},
                       {"recorded_since_bytes", ledger.recorded_since}};
  }
}

}  // namespace

std::string LedgerJson(const std::vector<Ledger>& ledgers, const LedgerSource& source) {
  Json json = {{"schema", "gpumemtrace.ledger/1"}, {"file", source.file}};
  if (ledgers.empty()) {
    json["driver_used_bytes"] = 0;
    json["rows"] = Json::array();
    json["unexplained_bytes"] = 0;
  } else {
    AddLedger(Fullest(ledgers), json);
  }
  json["devices"] = Json::array();
  for (const Ledger& ledger : ledgers) {
    json["devices"].emplace_back();
    AddLedger(ledger, json["devices"].back());
  }
  json["live"] = source.is_live;
  json["lacks"] = source.lacks;
  // A path or a symbol need not be valid UTF-8.
  return JsonText(json, -1);
}

}  // namespace gmt::answers
