#include "symbols/module_files.h"

#include <unistd.h>

#include <climits>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "symbols/debug_files.h"

namespace gmt::symbols {
namespace {

constexpr char kDeleted[] = " (deleted)";

bool IsVdso(std::string_view path) {
  return path == "[vdso]" || path == "linux-vdso.so.1" || path == "linux-gate.so.1";
}

// Returns the kernel's path to a deleted file that a process executes or has mapped, or "" if
// there is none. Only root may open a file that is merely mapped.
std::string DeletedFile(const std::string& process, const std::string& path) {
  char target[PATH_MAX];
  const std::string executable = process + "/exe";
  const ssize_t size = readlink(executable.c_str(), target, sizeof(target));
  if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == path) return executable;
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!absl::EndsWith(line, absl::StrCat(" ", path))) continue;
    return absl::StrCat(process, "/map_files/", line.substr(0, line.find(' ')));
  }
  return "";
}

absl::StatusOr<std::unique_ptr<ElfFile>> OpenModule(const ModuleKey& module,
                                                    const SymbolizerOptions& options) {
  if (IsVdso(module.path)) return ElfFile::OpenVdso();
  if (!options.process.empty() && absl::EndsWith(module.path, kDeleted)) {
    auto file = ElfFile::Open(DeletedFile(options.process, module.path));
    if (file.ok()) return file;
  }
  // Another file may have the name of the deleted one; the build-id decides.
  return ElfFile::Open(options.root + std::string(absl::StripSuffix(module.path, kDeleted)));
}

bool HasDwarf(const ElfFile* file) {
  return file != nullptr && (file->HasSection(".debug_info") || file->HasSection(".zdebug_info"));
}

std::unique_ptr<ElfFile> AskFinders(const std::string& build_id, const SymbolizerOptions& options) {
  if (build_id.empty()) return nullptr;
  for (const FindByBuildId& find : options.finders) {
    auto file = ElfFile::Open(find(build_id));
    if (file.ok() && (*file)->BuildId() == build_id) return *std::move(file);
  }
  return nullptr;
}

}  // namespace

ModuleFiles OpenModuleFiles(const ModuleKey& module, const SymbolizerOptions& options) {
  ModuleFiles files;
  auto file = OpenModule(module, options);
  if (!file.ok()) {
    files.state =
        absl::IsNotFound(file.status()) ? ModuleState::kMissing : ModuleState::kUnreadable;
  } else if ((*file)->BuildId() != module.build_id) {
    files.state = ModuleState::kChanged;
  } else {
    files.file = *std::move(file);
  }
  files.debug = FindDebugFile(module.build_id, files.file.get(), options.root, options.debug_dirs);
  if (!HasDwarf(files.file.get()) && !HasDwarf(files.debug.get())) {
    if (auto found = AskFinders(module.build_id, options)) files.debug = std::move(found);
  }
  if (files.file == nullptr && files.debug != nullptr) {
    files.file = std::move(files.debug);
    files.state = ModuleState::kUsable;
  }
  return files;
}

std::string IdentityOf(const ModuleKey& module, const ModuleFiles& files) {
  if (module.build_id.empty() || files.file == nullptr) return "";
  const std::string stamp = files.file->Stamp();
  if (stamp.empty()) return "";
  return absl::StrCat(absl::BytesToHexString(module.build_id), " ", stamp, " ",
                      files.debug == nullptr ? "-" : files.debug->Stamp());
}

}  // namespace gmt::symbols
