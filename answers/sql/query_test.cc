#include "answers/sql/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/testing/event_script.h"
#include "answers/sql/schema.h"
#include "format/event.h"
#include "tests/seeds/seeds.h"

namespace gmt::answers::sql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Json = nlohmann::json;

class QueryTest : public ::testing::Test {
 protected:
  // A segment with two blocks, one of which is freed, and a mark.
  QueryTest() {
    script_.Alloc(0x1000000, 4096, {"cudaMalloc", "load"});
    script_.Tensor(script_.Block(0x1000000, 512, {"forward", "main"}), "float32", "[8, 16]");
    script_.Block(0x1000200, 1024, {"forward", "main"});
    script_.Role(0x1000000, format::kRoleParameter);
    script_.Mark("half", 7);
    script_.FreeBlock(0x1000200);
  }

  Query& OpenQuery(const std::vector<std::string>& files = {"run.gmt"}) {
    query_ = *Query::Make();
    for (const std::string& file : files) {
      recordings_.push_back(RecordingSoFar(file, script_.Build(), script_.definitions()));
      query_->Add(*recordings_.back(), file);
    }
    return *query_;
  }
  std::string Text(const std::string& sql, Form form = Form::kTable, uint64_t max_rows = 0) {
    if (query_ == nullptr) OpenQuery();
    std::string text;
    const auto more = query_->Run(sql, {.form = form, .max_rows = max_rows, .seconds = seconds_},
                                  [&text](std::string_view piece) { text += piece; });
    status_ = more.status();
    has_more_ = more.ok() && *more;
    return text;
  }
  Json Rows(const std::string& sql) {
    const std::string text = Text(sql, Form::kJson);
    EXPECT_TRUE(status_.ok()) << status_ << "\n" << sql;
    return status_.ok() ? Json::parse(text)["rows"] : Json::array();
  }
  std::string ErrorOf(const std::string& sql) {
    Text(sql);
    return std::string(status_.message());
  }

  analysis::EventScript script_;
  std::vector<std::unique_ptr<Recording>> recordings_;
  std::unique_ptr<Query> query_;
  absl::Status status_;
  bool has_more_ = false;
  int64_t seconds_ = 60;
};

TEST_F(QueryTest, MemoryHasARowForEveryPiece) {
  EXPECT_EQ(Rows("SELECT file, id, heap, kind, bytes, dtype, shape, roles, free_ns FROM memory"),
            Json::parse(R"([["run.gmt", 0, "driver", "device", 4096, null, null, null, null],
                            ["run.gmt", 1, "pytorch", "block", 512, "float32", "[8, 16]",
                             "parameter", null],
                            ["run.gmt", 2, "pytorch", "block", 1024, null, null, null, 6000000]])"));
}

TEST_F(QueryTest, EventsAreInOrderAndAddUpToWhatIsHeld) {
  EXPECT_EQ(Rows("SELECT id, kind, memory, change FROM events"),
            Json::parse(R"([[1, "alloc", 0, 4096], [2, "alloc", 1, 512], [3, "alloc", 2, 1024],
                            [4, "free", 2, -1024]])"));
}

TEST_F(QueryTest, ViewsSelectBlocksAndSegments) {
  EXPECT_EQ(Rows("SELECT count(*), sum(bytes) FROM blocks"), Json::parse("[[2, 1536]]"));
  EXPECT_EQ(Rows("SELECT count(*), sum(bytes) FROM segments"), Json::parse("[[1, 4096]]"));
}

TEST_F(QueryTest, StacksAreFoundByTheirId) {
  EXPECT_EQ(Rows("SELECT bytes, function, text = stack_text(stack) FROM blocks JOIN stacks ON "
                 "stacks.id = stack"),
            Json::parse(R"([[512, "forward", 1], [1024, "forward", 1]])"));
  EXPECT_EQ(Rows("SELECT depth, frames.function FROM blocks JOIN frames ON frames.stack = "
                 "blocks.stack WHERE bytes = 512"),
            Json::parse(R"([[0, "forward"], [1, "main"]])"));
  EXPECT_EQ(Rows("SELECT count(*) FROM stacks WHERE id = 999999 OR id = 'x' OR id = -1"),
            Json::parse("[[0]]"));
}

