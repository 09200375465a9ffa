#include "symbols/symbolizer.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/strip.h"
#include "symbols/debug_files.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_lines.h"
#include "symbols/elf_file.h"
#include "symbols/symbol_table.h"

namespace gmt::symbols {
namespace {

bool IsVdso(std::string_view path) {
  return path == "[vdso]" || path == "linux-vdso.so.1" || path == "linux-gate.so.1";
}

absl::StatusOr<std::unique_ptr<ElfFile>> OpenModule(const std::string& root,
                                                    const std::string& path) {
  if (IsVdso(path)) return ElfFile::OpenVdso();
  // A deleted file's name may have a new owner; the build-id decides.
  return ElfFile::Open(root + std::string(absl::StripSuffix(path, " (deleted)")));
}

}  // namespace

// What is open of one module. A module that cannot be used is kept too, so that it is looked for
// once.
class Symbolizer::Module {
 public:
  Module(const ModuleKey& key, const SymbolizerOptions& options) : key_(key) {
    auto file = OpenModule(options.root, key.path);
    if (!file.ok()) {
      state_ = absl::IsNotFound(file.status()) ? ModuleState::kMissing : ModuleState::kUnreadable;
      return;
    }
    if ((*file)->BuildId() != key.build_id) {
      state_ = ModuleState::kChanged;
      return;
    }
    file_ = *std::move(file);
    debug_file_ = FindDebugFile(*file_, options.debug_dirs);
    LoadSymbols();
  }

  const ModuleKey& key() const { return key_; }
  ModuleState state() const { return state_; }

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
    symbols_.emplace(*file_);
    if (debug_file_ != nullptr) {
      if (!symbols_->from_symtab()) {
        SymbolTable better(*debug_file_);
        if (better.size() > symbols_->size()) symbols_.emplace(*debug_file_);
      }
      lines_ = DwarfLines::Open(*debug_file_);
    }
    if (lines_ == nullptr) lines_ = DwarfLines::Open(*file_);
    if (lines_ == nullptr && symbols_->size() == 0) state_ = ModuleState::kNoSymbols;
  }

  ModuleKey key_;
  ModuleState state_ = ModuleState::kUsable;
  std::unique_ptr<ElfFile> file_, debug_file_;
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
  if (recent_.size() > options_.max_open_modules) {
    open_.erase(recent_.back()->key());
    recent_.pop_back();
  }
  return *recent_.front();
}

std::vector<ResolvedSymbol> Symbolizer::Resolve(const ModuleKey& module, uint64_t address,
                                                AddressKind kind) {
  if (kind == AddressKind::kReturn && address > 0) --address;
  return Open(module).Resolve(address);
}

ModuleState Symbolizer::StateOf(const ModuleKey& module) { return Open(module).state(); }

}  // namespace gmt::symbols
