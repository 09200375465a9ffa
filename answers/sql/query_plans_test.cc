// Compares statements about recordings, whose rows are selected and sorted here, with the same
// statements about an exported file, which SQLite reads in its own way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/testing/event_script.h"
#include "answers/sql/query.h"
#include "format/event.h"
#include "tests/seeds/seeds.h"

namespace gmt::answers::sql {
namespace {

using Json = nlohmann::json;

class QueryPlansTest : public ::testing::Test {
 protected:
  ~QueryPlansTest() override { Close(); }

  // Writes a recording of random events, and the file.
  void Open(uint32_t seed, const std::vector<std::string>& files) {
    Close();
    random_.seed(seed);
    query_ = *Query::Make();
    for (const std::string& file : files) {
      analysis::EventScript script;
      Write(script);
      recordings_.push_back(RecordingSoFar(file, script.Build(), script.definitions()));
      query_->Add(*recordings_.back(), file);
    }
    std::filesystem::remove(path_);
    const absl::Status written = query_->Export(path_);
    ASSERT_TRUE(written.ok()) << written;
    ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &file_, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  }

  size_t Below(size_t limit) { return random_() % limit; }
  template <typename T>
  const T& OneOf(const std::vector<T>& values) {
    return values[Below(values.size())];
  }

  // A statement that begins with what it is ordered by, and how many columns that are.
  std::string Statement(size_t* ordered) {
    const Table& table = OneOf(Tables());
    const std::string name = table.name == std::string("memory")
                                 ? OneOf<std::string>({"memory", "memory", "blocks", "segments"})
                                 : table.name;
    std::vector<std::string> columns = {"file"};
    for (const Column& column : table.columns) columns.emplace_back(column.name);
    std::shuffle(columns.begin(), columns.end(), random_);
    const std::vector<std::string> keys(
        columns.begin(),
        columns.begin() + 1 + static_cast<ptrdiff_t>(Below(std::min<size_t>(3, columns.size()))));
    const std::string list = absl::StrJoin(keys, ", ");
    std::string order;
    for (const std::string& key : keys) {
      absl::StrAppend(&order, order.empty() ? " ORDER BY " : ", ", key,
                      OneOf<std::string>(
                          {"", " ASC", " DESC", " DESC", " DESC NULLS LAST", " COLLATE NOCASE"}));
    }
    const std::string where = Where(table, columns);
    *ordered = 0;
    switch (Below(5)) {
      case 0:
        return absl::StrCat("SELECT DISTINCT ", list, " FROM ", name, where);
      case 1:
        *ordered = keys.size();
        return absl::StrCat("SELECT ", list, ", count(*), count(DISTINCT ", OneOf(columns),
                            ") FROM ", name, where, " GROUP BY ", list, order);
      case 2:
        return absl::StrCat("SELECT ", list, ", count(*), max(", OneOf(columns), "), total(",
                            OneOf(columns), ") FROM ", name, where, " GROUP BY ", list);
      case 3:
        return absl::StrCat("SELECT count(DISTINCT ", keys.front(), ") FROM ", name, where);
      default:
        *ordered = keys.size();
        return absl::StrCat("SELECT ", list, ", * FROM ", name, where, order);
    }
  }