TEST_F(QueryTest, RowsFoundByTheirKeyAreThoseOfAScan) {
  for (const Table& table : Tables()) {
    if (table.find == nullptr) continue;
    const std::string key = table.columns.front().name;
    const std::string name = table.name;
    EXPECT_EQ(Rows("SELECT * FROM " + name),
              Rows("SELECT t.* FROM (SELECT DISTINCT " + key + " AS k FROM " + name + ") JOIN " +
                   name + " t ON t." + key + " = k"))
        << name;
  }
}

TEST_F(QueryTest, KeysAreComparedAsInSql) {
  EXPECT_EQ(Rows("SELECT bytes FROM memory WHERE id = 1.0"), Json::parse("[[512]]"));
  EXPECT_EQ(Rows("SELECT bytes FROM memory WHERE id = '1'"), Json::parse("[[512]]"));
  EXPECT_EQ(Rows("SELECT bytes FROM memory WHERE id = (SELECT avg(id) FROM memory)"),
            Json::parse("[[512]]"));
  EXPECT_EQ(Rows("SELECT bytes FROM memory WHERE id = 1.5 OR id = 1e300 OR id IS NULL"),
            Json::array());
}

TEST_F(QueryTest, ShapesCanBeTakenApart) {
  EXPECT_EQ(Rows("SELECT value FROM blocks, json_each(shape) WHERE bytes = 512"),
            Json::parse("[[8], [16]]"));
}

TEST_F(QueryTest, UnknownStacksHaveNoText) {
  EXPECT_EQ(Rows("SELECT stack_text(4294967299), stack_text(-1), stack_text(NULL)"),
            Json::parse("[[null, null, null]]"));
}

TEST_F(QueryTest, RowsOfSeveralRecordingsHaveTheNameOfTheirFile) {
  OpenQuery({"a.gmt", "b.gmt"});
  EXPECT_EQ(Rows("SELECT file, count(*) FROM memory GROUP BY file"),
            Json::parse(R"([["a.gmt", 3], ["b.gmt", 3]])"));
  EXPECT_EQ(
      Rows("SELECT count(*) FROM blocks b JOIN stacks s ON s.id = b.stack AND s.file = b.file"),
      Json::parse("[[4]]"));
  EXPECT_EQ(Rows("SELECT count(stack_text(file, stack)) FROM blocks"), Json::parse("[[4]]"));
  EXPECT_THAT(ErrorOf("SELECT stack_text(stack) FROM blocks"), HasSubstr("needs the file too"));
}

TEST_F(QueryTest, EveryColumnOfEveryTableCanBeRead) {
  script_.Failed(1 << 20, {"forward", "main"}).result = 2;
  script_.Sample(1 << 20, 2 << 20).set_source("nvml");
  for (const Table& table : Tables()) {
    const Json rows = Rows("SELECT * FROM " + std::string(table.name));
    for (const Json& row : rows) EXPECT_THAT(row, SizeIs(table.columns.size() + 1)) << table.name;
  }
  EXPECT_EQ(Rows("SELECT bytes FROM failures"), Json::parse("[[1048576]]"));
  EXPECT_EQ(Rows("SELECT name, number FROM marks"), Json::parse(R"([["half", 7]])"));
  EXPECT_EQ(Rows("SELECT source, used FROM samples"), Json::parse(R"([["nvml", 1048576]])"));
}

TEST_F(QueryTest, UseIsNullInASampleOfFreeMemoryAlone) {
  script_.Sample(0, 0).set_free_bytes(1 << 20);
  EXPECT_EQ(Rows("SELECT used, total FROM samples"), Json::parse("[[null, null]]"));
}

TEST_F(QueryTest, NothingCanBeWrittenOrOpened) {
  for (const char* sql : {"DELETE FROM memory", "UPDATE memory SET bytes = 0", "CREATE TABLE t(a)",
                          "DROP VIEW blocks", "ATTACH '/tmp/gmt-query-test' AS x",
                          "PRAGMA table_list", "VACUUM INTO '/tmp/x'", "SELECT load_extension('x')",
                          "INSERT INTO memory(id) VALUES (1)"}) {
    EXPECT_NE(ErrorOf(sql), "") << sql;
  }
  EXPECT_EQ(Rows("SELECT count(*) FROM memory"), Json::parse("[[3]]"));
}

