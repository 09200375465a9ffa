#include "symbols/symbol_cache.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "symbols/cache_directory.h"

namespace gmt::symbols {
namespace {

// Change the name if the meaning of the stored data changes.
constexpr char kFileName[] = "names-1.sqlite";
constexpr size_t kEntriesOfWrite = 256;
constexpr size_t kMaxWaiting = 8192;  // while another process is writing
constexpr int kBusyTimeoutMs = 100;
constexpr int kMaxOpenTries = 20;
constexpr useconds_t kPauseUs = 10'000;

constexpr char kSchema[] =
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA journal_size_limit=4194304;"
    "CREATE TABLE IF NOT EXISTS modules("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, files TEXT UNIQUE NOT NULL, used INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS names("
    " module INTEGER, address INTEGER, value BLOB NOT NULL, checksum INTEGER NOT NULL,"
    " PRIMARY KEY(module, address)) WITHOUT ROWID;";

int64_t Today() { return time(nullptr) / 86400; }

// FNV-1a: protects against corruption and torn writes, not against attackers, who cannot write
// here.
uint64_t Checksum(int64_t module, uint64_t address, std::string_view value) {
  uint64_t sum = 0xcbf29ce484222325;
  const auto add = [&](const void* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      sum = (sum ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001b3;
    }
  };
  add(&module, sizeof(module));
  add(&address, sizeof(address));
  add(value.data(), value.size());
  return sum;
}

void AppendText(const std::string& text, std::string* out) {
  const auto size = static_cast<uint32_t>(text.size());
  out->append(reinterpret_cast<const char*>(&size), sizeof(size));
  out->append(text);
}

std::string Encode(const std::vector<ResolvedSymbol>& symbols) {
  std::string out;
  for (const ResolvedSymbol& symbol : symbols) {
    out.append(reinterpret_cast<const char*>(&symbol.line), sizeof(symbol.line));
    AppendText(symbol.function, &out);
    AppendText(symbol.file, &out);
  }
  return out;
}

bool TakeNumber(std::string_view* bytes, void* number) {
  if (bytes->size() < sizeof(uint32_t)) return false;
  memcpy(number, bytes->data(), sizeof(uint32_t));
  bytes->remove_prefix(sizeof(uint32_t));
  return true;
}

bool TakeText(std::string_view* bytes, std::string* text) {
  uint32_t size = 0;
  if (!TakeNumber(bytes, &size) || size > bytes->size()) return false;
  text->assign(bytes->substr(0, size));
  bytes->remove_prefix(size);
  return true;
}

std::optional<std::vector<ResolvedSymbol>> Decode(std::string_view bytes) {
  static_assert(sizeof(ResolvedSymbol::line) == sizeof(uint32_t));
  std::vector<ResolvedSymbol> symbols;
  while (!bytes.empty()) {
    ResolvedSymbol& symbol = symbols.emplace_back();
    if (!TakeNumber(&bytes, &symbol.line) || !TakeText(&bytes, &symbol.function) ||
        !TakeText(&bytes, &symbol.file)) {
      return std::nullopt;
    }
  }
  return symbols;
}

}  // namespace

class SymbolCache::Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  ~Statement() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Statement& Bind(int at, int64_t value) {
    sqlite3_bind_int64(statement_, at, value);
    return *this;
  }
  // `bytes` must live as long as the statement is in use.
  Statement& BindBlob(int at, std::string_view bytes) {
    sqlite3_bind_blob64(statement_, at, bytes.data(), bytes.size(), SQLITE_STATIC);
    return *this;
  }
  Statement& BindText(int at, std::string_view text) {
    sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
    return *this;
  }
  int Step() { return sqlite3_step(statement_); }
  int64_t Number(int column) { return sqlite3_column_int64(statement_, column); }
  std::string_view Blob(int column) {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr
               ? std::string_view()
               : std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(size));
  }

 private:
  sqlite3_stmt* statement_;
};

