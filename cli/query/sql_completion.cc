#include "cli/query/sql_completion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "answers/sql/tables.h"

namespace gmt::cli {
namespace {

// What a SELECT may contain.
constexpr std::string_view kKeywords[] = {
    "ALL",       "AND",    "AS",      "ASC",     "BETWEEN",   "BY",        "CASE",      "CAST",
    "COLLATE",   "CROSS",  "CURRENT", "DESC",    "DISTINCT",  "ELSE",      "END",       "ESCAPE",
    "EXCEPT",    "EXISTS", "FILTER",  "FIRST",   "FOLLOWING", "FROM",      "GLOB",      "GROUP",
    "HAVING",    "IN",     "INNER",   "INTEGER", "INTERSECT", "IS",        "JOIN",      "LAST",
    "LEFT",      "LIKE",   "LIMIT",   "NOCASE",  "NOT",       "NULL",      "NULLS",     "OFFSET",
    "ON",        "OR",     "ORDER",   "OVER",    "PARTITION", "PRECEDING", "RANGE",     "REAL",
    "RECURSIVE", "ROW",    "ROWS",    "SELECT",  "TEXT",      "THEN",      "UNBOUNDED", "UNION",
    "USING",     "VALUES", "WHEN",    "WHERE",   "WINDOW",    "WITH"};

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Words in lower case, and other characters one by one. Null within a string, a quoted name or a
// comment.
std::optional<std::vector<std::string>> TokensOf(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (IsWordCharacter(text[i])) {
      while (end < text.size() && IsWordCharacter(text[end])) ++end;
      tokens.push_back(absl::AsciiStrToLower(std::string(text.substr(i, end - i))));
    } else if (text[i] == '\'' || text[i] == '"') {
      end = text.find(text[i], end);
      if (end == text.npos) return std::nullopt;
      ++end;
    } else if (text.substr(i).starts_with("--")) {
      end = text.find('\n', i);
      if (end == text.npos) return std::nullopt;
    } else if (!absl::ascii_isspace(static_cast<unsigned char>(text[i]))) {
      tokens.emplace_back(1, text[i]);
    }
    i = end;
  }
  return tokens;
}

// Tables by their names, and views by the table that they select from.
const std::map<std::string, const answers::sql::Table*>& TablesByName() {
  static const auto& tables = *[] {
    auto* all = new std::map<std::string, const answers::sql::Table*>;
    for (const answers::sql::Table& table : answers::sql::Tables()) (*all)[table.name] = &table;
    for (const answers::sql::View& view : answers::sql::Views())
      (*all)[view.name] = all->at("memory");
    return all;
  }();
  return tables;
}

void AddColumns(const answers::sql::Table& table, std::set<std::string>& words) {
  words.insert("file");
  for (const answers::sql::Column& column : table.columns) words.insert(column.name);
}

// Adds the columns of the tables that `tokens` mention, or of all tables. A `qualifier` is the name
// or alias of the only table whose columns are wanted.
void AddColumnsOf(const std::vector<std::string>& tokens, const std::string& qualifier,
                  std::set<std::string>& words) {
  bool is_known = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto table = TablesByName().find(tokens[i]);
    if (table == TablesByName().end()) continue;
    const size_t alias = i + 1 < tokens.size() && tokens[i + 1] == "as" ? i + 2 : i + 1;
    const bool is_alias = alias < tokens.size() && tokens[alias] == qualifier;
    if (!qualifier.empty() && tokens[i] != qualifier && !is_alias) continue;
    AddColumns(*table->second, words);
    is_known = true;
  }
  if (is_known) return;
  for (const auto& [name, table] : TablesByName()) AddColumns(*table, words);
}

void AddKeywords(std::string_view typed, std::set<std::string>& words) {
  const bool is_upper = std::none_of(typed.begin(), typed.end(), absl::ascii_islower);
  for (const std::string_view keyword : kKeywords)
    words.insert(is_upper ? std::string(keyword) : absl::AsciiStrToLower(std::string(keyword)));
}

void AddTables(std::set<std::string>& words) {
  for (const auto& [name, table] : TablesByName()) words.insert(name);
}

SqlCompletion CompleteCommand(std::string_view text) {
  std::set<std::string> words;
  const size_t blank = text.find(' ');
  const std::string_view typed = blank == text.npos ? text : text.substr(text.rfind(' ') + 1);
  if (blank == text.npos) {
    words.insert(std::begin(kPromptCommands), std::end(kPromptCommands));
  } else if (text.starts_with(".schema ")) {
    AddTables(words);
  } else if (text.starts_with(".mode ")) {
    words.insert(std::begin(kPromptModes), std::end(kPromptModes));
  }
  SqlCompletion completion{.typed = typed.size(), .words = {}};
  for (const std::string& word : words) {
    if (word.starts_with(typed)) completion.words.push_back(word);
  }
  return completion;
}

}  // namespace

SqlCompletion CompleteSql(std::string_view text, const std::vector<std::string>& functions) {
  if (text.starts_with('.')) return CompleteCommand(text);
  size_t begin = text.size();
  while (begin > 0 && IsWordCharacter(text[begin - 1])) --begin;
  const std::string typed(text.substr(begin));
  const auto tokens = TokensOf(text.substr(0, begin));
  if (!tokens) return {};

  std::set<std::string> words;
  const std::string last = tokens->empty() ? "" : tokens->back();
  if (last == "." && tokens->size() > 1 && begin > 0 && text[begin - 1] == '.') {
    AddColumnsOf(*tokens, (*tokens)[tokens->size() - 2], words);
  } else if (last == "from" || last == "join") {
    AddTables(words);
  } else {
    AddColumnsOf(*tokens, "", words);
    AddTables(words);
    AddKeywords(typed, words);
    for (const std::string& function : functions) words.insert(absl::StrCat(function, "("));
  }
  SqlCompletion completion{.typed = typed.size(), .words = {}};
  for (const std::string& word : words) {
    if (absl::StartsWithIgnoreCase(word, typed)) completion.words.push_back(word);
  }
  return completion;
}

}  // namespace gmt::cli