TEST_F(QueryTest, ErrorsSayWhatToDo) {
  EXPECT_THAT(ErrorOf("SELECT colour FROM memory"),
              HasSubstr("no such column: colour; see gpumemtrace query --schema"));
  EXPECT_THAT(ErrorOf("SELECT 1; SELECT 2"), HasSubstr("one statement at a time"));
  EXPECT_THAT(ErrorOf(" ;"), HasSubstr("there is no statement"));
  EXPECT_THAT(ErrorOf("SELEC 1"), HasSubstr("syntax error"));
  EXPECT_THAT(ErrorOf(std::string("SELECT 1\0 x", 11)), HasSubstr("zero byte"));
  EXPECT_EQ(ErrorOf("SELECT 1; -- done"), "");
}

TEST_F(QueryTest, AStatementEndsAtItsTimeLimit) {
  seconds_ = 1;
  EXPECT_THAT(ErrorOf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
                      "count(*) FROM n"),
              HasSubstr("stopped at its time limit; --timeout sets another"));
}

TEST_F(QueryTest, AStatementEndsWhenItIsInterrupted) {
  const volatile std::sig_atomic_t interrupted = 1;
  for (const char* sql : {"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT "
                          "count(*) FROM n",
                          "SELECT * FROM memory"}) {
    const auto more =
        OpenQuery().Run(sql, {.seconds = 0, .interrupted = &interrupted}, [](std::string_view) {});
    EXPECT_EQ(more.status().message(), "SQL: interrupted") << sql;
  }
}

TEST_F(QueryTest, StatementsAreDividedAtTheirSemicolons) {
  EXPECT_EQ(CompleteStatements("SELECT ';'"), std::nullopt);
  EXPECT_EQ(CompleteStatements("SELECT 1; SELECT"), std::nullopt);
  EXPECT_THAT(*CompleteStatements("SELECT ';' -- one;\n; SELECT 2; -- done\n"),
              ElementsAre("SELECT ';' -- one;\n;", " SELECT 2;"));
}

TEST_F(QueryTest, TheFunctionsThatAStatementMayCallAreKnown) {
  const std::vector<std::string> functions = OpenQuery().Functions();
  EXPECT_THAT(functions, testing::IsSupersetOf({"human", "stack_text", "sum", "json_extract"}));
  EXPECT_THAT(functions, Not(testing::Contains("load_extension")));
}

TEST_F(QueryTest, EachTableHasASchema) {
  EXPECT_THAT(SchemaOf("marks"), StartsWith("marks: marks that the program set\n  name  "));
  EXPECT_THAT(SchemaOf("blocks"), StartsWith("blocks: rows of memory"));
  EXPECT_EQ(SchemaOf("nothing"), "");
  EXPECT_THAT(TableList(), HasSubstr("\nevents      every allocation and every free, in order\n"));
}

TEST_F(QueryTest, TablesAlignNumbersToTheRight) {
  EXPECT_EQ(
      Text("SELECT heap, sum(bytes) AS total, human(sum(bytes)) AS size FROM memory GROUP BY heap"),
      "heap     total  size\n"
      "driver    4096  4.00 KiB\n"
      "pytorch   1536  1.50 KiB\n");
  EXPECT_EQ(Text("SELECT bytes FROM memory", Form::kBox, 1),
            "┌───────┐\n"
            "│ bytes │\n"
            "├───────┤\n"
            "│  4096 │\n"
            "└───────┘\n");
  EXPECT_TRUE(has_more_);
}

TEST_F(QueryTest, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(Text("SELECT 'a,b' AS \"x\"\"y\", 'c\"d' AS q, NULL AS n, 1.5 AS r", Form::kCsv),
            "\"x\"\"y\",q,n,r\n\"a,b\",\"c\"\"d\",,1.5\n");
}

TEST_F(QueryTest, JsonSaysWhetherThereIsMore) {
  const Json json = Json::parse(Text("SELECT id FROM memory", Form::kJson, 2));
  EXPECT_EQ(json["schema"], "gpumemtrace.query/1");
  EXPECT_THAT(json["columns"], ElementsAre("id"));
  EXPECT_THAT(json["rows"], SizeIs(2));
  EXPECT_EQ(json["more"], true);
  EXPECT_EQ(Json::parse(Text("SELECT 1 WHERE 0", Form::kJson))["rows"], Json::array());
}