std::string SymbolCache::DefaultDirectory() {
  const auto variable = [](const char* name) {
    const char* value = getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const std::string asked = variable("GPUMEMTRACE_SYMBOL_CACHE");
  if (asked == "off") return "";
  if (!asked.empty()) return asked;
  // According to the specification, a relative path is ignored.
  const std::string caches = variable("XDG_CACHE_HOME");
  if (!caches.empty() && caches.front() == '/') return caches + "/gpumemtrace/symbols";
  const std::string home = variable("HOME");
  return home.empty() || home.front() != '/' ? "" : home + "/.cache/gpumemtrace/symbols";
}

absl::StatusOr<std::unique_ptr<SymbolCache>> SymbolCache::Open(const std::string& directory,
                                                               uint64_t max_bytes) {
  if (directory.empty()) return absl::FailedPreconditionError("the symbol cache is off");
  absl::Status status = MakePrivateDirectory(directory);
  if (!status.ok()) return status;
  if (!IsLocal(directory)) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory, ": is not on a local disk; set GPUMEMTRACE_SYMBOL_CACHE to a directory on one"));
  }
  std::unique_ptr<SymbolCache> cache(
      new SymbolCache(absl::StrCat(directory, "/", kFileName), max_bytes));
  if (!cache->Prepare()) {
    return absl::UnavailableError(absl::StrCat(cache->path_, ": cannot be used"));
  }
  return cache;
}

bool SymbolCache::Prepare() {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int opened = sqlite3_open_v2(path_.c_str(), &database_, kFlags, nullptr);
  if (!IsOk(opened)) {
    Close();
    return false;
  }
  sqlite3_busy_timeout(database_, kBusyTimeoutMs);
  const std::pair<const char*, sqlite3_stmt**> statements[] = {
      {"SELECT value, checksum FROM names WHERE module=?1 AND address=?2", &find_},
      {"SELECT id, used FROM modules WHERE files=?1", &find_module_},
      {"INSERT INTO modules(files, used) VALUES(?1, ?2)", &add_module_},
      {"UPDATE modules SET used=?2 WHERE id=?1", &touch_module_},
      {"INSERT OR REPLACE INTO names VALUES(?1, ?2, ?3, ?4)", &add_},
  };
  // Many processes of a run start at the same time, and only one can create the tables.
  bool good = false;
  for (int i = 0; i < kMaxOpenTries && !good && database_ != nullptr; ++i) {
    if (i > 0) usleep(kPauseUs);
    good = Execute(kSchema);
  }
  for (const auto& [sql, statement] : statements) {
    good = good && IsOk(sqlite3_prepare_v2(database_, sql, -1, statement, nullptr));
  }
  if (!good) Close();
  return good;
}

SymbolCache::~SymbolCache() {
  Flush();
  Close();
}

void SymbolCache::Close() {
  for (sqlite3_stmt** statement : {&find_, &find_module_, &add_module_, &touch_module_, &add_}) {
    sqlite3_finalize(*statement);
    *statement = nullptr;
  }
  sqlite3_close(database_);
  database_ = nullptr;
}

bool SymbolCache::IsOk(int result) {
  const int kind = result & 0xff;
  if (kind == SQLITE_OK || kind == SQLITE_DONE || kind == SQLITE_ROW) return true;
  if (kind == SQLITE_BUSY || kind == SQLITE_LOCKED) return false;
  Close();
  // Delete the log first: a new database must not be combined with the log of the old one.
  if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB) {
    for (const char* tail : {"-wal", "-shm", ""}) unlink((path_ + tail).c_str());
  }
  return false;
}

bool SymbolCache::Execute(const char* sql) {
  return database_ != nullptr && IsOk(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr));
}

std::optional<int64_t> SymbolCache::ModuleOf(const std::string& files) {
  if (const auto known = modules_.find(files); known != modules_.end()) return known->second;
  int64_t id = 0, used = 0;
  int result;
  {
    Statement statement(find_module_);
    result = statement.BindText(1, files).Step();
    if (result == SQLITE_ROW) id = statement.Number(0), used = statement.Number(1);
  }
  if (!IsOk(result) || id == 0) return std::nullopt;
  modules_[files] = id;
  if (used != Today()) Statement(touch_module_).Bind(1, id).Bind(2, Today()).Step();
  return id;
}

