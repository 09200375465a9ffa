#include "answers/sql/query.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "analysis/text.h"
#include "answers/sql/arrow_table.h"
#include "answers/sql/virtual_table.h"
#include "format/printable.h"

namespace gmt::answers::sql {
namespace {

constexpr int64_t kMaxHeap = int64_t{2} << 30;  // bytes that SQLite may use: to sort, to group
constexpr int kInstructionsBetweenChecks = 100'000;
constexpr size_t kWidestColumn = 80;  // characters, in a table for people

// ---- Functions ----------------------------------------------------------------------------------

void Human(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
  const std::string text = SignedBytes(sqlite3_value_int64(values[0]));
  const size_t sign = absl::StartsWith(text, "+") ? 1 : 0;  // a size, not a difference
  sqlite3_result_text(context, text.c_str() + sign, -1, SQLITE_TRANSIENT);
}

// stack_text(id), stack_text(file, id)
void StackText(sqlite3_context* context, int count, sqlite3_value** values) {
  auto& sources = *static_cast<std::vector<Source>*>(sqlite3_user_data(context));
  if (sqlite3_value_type(values[count - 1]) == SQLITE_NULL) return;
  Source* source = sources.empty() ? nullptr : &sources.front();
  if (count == 2) {
    const auto* file = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
    const auto named = std::find_if(sources.begin(), sources.end(), [file](const Source& s) {
      return file != nullptr && s.name() == file;
    });
    source = named == sources.end() ? nullptr : &*named;
  } else if (sources.size() > 1) {
    return sqlite3_result_error(
        context, "with several recordings, stack_text needs the file too: stack_text(file, stack)",
        -1);
  }
  if (source == nullptr) return;
  const int64_t stack = sqlite3_value_int64(values[count - 1]);
  if (stack < 0 || stack > source->recording().definitions().stack_count()) return;
  SqliteCell(context).LastingText(source->StackLine(static_cast<uint32_t>(stack)));
}

// ---- Limits -------------------------------------------------------------------------------------

int Permit(void*, int action, const char*, const char* name, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return name != nullptr && std::string_view(name) == "load_extension" ? SQLITE_DENY
                                                                           : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

using Clock = std::chrono::steady_clock;

// Ends a statement that takes too long or that the user interrupts.
class Limits {
 public:
  Limits(sqlite3* connection, const Options& options)
      : connection_(connection), interrupted_(options.interrupted) {
    if (options.seconds > 0) {
      constexpr int64_t kMost = 1'000'000'000;
      end_ = Clock::now() + std::chrono::seconds(std::min(options.seconds, kMost));
    }
    sqlite3_progress_handler(connection, kInstructionsBetweenChecks, IsOver, this);
  }
  ~Limits() { sqlite3_progress_handler(connection_, 0, nullptr, nullptr); }
  bool IsInterrupted() const { return interrupted_ != nullptr && *interrupted_ != 0; }
  // Does not count the time that `work` takes.
  template <typename Work>
  void WithoutTime(const Work& work) {
    const Clock::time_point begin = Clock::now();
    work();
    if (end_) *end_ += Clock::now() - begin;
  }
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

 private:
  static int IsOver(void* at) {
    const auto* limits = static_cast<Limits*>(at);
    return limits->IsInterrupted() || (limits->end_ && Clock::now() > *limits->end_) ? 1 : 0;
  }
  sqlite3* connection_;
  const volatile std::sig_atomic_t* interrupted_;
  std::optional<Clock::time_point> end_;
};

// ---- Output -------------------------------------------------------------------------------------

std::string_view TextOf(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr
             ? std::string_view()
             : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

class Writer {
 public:
  explicit Writer(const Output& output) : output_(output) {}
  virtual ~Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  virtual void Begin(const std::vector<std::string>& names) = 0;
  virtual void Row(sqlite3_stmt* statement) = 0;
  virtual void End(bool more) = 0;

 protected:
  void Write(std::string_view text) { output_(text); }

 private:
  const Output& output_;
};

class CsvWriter : public Writer {
 public:
  using Writer::Writer;
  void Begin(const std::vector<std::string>& names) override {
    std::string line;
    for (const std::string& name : names) Append(line, name);
    Finish(line);
  }
  void Row(sqlite3_stmt* statement) override {
    std::string line;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) Append(line, TextOf(statement, i));
    Finish(line);
  }
  void End(bool) override {}

 private:
  static void Append(std::string& line, std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
      absl::StrAppend(&line, std::string(text), ",");
    } else {
      absl::StrAppend(&line, "\"", absl::StrReplaceAll(std::string(text), {{"\"", "\"\""}}), "\",");
    }
  }
  void Finish(std::string& line) {
    line.back() = '\n';
    Write(line);
  }
};

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;

nlohmann::ordered_json ValueOf(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return nullptr;
    case SQLITE_INTEGER:
      return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    default:
      return std::string(TextOf(statement, column));
  }
}

class JsonLinesWriter : public Writer {
 public:
  using Writer::Writer;
  void Begin(const std::vector<std::string>& names) override { names_ = names; }
  void Row(sqlite3_stmt* statement) override {
    nlohmann::ordered_json row;
    for (size_t i = 0; i < names_.size(); ++i)
      row[names_[i]] = ValueOf(statement, static_cast<int>(i));
    Write(absl::StrCat(row.dump(-1, ' ', true, kReplace), "\n"));
  }
  void End(bool) override {}

