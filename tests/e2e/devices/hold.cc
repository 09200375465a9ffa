// Holds memory on some devices for a while, and prints CUDA's identification of them.
//
// Usage: hold MILLISECONDS|input DEVICE:MIB...     each device by its number in this process
//        hold --ask MILLISECONDS DEVICE:MIB...   also queries free memory
// Prints {"pid":..,"devices":[{"index":..,"uuid":"..","pci_bus_id":".."}]} when all of it is held.
// Half way, or when its input ends, makes a second allocation of the same size and frees it at
// once. Exit code 1 if a CUDA call failed.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Held {
  int device;
  size_t bytes;
};

bool Take(const Held& held, bool keep) {
  void* memory = nullptr;
  if (cudaSetDevice(held.device) != cudaSuccess) return false;
  if (cudaMalloc(&memory, held.bytes) != cudaSuccess) return false;
  return keep || cudaFree(memory) == cudaSuccess;
}

bool Describe(const Held& held, bool first) {
  cudaDeviceProp properties;
  char pci[32];
  if (cudaGetDeviceProperties(&properties, held.device) != cudaSuccess ||
      cudaDeviceGetPCIBusId(pci, sizeof(pci), held.device) != cudaSuccess) {
    return false;
  }
  std::printf("%s{\"index\":%d,\"uuid\":\"GPU", first ? "" : ",", held.device);
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    std::printf("%s%02x", dash ? "-" : "", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  std::printf("\",\"pci_bus_id\":\"%s\"}", pci);
  return true;
}

bool Ask(const Held& held) {
  size_t free = 0, total = 0;
  return cudaSetDevice(held.device) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  int next = 1;
  const bool ask = next < argc && std::strcmp(argv[next], "--ask") == 0;
  if (ask) ++next;
  if (argc - next < 2) return 2;
  const bool is_told = std::strcmp(argv[next], "input") == 0;
  const auto half = static_cast<useconds_t>(std::atoi(argv[next++]) * 500);
  std::vector<Held> all;
  for (; next < argc; ++next) {
    const char* colon = std::strchr(argv[next], ':');
    if (colon == nullptr) return 2;
    all.push_back({std::atoi(argv[next]), static_cast<size_t>(std::atoll(colon + 1)) << 20});
  }
  bool works = true;
  for (const Held& held : all) works = works && Take(held, true) && (!ask || Ask(held));
  std::printf("{\"pid\":%d,\"devices\":[", static_cast<int>(getpid()));
  for (const Held& held : all) works = works && Describe(held, &held == &all.front());
  std::printf("]}\n");
  std::fflush(stdout);
  while (is_told && std::getchar() != EOF) {
  }
  usleep(half);
  for (const Held& held : all) works = works && Take(held, false);
  usleep(half);
  return works ? 0 : 1;
}