TEST_F(QueryTest, AFileHasTheSameRows) {
  const std::string path = ::testing::TempDir() + "query_test.sqlite";
  std::filesystem::remove(path);
  ASSERT_TRUE(OpenQuery().Export(path).ok());
  EXPECT_FALSE(query_->Export(path).ok()) << "what is in a file is kept";
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path.c_str(), &file, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto rows_of = [file](const std::string& sql) {
    Json rows = Json::array();
    sqlite3_exec(
        file, sql.c_str(),
        [](void* into, int count, char** values, char**) {
          Json row = Json::array();
          for (int i = 0; i < count; ++i) row.push_back(values[i] == nullptr ? "null" : values[i]);
          static_cast<Json*>(into)->push_back(row);
          return 0;
        },
        &rows, nullptr);
    return rows;
  };
  EXPECT_EQ(rows_of("SELECT id, bytes FROM memory"),
            Json::parse(R"([["0", "4096"], ["1", "512"], ["2", "1024"]])"));
  EXPECT_EQ(rows_of("SELECT count(*) FROM blocks"), Json::parse(R"([["2"]])"));
  for (const Table& table : Tables())
    EXPECT_THAT(rows_of("SELECT count(*) FROM " + std::string(table.name)), SizeIs(1))
        << table.name;
  sqlite3_close(file);
  std::filesystem::remove(path);
}

// What is held at any moment, by SQL and by a count of the script's own.
TEST_F(QueryTest, LiveBytesAtAnyMomentAreThoseOfTheProgram) {
  ForEachSeed(SeedsUpTo(10), [&](uint32_t seed) {
    std::mt19937 random(seed);
    script_ = analysis::EventScript();
    query_ = nullptr;
    std::map<uint64_t, uint64_t> live;
    std::vector<uint64_t> held;
    uint64_t sum = 0;
    for (int i = 0; i < 200; ++i) {
      const uint64_t address = (1 + random() % 20) << 20;
      if (const auto known = live.find(address); known != live.end()) {
        script_.Free(address);
        sum -= known->second;
        live.erase(known);
      } else {
        const uint64_t bytes = 1 + random() % 1000;
        script_.Alloc(address, bytes);
        live[address] = bytes;
        sum += bytes;
      }
      held.push_back(sum);
    }
    for (size_t event = 1; event <= held.size(); event += 7) {
      const std::string at = std::to_string(event);
      const Json expected = Json::array({Json::array({held[event - 1]})});
      EXPECT_EQ(Rows("SELECT ifnull(sum(bytes), 0) FROM memory WHERE alloc_event <= " + at +
                     " AND (free_event IS NULL OR free_event > " + at + ")"),
                expected);
      EXPECT_EQ(Rows("SELECT sum(change) FROM events WHERE id <= " + at), expected);
    }
  });
}

std::string ReadDocument() {
  std::ifstream file(GMT_SOURCE_DIR "/docs/sql.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(QueryTest, EveryQueryOfTheDocumentRuns) {
  const std::string text = ReadDocument();
  int count = 0;
  for (size_t at = text.find("```sql\n"); at != std::string::npos; at = text.find("```sql\n", at)) {
    at += 7;
    const size_t end = text.find("```", at);
    Rows(text.substr(at, end - at));
    at = end;
    ++count;
  }
  EXPECT_GE(count, 10);
}

TEST_F(QueryTest, TheDocumentDescribesEveryTableAndColumn) {
  const std::string text = ReadDocument();
  for (const Table& table : Tables()) {
    EXPECT_THAT(text, HasSubstr("### " + std::string(table.name) + "\n"));
    for (const Column& column : table.columns) {
      EXPECT_THAT(text, HasSubstr("| `" + std::string(column.name) + "` | " + column.help + " |"))
          << table.name;
    }
  }
  EXPECT_THAT(Schema(), StartsWith("memory: every piece of memory"));
  EXPECT_THAT(Schema(), Not(HasSubstr("\n\n\n")));
}

}  // namespace
}  // namespace gmt::answers::sql
