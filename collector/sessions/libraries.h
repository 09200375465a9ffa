// collector/sessions/libraries.h
//
// Finds the versions of the driver, the CUDA runtime, PyTorch and Python that a process uses, from
// outside: from the files mapped into it and the files beside them. Loads and runs nothing.
//
//   name           file                                          source of the version
//   cuda_driver    libcuda.so.580.65.06                          its name
//   cuda_runtime   libcudart.so.12.4.127                         its name
//                  nvidia_cuda_runtime-13.0.96.dist-info         or the name of its wheel
//   torch          torch/version.py beside torch/lib/libtorch*   __version__ in it
//   python         libpython3.11.so.1.0, bin/python3.11          patchlevel.h, or its name
//
// Thread safety: free functions.

#ifndef GMT_COLLECTOR_SESSIONS_LIBRARIES_H_
#define GMT_COLLECTOR_SESSIONS_LIBRARIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/messages_fwd.h"

namespace gmt::collector {

// Name -> version. A missing name is not in use, or its version is unknown.
using Libraries = std::map<std::string, std::string>;

// Returns the libraries of a live process; empty if it cannot be inspected.
Libraries FindLibraries(uint64_t pid);

// Returns the libraries of a process with these mapped files, whose paths are relative to `root`
// ("/proc/PID/root"; may be empty).
Libraries FindLibraries(const std::vector<std::string>& mapped_files, const std::string& root);

// Returns the libcuda.so.1 that a live process has mapped; empty if there is none or the process
// cannot be inspected.
std::string MappedDriver(uint64_t pid);

// Returns the files in the text of a /proc/PID/maps, each once.
std::vector<std::string> MappedFiles(const std::string& maps);

void AddLibraries(const Libraries& libraries, gmt::Facts* facts);

}  // namespace gmt::collector

#endif  // GMT_COLLECTOR_SESSIONS_LIBRARIES_H_