 private:
  std::vector<std::string> names_;
};

class JsonWriter : public Writer {
 public:
  using Writer::Writer;
  void Begin(const std::vector<std::string>& names) override {
    Write(absl::StrCat("{\n  \"schema\": \"gpumemtrace.query/1\",\n  \"columns\": ",
                       nlohmann::json(names).dump(-1, ' ', false, kReplace), ",\n  \"rows\": ["));
  }
  void Row(sqlite3_stmt* statement) override {
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) row.push_back(ValueOf(statement, i));
    Write(absl::StrCat(is_first_ ? "\n    " : ",\n    ", row.dump(-1, ' ', false, kReplace)));
    is_first_ = false;
  }
  void End(bool more) override {
    Write(absl::StrCat(is_first_ ? "]" : "\n  ]", ",\n  \"more\": ", more ? "true" : "false",
                       "\n}\n"));
  }

 private:
  bool is_first_ = true;
};

// Columns (not bytes) of UTF-8 text.
size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

class TableWriter : public Writer {
 public:
  TableWriter(const Output& output, bool has_lines) : Writer(output), has_lines_(has_lines) {}

  void Begin(const std::vector<std::string>& names) override {
    rows_.push_back(names);
    is_number_.assign(names.size(), true);
  }
  void Row(sqlite3_stmt* statement) override {
    std::vector<std::string> row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const int type = sqlite3_column_type(statement, i);
      if (type != SQLITE_INTEGER && type != SQLITE_FLOAT && type != SQLITE_NULL)
        is_number_[static_cast<size_t>(i)] = false;
      row.push_back(Shortened(format::Printable(TextOf(statement, i)), kWidestColumn));
    }
    rows_.push_back(std::move(row));
  }
  void End(bool) override {
    std::vector<size_t> widths(is_number_.size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], WidthOf(row[i]));
    }
    Line(widths, "┌", "┬", "┐");
    for (size_t r = 0; r < rows_.size(); ++r) {
      RowText(rows_[r], widths);
      if (r == 0) Line(widths, "├", "┼", "┤");
    }
    Line(widths, "└", "┴", "┘");
  }

 private:
  void Line(const std::vector<size_t>& widths, const char* left, const char* between,
            const char* right) {
    if (!has_lines_) return;
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) {
      line += i == 0 ? left : between;
      for (size_t n = 0; n < widths[i] + 2; ++n) line += "─";
    }
    Write(absl::StrCat(line, right, "\n"));
  }
  void RowText(const std::vector<std::string>& row, const std::vector<size_t>& widths) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - WidthOf(row[i]), ' ');
      if (has_lines_) line += "│ ";
      line += is_number_[i] ? space + row[i] : row[i] + space;
      line += has_lines_ ? " " : "  ";
    }
    if (has_lines_) {
      line += "│";
    } else {
      line.erase(line.find_last_not_of(' ') + 1);
    }
    Write(line + "\n");
  }

  const bool has_lines_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> is_number_;
};

