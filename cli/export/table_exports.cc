// The formats that are tables, those of `query`: csv, jsonl and sqlite, which SQLite writes, and
// arrow.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "answers/sql/query.h"
#include "answers/sql/tables.h"
#include "cli/command.h"
#include "cli/export/export_file.h"
#include "cli/export/formats.h"
#include "cli/open_recording.h"
#include "cli/output_file.h"
#include "cli/terminal.h"
#include "interop/profile/layer_selection.h"

namespace gmt::cli {
namespace {

using answers::sql::Query;
using answers::sql::Table;

// The recordings to export, as tables.
class OpenedTables {
 public:
  static absl::StatusOr<OpenedTables> Open(const ExportArguments& arguments,
                                           answers::TextForm form) {
    auto rules = arguments.frames.Rules();
    if (!rules.ok()) return rules.status();
    auto query = Query::Make();
    if (!query.ok()) return query.status();
    OpenedTables tables(*std::move(query));
    for (const std::string& file : arguments.files) {
      auto recording = OpenRecording(file, {.frames = *rules, .text = form});
      if (!recording.ok()) return recording.status();
      tables.recordings_.push_back(*std::move(recording));
      // A stripped copy has a temporary path, and the directories are private.
      tables.query_->Add(
          *tables.recordings_.back(),
          arguments.strip.any() ? std::filesystem::path(file).filename().string() : file);
    }
    return tables;
  }

  Query& query() { return *query_; }
  const std::vector<std::unique_ptr<answers::Recording>>& recordings() const { return recordings_; }
  void PrintLacksOfAll() const {
    for (const auto& recording : recordings_) PrintLacks(*recording);
  }

 private:
  explicit OpenedTables(std::unique_ptr<Query> query) : query_(std::move(query)) {}

  std::vector<std::unique_ptr<answers::Recording>> recordings_;
  std::unique_ptr<Query> query_;  // refers to the recordings
};

// Returns the tables with these names, in their order; by default, the allocations.
absl::StatusOr<std::vector<const Table*>> SelectTables(const std::vector<std::string>& names) {
  const std::vector<Table>& tables = answers::sql::Tables();
  std::vector<const Table*> selected;
  if (names == std::vector<std::string>{"all"}) {
    for (const Table& table : tables) selected.push_back(&table);
    return selected;
  }
  if (names.empty()) return std::vector<const Table*>{&tables.front()};
  for (const std::string& name : names) {
    if (name == "all") return UsageError("--table all includes all tables; give no other one");
    const auto named = std::find_if(tables.begin(), tables.end(),
                                    [&](const Table& table) { return table.name == name; });
    if (named == tables.end()) {
      return UsageError(absl::StrCat(
          "--table ", name, ": expected all, or one of ",
          absl::StrJoin(tables, ", ",
                        [](std::string* text, const Table& table) { text->append(table.name); })));
    }
    selected.push_back(&*named);
  }
  return selected;
}

// Returns the table that csv or jsonl writes: one, because its columns are those of the file.
absl::StatusOr<const Table*> SelectTable(const ExportArguments& arguments) {
  const auto selected = SelectTables(arguments.tables);
  if (!selected.ok()) return selected.status();
  if (selected->size() > 1) {
    return UsageError(absl::StrCat("--format ", arguments.format,
                                   " writes one table; give one --table for each file"));
  }
  const Table* const table = selected->front();
  const bool selects_rows = arguments.device || !arguments.heap.empty();
  if (selects_rows && table != &answers::sql::Tables().front())
    return UsageError("--device and --heap select rows of the table memory only");
  return table;
}

// Returns the statement that selects every allocation, or those of a device and a heap.
std::string SelectAllocations(const ExportArguments& arguments) {
  std::string sql = "SELECT *, stack_text(file, stack) AS stack_text FROM memory WHERE 1";
  if (arguments.device) absl::StrAppend(&sql, " AND device = ", *arguments.device);
  if (!arguments.heap.empty()) {
    absl::StrAppend(&sql, " AND heap = '", absl::StrReplaceAll(arguments.heap, {{"'", "''"}}), "'");
  }
  return sql;
}

absl::StatusOr<int> ExportTable(const ExportArguments& arguments, answers::sql::Form form,
                                answers::TextForm text) {
  const auto table = SelectTable(arguments);
  if (!table.ok()) return table.status();
  const std::string select = *table == &answers::sql::Tables().front()
                                 ? SelectAllocations(arguments)
                                 : absl::StrCat("SELECT * FROM ", (*table)->name);
  auto file = ExportFile::Create(arguments);
  if (!file.ok()) return file.status();
  auto tables = OpenedTables::Open(arguments, text);
  if (!tables.ok()) return tables.status();
  for (const auto& recording : tables->recordings()) {
    const auto selected =
        interop::LayerSelection::Make(recording->trace(), arguments.device, arguments.heap);
    if (!selected.ok()) return recording->InFile(selected.status());
  }
  const auto written = tables->query().Run(select, {.form = form, .seconds = 0},
                                           [&](std::string_view row) { file->stream() << row; });
  if (!written.ok()) return written.status();
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  tables->PrintLacksOfAll();
  return kDone;
}

}  // namespace

absl::StatusOr<int> ExportCsv(const ExportArguments& arguments) {
  return ExportTable(arguments, answers::sql::Form::kCsv, answers::TextForm::kPrintable);
}

absl::StatusOr<int> ExportJsonLines(const ExportArguments& arguments) {
  return ExportTable(arguments, answers::sql::Form::kJsonLines, answers::TextForm::kAsRecorded);
}

absl::StatusOr<int> ExportSqlite(const ExportArguments& arguments) {
  auto output = OutputFile::Create(arguments.output, arguments.force);
  if (!output.ok()) return output.status();
  auto tables = OpenedTables::Open(arguments, answers::TextForm::kAsRecorded);
  if (!tables.ok()) return tables.status();
  if (absl::Status status = tables->query().Export(output->path()); !status.ok())
    return absl::Status(status.code(), absl::StrCat(arguments.output, ": ", status.message()));
  if (absl::Status status = output->Commit(); !status.ok()) return status;
  PrintNote(fmt::format("{}: to view: sqlite3 {} 'SELECT * FROM categories'", arguments.output,
                        arguments.output));
  tables->PrintLacksOfAll();
  return kDone;
}

absl::StatusOr<int> ExportArrow(const ExportArguments& arguments) {
  const auto selected = SelectTables(arguments.tables);
  if (!selected.ok()) return selected.status();
  auto file = ExportFile::Create(arguments);
  if (!file.ok()) return file.status();
  auto tables = OpenedTables::Open(arguments, answers::TextForm::kAsRecorded);
  if (!tables.ok()) return tables.status();
  for (const Table* table : *selected) {
    const absl::Status written = tables->query().WriteArrow(
        *table, [&](std::string_view bytes) { file->stream() << bytes; });
    if (!written.ok())
      return absl::Status(written.code(), absl::StrCat(arguments.output, ": ", written.message()));
  }
  if (absl::Status status = file->Commit(); !status.ok()) return status;
  tables->PrintLacksOfAll();
  return kDone;
}

}  // namespace gmt::cli