std::optional<std::vector<ResolvedSymbol>> SymbolCache::Find(const std::string& files,
                                                             uint64_t address) {
  if (database_ == nullptr) return std::nullopt;
  const std::optional<int64_t> module = ModuleOf(files);
  if (!module) return std::nullopt;
  std::optional<std::vector<ResolvedSymbol>> symbols;
  int result;
  {
    Statement statement(find_);
    result = statement.Bind(1, *module).Bind(2, static_cast<int64_t>(address)).Step();
    const std::string_view value = result == SQLITE_ROW ? statement.Blob(0) : std::string_view();
    if (result == SQLITE_ROW &&
        static_cast<uint64_t>(statement.Number(1)) == Checksum(*module, address, value)) {
      symbols = Decode(value);
    }
  }
  IsOk(result);
  hits_ += symbols.has_value();
  return symbols;
}

void SymbolCache::Add(const std::string& files, uint64_t address,
                      const std::vector<ResolvedSymbol>& symbols) {
  if (database_ == nullptr) return;
  std::optional<int64_t> module = ModuleOf(files);
  if (!module) module = MakeModule(files);
  if (!module || waiting_.size() >= kMaxWaiting) {
    ++lost_;
    return;
  }
  waiting_.push_back({*module, address, Encode(symbols)});
  if (waiting_.size() % kEntriesOfWrite == 0) Flush();
}

// Another process may create the same module concurrently; it is then found.
std::optional<int64_t> SymbolCache::MakeModule(const std::string& files) {
  if (database_ == nullptr) return std::nullopt;
  {
    Statement statement(add_module_);
    statement.BindText(1, files).Bind(2, Today()).Step();
  }
  return ModuleOf(files);
}

void SymbolCache::Flush() {
  if (waiting_.empty() || database_ == nullptr) return;
  if (!Write()) {
    if (database_ != nullptr) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
    if (database_ == nullptr) lost_ += std::exchange(waiting_, {}).size();
    return;  // another process is writing: retry with the next entries
  }
  waiting_.clear();
  if (BytesUsed() > max_bytes_ && !MakeRoom() && database_ != nullptr) {
    sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

bool SymbolCache::Write() {
  if (!Execute("BEGIN IMMEDIATE")) return false;
  for (const Entry& entry : waiting_) {
    const auto sum = static_cast<int64_t>(Checksum(entry.module, entry.address, entry.value));
    const int result = Statement(add_)
                           .Bind(1, entry.module)
                           .Bind(2, static_cast<int64_t>(entry.address))
                           .BindBlob(3, entry.value)
                           .Bind(4, sum)
                           .Step();
    if (result != SQLITE_DONE) return IsOk(result);
  }
  return Execute("COMMIT");
}

// Removes the oldest modules until at least half of the space is free. First removes names whose
// module another process has removed in the meantime.
bool SymbolCache::MakeRoom() {
  if (!Execute("DELETE FROM names WHERE module NOT IN (SELECT id FROM modules)")) return false;
  while (database_ != nullptr && BytesUsed() > max_bytes_ / 2) {
    if (!Execute("BEGIN IMMEDIATE;"
                 "DELETE FROM names WHERE module="
                 " (SELECT id FROM modules ORDER BY used, id LIMIT 1);"
                 "DELETE FROM modules WHERE id="
                 " (SELECT id FROM modules ORDER BY used, id LIMIT 1);"
                 "COMMIT")) {
      return false;
    }
    modules_.clear();
    if (sqlite3_changes(database_) == 0) return true;  // no module is left
  }
  return true;
}

uint64_t SymbolCache::BytesUsed() {
  constexpr const char* kUsed =
      "SELECT (page_count - freelist_count) * page_size"
      " FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
  sqlite3_stmt* statement = nullptr;
  if (database_ == nullptr || sqlite3_prepare_v2(database_, kUsed, -1, &statement, nullptr) != 0) {
    return 0;
  }
  const bool known = sqlite3_step(statement) == SQLITE_ROW;
  const int64_t bytes = known ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return static_cast<uint64_t>(bytes);
}

}  // namespace gmt::symbols