  Json RowsOfQuery(const std::string& sql) {
    std::string text;
    const auto more =
        query_->Run(sql, {.form = Form::kJson}, [&text](std::string_view piece) { text += piece; });
    EXPECT_TRUE(more.ok()) << more.status() << "\n" << sql;
    return more.ok() ? Json::parse(text)["rows"] : Json();
  }
  Json RowsOfFile(const std::string& sql) {
    Json rows = Json::array();
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(file_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sql << "\n"
        << sqlite3_errmsg(file_);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      Json row = Json::array();
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        switch (sqlite3_column_type(statement, i)) {
          case SQLITE_NULL:
            row.push_back(nullptr);
            break;
          case SQLITE_INTEGER:
            row.push_back(int64_t{sqlite3_column_int64(statement, i)});
            break;
          case SQLITE_FLOAT:
            row.push_back(sqlite3_column_double(statement, i));
            break;
          default:
            row.push_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, i)));
        }
      }
      rows.push_back(std::move(row));
    }
    sqlite3_finalize(statement);
    return rows;
  }

 private:
  void Close() {
    query_ = nullptr;
    recordings_.clear();
    sqlite3_close(file_);
    file_ = nullptr;
    std::filesystem::remove(path_);
  }

  void Write(analysis::EventScript& script) {
    const std::vector<analysis::EventScript::Functions> stacks = {
        {}, {"load", "main"}, {"forward", "main"}, {"Forward", "main"}, {"step", "train", "main"}};
    std::vector<uint64_t> segments, blocks;
    uint64_t next = uint64_t{1} << 30;
    for (int i = 0; i < 150; ++i) {
      switch (Below(8)) {
        case 0:
          script.Alloc(next, 4096 << Below(4), OneOf(stacks));
          segments.push_back(next);
          next += uint64_t{1} << 20;
          break;
        case 1:
          script.Pinned(next, 1 + Below(3), OneOf(stacks));
          next += 4096;
          break;
        case 2:
          script.Mark(OneOf<std::string>({"half", "Half", "1", "01", "end"}), Below(4));
          break;
        case 3:
          script.Failed(1 << Below(8), OneOf(stacks)).result = 2;
          break;
        case 4:
          if (blocks.empty()) break;
          script.FreeBlock(blocks.back());
          blocks.pop_back();
          break;
        case 5:
          if (blocks.empty()) break;
          script.Role(OneOf(blocks), static_cast<uint32_t>(Below(16)),
                      OneOf<std::string>({"", "AddBackward", "addbackward"}));
          break;
        default: {
          if (segments.empty()) break;
          blocks.push_back(OneOf(segments) + 512 * Below(8));
          format::Event& block = script.Block(blocks.back(), 512, OneOf(stacks));
          if (Below(2) == 0)
            script.Tensor(block, OneOf<std::string>({"float32", "FLOAT32", "7"}),
                          OneOf<std::string>({"[8]", "[8, 16]", "[]"}));
        }
      }
    }
  }

  std::string Where(const Table& table, const std::vector<std::string>& columns) {
    std::string where;
    for (size_t i = Below(4); i > 0; --i) {
      const std::string& column = OneOf(columns);
      absl::StrAppend(&where,
                      where.empty() ? " WHERE " : OneOf<std::string>({" AND ", " AND ", " OR "}),
                      column);
      switch (Below(6)) {
        case 0:
          absl::StrAppend(&where, OneOf<std::string>({" IS NULL", " IS NOT NULL"}));
          break;
        case 1:
          absl::StrAppend(&where, " IN (", Literal(table, column), ", ", Literal(table, column),
                          ")");
          break;
        case 2:
          absl::StrAppend(&where, " = ", OneOf(columns));
          break;
        default:
          absl::StrAppend(
              &where,
              OneOf<std::string>({" = ", " = ", " IS ", " <> ", " < ", " <= ", " > ", " >= "}),
              Literal(table, column), OneOf<std::string>({"", "", "", " COLLATE NOCASE"}));
      }
    }
    return where;
  }
  // A value of the column, or one that resembles it.
  std::string Literal(const Table& table, const std::string& column) {
    if (Below(3) == 0)
      return OneOf<std::string>({"NULL", "1", "'1'", "1.0", "0.5", "-1e300", "9223372036854775807",
                                 "9.3e18", "x'31'", "'7'", "7", "'pytorch'", "'Float32'", "''"});
    const Json rows = RowsOfFile(
        absl::StrCat("SELECT ", OneOf<std::string>({"quote(", "quote(1.0 * ", "quote('' || "}),
                     column, ") FROM ", table.name, " WHERE ", column, " IS NOT NULL"));
    return rows.empty() ? "0" : rows[Below(rows.size())][0].get<std::string>();
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<Recording>> recordings_;
  std::unique_ptr<Query> query_;
  sqlite3* file_ = nullptr;
  const std::string path_ = ::testing::TempDir() + "query_plans_test." + std::to_string(getpid());
};

Json Sorted(Json rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

// In lower case, because rows that are equal without regard to case may be in any order.
std::string FirstColumns(const Json& rows, size_t count) {
  Json first = Json::array();
  for (const Json& row : rows)
    first.push_back(Json(row.begin(), row.begin() + static_cast<ptrdiff_t>(count)));
  return absl::AsciiStrToLower(first.dump());
}

TEST_F(QueryPlansTest, EveryStatementHasTheRowsOfAPlainTable) {
  ForEachSeed(SeedsUpTo(8), [&](uint32_t seed) {
    Open(seed, seed % 4 == 0 ? std::vector<std::string>{"a.gmt", "b.gmt"}
                             : std::vector<std::string>{"a.gmt"});
    for (int i = 0; i < 150; ++i) {
      size_t ordered = 0;
      const std::string sql = Statement(&ordered);
      const Json rows = RowsOfQuery(sql), expected = RowsOfFile(sql);
      ASSERT_EQ(Sorted(rows), Sorted(expected)) << sql;
      ASSERT_EQ(FirstColumns(rows, ordered), FirstColumns(expected, ordered)) << sql;
    }
  });
}

}  // namespace
}  // namespace gmt::answers::sql