std::unique_ptr<Writer> MakeWriter(Form form, const Output& output) {
  switch (form) {
    case Form::kCsv:
      return std::make_unique<CsvWriter>(output);
    case Form::kJson:
      return std::make_unique<JsonWriter>(output);
    case Form::kJsonLines:
      return std::make_unique<JsonLinesWriter>(output);
    case Form::kTable:
    case Form::kBox:
      break;
  }
  return std::make_unique<TableWriter>(output, form == Form::kBox);
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

absl::Status OneAtATime(const char* next) {
  return absl::InvalidArgumentError(
      absl::StrCat("SQL: one statement at a time; another begins at: ", Shortened(next, 40)));
}

}  // namespace

// ---- Query --------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Query>> Query::Make() {
  auto query = std::unique_ptr<Query>(new Query);
  sqlite3_hard_heap_limit64(kMaxHeap);
  if (sqlite3_open_v2(":memory:", &query->connection_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    return query->Error("");
  }
  if (absl::Status added = query->AddTables(); !added.ok()) return added;
  return query;
}

void Query::Add(const Recording& recording, const std::string& name) {
  sources_.emplace_back(recording, name);
}

Query::~Query() { sqlite3_close(connection_); }

absl::Status Query::AddTables() {
  for (const Table& table : Tables()) {
    if (AddVirtualTable(connection_, table, sources_) != SQLITE_OK) return Error(table.name);
    // Its first use declares it, which a query is not permitted to do. There are no sources yet.
    const absl::Status used = Execute(absl::StrCat("SELECT 1 FROM ", table.name, " LIMIT 0"));
    if (!used.ok()) return used;
  }
  for (const char* function : {"json_each", "json_tree"}) {  // SQLite's own, for shapes
    const absl::Status used = Execute(absl::StrCat("SELECT 1 FROM ", function, "('[]')"));
    if (!used.ok()) return used;
  }
  for (const View& view : Views()) {
    const absl::Status made = Execute(absl::StrCat(
        "CREATE TEMP VIEW ", view.name, " AS SELECT * FROM memory WHERE ", view.condition));
    if (!made.ok()) return made;
  }
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  if (sqlite3_create_function(connection_, "human", 1, kFlags, nullptr, Human, nullptr, nullptr) !=
      SQLITE_OK) {
    return Error("human");
  }
  for (const int arguments : {1, 2}) {
    if (sqlite3_create_function(connection_, "stack_text", arguments, kFlags, &sources_, StackText,
                                nullptr, nullptr) != SQLITE_OK) {
      return Error("stack_text");
    }
  }
  return absl::OkStatus();
}

absl::Status Query::Execute(const std::string& sql) {
  return sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK
             ? absl::OkStatus()
             : Error(sql);
}

absl::Status Query::Error(std::string_view sql) const {
  std::string message = connection_ == nullptr ? "out of memory" : sqlite3_errmsg(connection_);
  const int code = connection_ == nullptr ? SQLITE_NOMEM : sqlite3_errcode(connection_);
  if (code == SQLITE_AUTH) message = "a query can only read; this is not a SELECT";
  if (code == SQLITE_INTERRUPT) message = "stopped at its time limit; --timeout sets another";
  if (code == SQLITE_NOMEM) message = "it needs more memory than a query may use (2 GiB)";
  if (absl::StartsWith(message, "no such table") || absl::StartsWith(message, "no such column"))
    absl::StrAppend(&message, "; see gpumemtrace query --schema");
#if SQLITE_VERSION_NUMBER >= 3038000
  const int at = connection_ == nullptr ? -1 : sqlite3_error_offset(connection_);
  if (at > 0 && static_cast<size_t>(at) < sql.size())
    absl::StrAppend(&message,
                    "; at: ", Shortened(std::string(sql.substr(static_cast<size_t>(at))), 40));
#endif
  return absl::InvalidArgumentError(absl::StrCat("SQL: ", message));
}

absl::StatusOr<sqlite3_stmt*> Query::Prepare(const std::string& sql) {
  if (sql.find('\0') != std::string::npos)
    return absl::InvalidArgumentError("SQL: the statement contains a zero byte");
  sqlite3_set_authorizer(connection_, Permit, nullptr);
  Statement only;
  for (const char* rest = sql.c_str(); *rest != '\0';) {
    const char* at = rest;
    sqlite3_stmt* prepared = nullptr;
    if (sqlite3_prepare_v2(connection_, at, -1, &prepared, &rest) != SQLITE_OK)
      return only == nullptr ? Error(sql) : OneAtATime(at);
    Statement statement(prepared);
    if (statement == nullptr) continue;  // blanks and comments
    if (only != nullptr) return OneAtATime(at);
    only = std::move(statement);
  }
  if (only == nullptr) return absl::InvalidArgumentError("SQL: there is no statement");
  return only.release();
}

