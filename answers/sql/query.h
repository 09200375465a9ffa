// answers/sql/query.h
//
// Answers one SQL statement about recordings, by SQLite in memory. A statement can only read, and
// what it takes is limited.
//
// Thread safety: one thread at a time.

#ifndef GMT_ANSWERS_SQL_QUERY_H_
#define GMT_ANSWERS_SQL_QUERY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "answers/recording.h"
#include "answers/sql/tables.h"

struct sqlite3;

namespace gmt::answers::sql {

enum class Form {
  kTable,  // columns for people; numbers are aligned to the right
  kBox,    // the same with lines
  kCsv,    // RFC 4180, with a line of names
  kJson,   // {"schema", "columns": [...], "rows": [[...], ...], "more": false}
};

struct Options {
  Form form = Form::kTable;
  uint64_t max_rows = 0;  // 0: no limit
  int64_t seconds = 60;   // time after which a statement ends with an error; 0: no limit
};

// Receives the output piece by piece.
using Output = std::function<void(std::string_view)>;

class Query {
 public:
  // REQUIRES: the recordings outlive the object. Fails if SQLite does.
  static absl::StatusOr<std::unique_ptr<Query>> Make(
      const std::vector<const Recording*>& recordings);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // Runs one statement. Fails with SQLite's message and the place in `sql`; what was written until
  // then is incomplete.
  absl::Status Run(const std::string& sql, const Options& options, const Output& output);

  // Writes all tables into an SQLite file, which must be empty if it exists. If that fails, the
  // file is not complete.
  absl::Status Export(const std::string& path);

 private:
  Query() = default;
  absl::Status AddTables();
  absl::Status Execute(const std::string& sql);
  absl::Status Error(std::string_view sql) const;

  std::vector<Source> sources_;
  sqlite3* connection_ = nullptr;
};

// Describes every table with its columns, for people.
std::string Schema();

}  // namespace gmt::answers::sql

#endif  // GMT_ANSWERS_SQL_QUERY_H_
