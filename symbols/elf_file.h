// symbols/elf_file.h
//
// ElfFile: an ELF file opened for reading its symbols, from a path, or the vdso from this process's
// memory.
//
// The file is mapped and not read completely: a library of 450 MB costs only the pages of its
// symbol table that a lookup touches.
//
// Ownership: owns the file descriptor and libelf's handle; the result of handle() lives as long as
// the ElfFile. Thread safety: one thread at a time (libelf).

#ifndef GMT_SYMBOLS_ELF_FILE_H_
#define GMT_SYMBOLS_ELF_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

struct Elf;

namespace gmt::symbols {

class ElfFile {
 public:
  // Returns NOT_FOUND if there is no such file, and FAILED_PRECONDITION if it is not an ELF file
  // or not a regular file (a FIFO or device mapped by the traced process must not block us).
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(const std::string& path);
  // Opens the kernel's vdso as mapped in this process. It may be used for another process of this
  // machine if the build-id is the same.
  static absl::StatusOr<std::unique_ptr<ElfFile>> OpenVdso();
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  Elf* handle() const { return elf_; }
  const std::string& path() const { return path_; }

  // Returns size and modification time, which differ for other versions of the file; "" for the
  // vdso.
  std::string Stamp() const;
  // Returns raw bytes, or "" if the file has no build-id.
  std::string BuildId() const;
  // Returns the file name in .gnu_debuglink, without a directory, or "" if there is none.
  std::string DebugLink() const;
  // Returns whether a section of that name has data in this file. A stripped file has no
  // .debug_info; in a separate debug file, .text has a header but no data.
  bool HasSection(const char* name) const;

 private:
  ElfFile(std::string path, int fd, Elf* elf) : path_(std::move(path)), fd_(fd), elf_(elf) {}

  std::string path_;
  int fd_;
  Elf* elf_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_ELF_FILE_H_
