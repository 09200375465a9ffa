#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gmt::symbols {
namespace {

// The vdso is a few pages that end with its section headers. This limits how far a damaged e_shoff
// can make us read.
constexpr size_t kMaxVdsoBytes = 64 * 1024;

absl::Status NotElf(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": not an ELF file"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::Open(const std::string& path) {
  elf_version(EV_CURRENT);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::NotFoundError(absl::StrCat(path, ": ", strerror(errno)));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return NotElf(path);
  }
  Elf* elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) {
    elf_end(elf);
    close(fd);
    return NotElf(path);
  }
  return std::unique_ptr<ElfFile>(new ElfFile(path, fd, elf));
}

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::OpenVdso() {
  elf_version(EV_CURRENT);
  auto* image = reinterpret_cast<char*>(getauxval(AT_SYSINFO_EHDR));
  if (image == nullptr) return absl::NotFoundError("[vdso]: the kernel provides none");
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof(header));
  const size_t size = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  if (size > kMaxVdsoBytes) return NotElf("[vdso]");
  Elf* elf = elf_memory(image, size);
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) {
    elf_end(elf);
    return NotElf("[vdso]");
  }
  return std::unique_ptr<ElfFile>(new ElfFile("[vdso]", -1, elf));
}

ElfFile::~ElfFile() {
  elf_end(elf_);
  if (fd_ >= 0) close(fd_);
}

std::string ElfFile::Stamp() const {
  struct stat info;
  if (fd_ < 0 || fstat(fd_, &info) != 0) return "";
  return absl::StrCat(info.st_size, ".", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

std::string ElfFile::BuildId() const {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf_, &bytes);
  if (size <= 0) return "";
  return std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string ElfFile::DebugLink() const {
  GElf_Word crc;
  const char* name = dwelf_elf_gnu_debuglink(elf_, &crc);
  // objcopy writes names without a directory; others could refer to any file.
  if (name == nullptr || std::string_view(name).find('/') != std::string_view::npos) return "";
  return name;
}

bool ElfFile::HasSection(const char* name) const {
  size_t names = 0;
  if (elf_getshdrstrndx(elf_, &names) != 0) return false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* section_name = elf_strptr(elf_, names, header.sh_name);
    if (section_name != nullptr && strcmp(section_name, name) == 0 && header.sh_size > 0) {
      return true;
    }
  }
  return false;
}

}  // namespace gmt::symbols
