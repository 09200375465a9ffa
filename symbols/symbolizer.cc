#include "symbols/symbolizer.h"

#include <optional>
#include <string_view>
#include <utility>

#include "symbols/demangle.h"
#include "symbols/dwarf_lines.h"
#include "symbols/module_files.h"
#include "symbols/symbol_cache.h"
#include "symbols/symbol_table.h"

namespace gmt::symbols {
// The open files of a module. A module that cannot be used is kept too, so that it is searched for
// only once.
class Symbolizer::Module {
 public:
  Module(const ModuleKey& key, const SymbolizerOptions& options)
      : key_(key),
        files_(OpenModuleFiles(key, options)),
        identity_(IdentityOf(key, files_)),
        state_(files_.state) {}

  const ModuleKey& key() const { return key_; }
  // Identity of the files: cached names must come from the same files.
  const std::string& identity() const { return identity_; }

  ModuleState state() {
    LoadSymbols();
    return state_;
  }

  // Bytes of tables. Mapped files belong to the page cache.
  uint64_t bytes() const {
    return (symbols_ ? symbols_->bytes() : 0) + (lines_ == nullptr ? 0 : lines_->bytes());
  }

  // Frees what libdw has read so far; libdw reads it again on demand.
  void CloseLines() { lines_ = lines_ == nullptr ? nullptr : OpenLines(); }

  std::vector<ResolvedSymbol> Resolve(uint64_t address) {
    LoadSymbols();
    if (state_ != ModuleState::kUsable) return {};
    const std::string_view symbol = symbols_->Find(address);
    std::vector<DwarfFrame> frames;
    if (lines_ != nullptr) frames = lines_->Find(address);
    if (frames.empty()) {
      if (symbol.empty()) return {};
      return {{Demangle(symbol), "", 0}};
    }
    // The symbol names the machine code, so it belongs to the outermost function, for which DWARF
    // may have only the bare name.
    if (!symbol.empty()) frames.back().function = std::string(symbol);
    std::vector<ResolvedSymbol> out;
    for (DwarfFrame& frame : frames) {
      out.push_back({Demangle(frame.function), std::move(frame.file), frame.line});
    }
    return out;
  }

 private:
  // Called for the first address that is not in the cache, because building the table of a large
  // library takes most of the time.
  void LoadSymbols() {
    if (state_ != ModuleState::kUsable || symbols_) return;
    symbols_.emplace(*files_.file);
    if (files_.debug != nullptr) {
      if (!symbols_->from_symtab()) {
        SymbolTable better(*files_.debug);
        if (better.size() > symbols_->size()) symbols_.emplace(*files_.debug);
      }
    }
    lines_ = OpenLines();
    if (lines_ == nullptr && symbols_->size() == 0) state_ = ModuleState::kNoSymbols;
  }

  std::unique_ptr<DwarfLines> OpenLines() const {
    auto lines = files_.debug == nullptr ? nullptr : DwarfLines::Open(*files_.debug);
    return lines != nullptr ? std::move(lines) : DwarfLines::Open(*files_.file);
  }

  const ModuleKey key_;
  ModuleFiles files_;
  const std::string identity_;
  ModuleState state_;
  std::optional<SymbolTable> symbols_;
  std::unique_ptr<DwarfLines> lines_;
};

const char* Describe(ModuleState state) {
  switch (state) {
    case ModuleState::kUsable:
      return "has symbols";
    case ModuleState::kMissing:
      return "is not on this machine";
    case ModuleState::kChanged:
      return "has changed since it was recorded (another build-id)";
    case ModuleState::kUnreadable:
      return "is not a readable ELF file";
    case ModuleState::kNoSymbols:
      return "has no symbols (stripped)";
  }
  return "";
}

Symbolizer::Symbolizer(SymbolizerOptions options) : options_(std::move(options)) {
  if (options_.max_open_modules == 0) options_.max_open_modules = 1;
}

Symbolizer::~Symbolizer() = default;

Symbolizer::Module& Symbolizer::Open(const ModuleKey& key) {
  if (auto found = open_.find(key); found != open_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return *recent_.front();
  }
  recent_.push_front(std::make_unique<Module>(key, options_));
  open_[key] = recent_.begin();
  if (recent_.size() > options_.max_open_modules) CloseOldest();
  return *recent_.front();
}

void Symbolizer::CloseOldest() {
  open_.erase(recent_.back()->key());
  recent_.pop_back();
}

uint64_t Symbolizer::open_bytes() const {
  uint64_t bytes = 0;
  for (const auto& module : recent_) bytes += module->bytes();
  return bytes;
}

std::vector<ResolvedSymbol> Symbolizer::Resolve(const ModuleKey& key, uint64_t address,
                                                AddressKind kind) {
  if (kind == AddressKind::kReturn && address > 0) --address;
  Module& module = Open(key);
  const bool is_cached = options_.cache != nullptr && !module.identity().empty();
  if (is_cached) {
    if (auto known = options_.cache->Find(module.identity(), address)) return *std::move(known);
  }
  std::vector<ResolvedSymbol> symbols = module.Resolve(address);
  if (is_cached) options_.cache->Add(module.identity(), address, symbols);
  StayWithin(options_.max_bytes);
  return symbols;
}

// libdw keeps every unit that it has read, so an open module grows.
void Symbolizer::StayWithin(uint64_t bytes) {
  while (recent_.size() > 1 && open_bytes() > bytes) CloseOldest();
  if (open_bytes() > bytes) recent_.front()->CloseLines();
}

ModuleState Symbolizer::StateOf(const ModuleKey& module) { return Open(module).state(); }

}  // namespace gmt::symbols
