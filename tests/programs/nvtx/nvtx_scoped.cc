// Uses the C++ interface of NVTX: scoped ranges in a domain, unique ranges, registered strings, and
// an exception that leaves a range.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <nvtx3/nvtx3.hpp>
#include <stdexcept>

struct training {
  static constexpr char const* name{"training"};
};
struct loss {
  static constexpr char const* message{"loss"};
};

static void Train(int step) {
  const nvtx3::scoped_range_in<training> range{"step", nvtx3::rgb{18, 52, 86}};
  nvtx3::mark_in<training>("batch");
  const nvtx3::scoped_range_in<training> inner{nvtx3::registered_string_in<training>::get<loss>()};
  if (step == 1) throw std::runtime_error("the loss is not a number");
}

int main() {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 1 << 20) != cudaSuccess) return 1;
  const nvtx3::unique_range whole{"whole run"};
  for (int step = 0; step < 3; ++step) {
    try {
      Train(step);
    } catch (const std::runtime_error&) {
      nvtx3::mark("caught");
    }
  }
}
