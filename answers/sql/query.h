// answers/sql/query.h
//
// Answers one SQL statement about recordings, by SQLite in memory. A statement can only read, and
// its time and memory are limited.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_SQL_QUERY_H_
#define GMT_ANSWERS_SQL_QUERY_H_

#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "answers/recording.h"
#include "answers/sql/tables.h"

struct sqlite3;
struct sqlite3_stmt;

namespace gmt::answers::sql {

enum class Form {
  kTable,      // columns for people; numbers are aligned to the right
  kBox,        // the same with lines
  kCsv,        // comma-separated, quoted as in RFC 4180, with a line of names; lines end with \n
  kJson,       // {"schema", "columns": [...], "rows": [[...], ...], "more": false}
  kJsonLines,  // {NAME: VALUE, ...} on a line for each row, in ASCII
};

struct Options {
  Form form = Form::kTable;
  uint64_t max_rows = 0;  // 0: no limit
  // Time of computation after which a statement ends with an error; 0: no limit. The output may
  // take as long as it takes.
  int64_t seconds = 60;
  // A statement ends with an error soon after this is no longer 0; null: never.
  const volatile std::sig_atomic_t* interrupted = nullptr;
};

// Receives the output piece by piece.
using Output = std::function<void(std::string_view)>;

class Query {
 public:
  // Without recordings: for CheckStatement. Fails if SQLite does.
  static absl::StatusOr<std::unique_ptr<Query>> Make();
  // `name`: the value of the column `file`. REQUIRES: `recording` outlives the object, and no two
  // have the same name.
  void Add(const Recording& recording, const std::string& name);

  // Fails as Run does if `sql` is not one statement that could be run.
  absl::Status CheckStatement(const std::string& sql);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Runs one statement. Returns whether it has more rows than options.max_rows. Fails with SQLite's
  // message and the place in `sql`; what was written until then is incomplete.
  absl::StatusOr<bool> Run(const std::string& sql, const Options& options, const Output& output);

  // The names of the functions that a statement may call.
  std::vector<std::string> Functions();

  // Writes all tables into an SQLite file, which must be empty if it exists. If that fails, the
  // file is not complete.
  absl::Status Export(const std::string& path);

  // Writes a table of Tables() as a stream of Arrow. If that fails, the output is incomplete.
  absl::Status WriteArrow(const Table& table, const Output& output);

 private:
  Query() = default;
  absl::Status AddTables();
  absl::Status Execute(const std::string& sql);
  absl::Status Error(std::string_view sql) const;
  // Prepares the one statement of `sql`.
  absl::StatusOr<sqlite3_stmt*> Prepare(const std::string& sql);

  std::vector<Source> sources_;
  sqlite3* connection_ = nullptr;
};

// Divides `text` after the semicolons that end statements. Null if its last statement has no end.
std::optional<std::vector<std::string>> CompleteStatements(const std::string& text);

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_QUERY_H_
