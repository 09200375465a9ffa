// symbols/elf_file.h
//
// ElfFile: one ELF file opened for reading its symbols, from a path, or the vdso from this
// process's own memory.
//
// The file is mapped, never read whole: a library of 450 MB costs the pages of its symbol table
// that a lookup touches.
//
// Ownership: owns the descriptor and libelf's handle; what handle() gives lives as long as the
// ElfFile. Thread safety: one thread at a time (libelf).

#ifndef GMT_SYMBOLS_ELF_FILE_H_
#define GMT_SYMBOLS_ELF_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

struct Elf;

namespace gmt::symbols {

class ElfFile {
 public:
  // NOT_FOUND where there is no such file, FAILED_PRECONDITION where it is no ELF file (or not a
  // regular file: a FIFO or a device that the traced process had mapped must not make us wait).
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(const std::string& path);
  // The kernel's vdso as mapped here. Right for another process of this machine; its build-id
  // tells.
  static absl::StatusOr<std::unique_ptr<ElfFile>> OpenVdso();
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  Elf* handle() const { return elf_; }
  const std::string& path() const { return path_; }

  // Size and time of change, which another version of the file does not share; empty for the vdso.
  std::string Stamp() const;
  // Raw bytes; empty where the file has none.
  std::string BuildId() const;
  // The file name in .gnu_debuglink, without a directory; empty where there is none.
  std::string DebugLink() const;
  // Whether a section of that name holds data in this very file (a stripped file keeps no
  // .debug_info; a separate debug file keeps .text as a name without bytes).
  bool HasSection(const char* name) const;

 private:
  ElfFile(std::string path, int fd, Elf* elf) : path_(std::move(path)), fd_(fd), elf_(elf) {}

  std::string path_;
  int fd_;
  Elf* elf_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_ELF_FILE_H_
