// symbols/testing/sample_library.h
//
// For tests: loads a build of testdata/sample.cc, so that probes return real addresses.

#ifndef GMT_SYMBOLS_TESTING_SAMPLE_LIBRARY_H_
#define GMT_SYMBOLS_TESTING_SAMPLE_LIBRARY_H_

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "symbols/elf_file.h"
#include "symbols/symbolizer.h"

namespace gmt::symbols {

class SampleLibrary {
 public:
  // `variant`: a directory of testdata/CMakeLists.txt.
  explicit SampleLibrary(const std::string& variant)
      : path_(std::string(GMT_SYMBOLS_TESTDATA) + "/" + variant + "/sample.so"),
        handle_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~SampleLibrary() { dlclose(handle_); }

  ModuleKey key() const { return {path_, ElfFile::Open(path_).value()->BuildId()}; }
  const std::string& path() const { return path_; }

  // Return addresses in the ELF file.
  uint64_t Probe(const char* function) const {
    return InFile(reinterpret_cast<void* (*)()>(Find(function))());
  }
  uint64_t Symbol(const char* name) const { return InFile(Find(name)); }

 private:
  void* Find(const char* name) const {
    void* found = dlsym(handle_, name);
    if (found == nullptr) throw std::runtime_error(name);
    return found;
  }
  static uint64_t InFile(void* address) {
    Dl_info info;
    dladdr(address, &info);
    return reinterpret_cast<uint64_t>(address) - reinterpret_cast<uint64_t>(info.dli_fbase);
  }

  std::string path_;
  void* handle_;
};

}  // namespace gmt::symbols

#endif  // GMT_SYMBOLS_TESTING_SAMPLE_LIBRARY_H_