absl::Status Query::CheckStatement(const std::string& sql) {
  const auto prepared = Prepare(sql);
  if (prepared.ok()) sqlite3_finalize(*prepared);
  return prepared.status();
}

absl::StatusOr<bool> Query::Run(const std::string& sql, const Options& options,
                                const Output& output) {
  const auto prepared = Prepare(sql);
  if (!prepared.ok()) return prepared.status();
  const Statement statement(*prepared);
  std::vector<std::string> names;
  for (int i = 0; i < sqlite3_column_count(statement.get()); ++i)
    names.emplace_back(sqlite3_column_name(statement.get(), i));
  Limits limits(connection_, options);
  const std::unique_ptr<Writer> writer = MakeWriter(options.form, output);
  limits.WithoutTime([&] { writer->Begin(names); });
  uint64_t rows = 0;
  int step = sqlite3_step(statement.get());
  for (; step == SQLITE_ROW && (options.max_rows == 0 || rows < options.max_rows) &&
         !limits.IsInterrupted();
       step = sqlite3_step(statement.get()), ++rows) {
    limits.WithoutTime([&] { writer->Row(statement.get()); });
  }
  if (limits.IsInterrupted()) return absl::CancelledError("SQL: interrupted");
  if (step != SQLITE_ROW && step != SQLITE_DONE) return Error("");
  writer->End(step == SQLITE_ROW);
  return step == SQLITE_ROW;
}

std::vector<std::string> Query::Functions() {
  sqlite3_set_authorizer(connection_, nullptr, nullptr);
  std::vector<std::string> names = {"human", "stack_text"};
  sqlite3_exec(
      connection_,
      "SELECT DISTINCT name FROM pragma_function_list WHERE builtin AND name GLOB '[a-z]*' AND "
      "name NOT GLOB 'sqlite*' AND name <> 'load_extension'",
      [](void* into, int, char** values, char**) {
        static_cast<std::vector<std::string>*>(into)->emplace_back(values[0]);
        return 0;
      },
      &names, nullptr);
  return names;
}

absl::Status Query::Export(const std::string& path) {
  sqlite3_set_authorizer(connection_, nullptr, nullptr);
  const std::string quoted = absl::StrReplaceAll(path, {{"'", "''"}});
  absl::Status status = Execute(absl::StrCat("ATTACH '", quoted, "' AS file"));
  if (!status.ok()) return status;
  status = Execute("PRAGMA file.journal_mode = OFF; PRAGMA file.synchronous = OFF; BEGIN");
  for (const Table& table : Tables()) {
    if (status.ok())
      status = Execute(
          absl::StrCat("CREATE TABLE file.", table.name, " AS SELECT * FROM main.", table.name));
    if (status.ok() && table.find != nullptr) {
      const char* key = table.columns.front().name;
      status = Execute(absl::StrCat("CREATE INDEX file.", table.name, "_by_", key, " ON ",
                                    table.name, "(", key, ")"));
    }
  }
  for (const View& view : Views()) {
    if (status.ok())
      status = Execute(absl::StrCat("CREATE VIEW file.", view.name,
                                    " AS SELECT * FROM memory WHERE ", view.condition));
  }
  if (status.ok()) status = Execute("COMMIT");
  if (!status.ok()) (void)Execute("ROLLBACK");
  const absl::Status detached = Execute("DETACH file");
  if (status.ok()) status = detached;
  return status;
}

absl::Status Query::WriteArrow(const Table& table, const Output& output) {
  return sql::WriteArrow(table, sources_, output);
}

std::optional<std::vector<std::string>> CompleteStatements(const std::string& text) {
  if (sqlite3_complete(text.c_str()) == 0) return std::nullopt;
  std::vector<std::string> statements;
  size_t begin = 0;
  for (size_t at = text.find(';'); at != std::string::npos; at = text.find(';', at + 1)) {
    std::string statement = text.substr(begin, at + 1 - begin);
    if (sqlite3_complete(statement.c_str()) == 0) continue;  // within a string or a comment
    statements.push_back(std::move(statement));
    begin = at + 1;
  }
  return statements;
}

}  // namespace gmt::answers::sql
