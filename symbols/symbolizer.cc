#include "symbols/symbolizer.h"

#include <optional>
#include <string_view>
#include <utility>

#include "symbols/demangle.h"
#include "symbols/dwarf_lines.h"
#include "symbols/module_files.h"
#include "symbols/symbol_table.h"

namespace gmt::symbols {
// What is open of one module. A module that cannot be used is kept too, so that it is looked for
// once.
class Symbolizer::Module {
 public:
  Module(const ModuleKey& key, const SymbolizerOptions& options)
      : key_(key), files_(OpenModuleFiles(key, options)), state_(files_.state) {
    if (state_ == ModuleState::kUsable) LoadSymbols();
  }

  const ModuleKey& key() const { return key_; }
  ModuleState state() const { return state_; }

  // Of tables: what is mapped belongs to the page cache.
  uint64_t bytes() const {
    return (symbols_ ? symbols_->bytes() : 0) + (lines_ == nullptr ? 0 : lines_->bytes());
  }

  // What libdw has read so far; it reads again what is asked for again.
  void CloseLines() { lines_ = lines_ == nullptr ? nullptr : OpenLines(); }

  std::vector<ResolvedSymbol> Resolve(uint64_t address) {
    if (state_ != ModuleState::kUsable) return {};
    const std::string_view symbol = symbols_->Find(address);
    std::vector<DwarfFrame> frames;
    if (lines_ != nullptr) frames = lines_->Find(address);
    if (frames.empty()) {
      if (symbol.empty()) return {};
      return {{Demangle(symbol), "", 0}};
    }
    // The symbol names the machine code, so it belongs to the outermost function; DWARF may know
    // only its bare name.
    if (!symbol.empty()) frames.back().function = std::string(symbol);
    std::vector<ResolvedSymbol> out;
    for (DwarfFrame& frame : frames) {
      out.push_back({Demangle(frame.function), std::move(frame.file), frame.line});
    }
    return out;
  }

 private:
  void LoadSymbols() {
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

std::vector<ResolvedSymbol> Symbolizer::Resolve(const ModuleKey& module, uint64_t address,
                                                AddressKind kind) {
  if (kind == AddressKind::kReturn && address > 0) --address;
  std::vector<ResolvedSymbol> symbols = Open(module).Resolve(address);
  // libdw keeps every unit that it has read, so a module grows while it is open.
  while (recent_.size() > 1 && open_bytes() > options_.max_bytes) CloseOldest();
  if (open_bytes() > options_.max_bytes) recent_.front()->CloseLines();
  return symbols;
}

ModuleState Symbolizer::StateOf(const ModuleKey& module) { return Open(module).state(); }

}  // namespace gmt::symbols
