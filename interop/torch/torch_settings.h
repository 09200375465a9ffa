// interop/torch/torch_settings.h
//
// PyTorch's allocator settings as its snapshots contain them, derived from the environment
// variables. Keys, units and defaults: c10/cuda/CUDAAllocatorConfig and `allocator_settings` of
// torch.cuda.memory._snapshot(), PyTorch 2.6 and 2.11.
//
//   PYTORCH_CUDA_ALLOC_CONF  max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:8]
//   allocator_settings       max_split_size 134217728 (-1: none), roundup_power2_divisions {'1': 1,
//                            ... '512': 2, '1024': 8, ...}: divisions from so many MiB on
//
// An option that snapshots do not contain is kept under its own name, as text.
//
// Thread safety: pure functions.

#ifndef GMT_INTEROP_TORCH_TORCH_SETTINGS_H_
#define GMT_INTEROP_TORCH_TORCH_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/trace/run_facts.h"
#include "analysis/whatif/allocator_settings.h"
#include "interop/pickle/pickle_writer.h"

namespace gmt::interop {

struct TorchSettings {
  std::string text;
  int64_t max_split_size = -1;  // bytes
  double garbage_collection_threshold = 0;
  bool expandable_segments = false;
  int64_t pinned_num_register_threads = 1;
  bool release_lock_on_cudamalloc = false;
  bool pinned_use_cuda_host_register = false;
  bool graph_capture_record_stream_reuse = false;
  analysis::RoundupDivisions roundup_power2_divisions = {};  // from 1 MiB, 2 MiB, ... 32 GiB on
  std::vector<std::pair<std::string, std::string>> others;
};

// Reads the text as this release does, by default as the newest. Values that PyTorch would reject
// are kept as text.
TorchSettings ParseTorchSettings(std::string_view text,
                                 const std::optional<analysis::TorchVersion>& torch = {});

// Writes a dict.
void WriteTorchSettings(const TorchSettings& settings, PickleWriter& pickle);

// Writes the settings of an imported snapshot unchanged, as a dict.
void WriteStatedSettings(const std::vector<analysis::NamedText>& settings, PickleWriter& pickle);

}  // namespace gmt::interop

#endif  // GMT_INTEROP_TORCH_TORCH_SETTINGS_H_
