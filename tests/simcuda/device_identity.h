// The names of simulated devices, and which devices of the machine a process sees in which order.
//
//   physical   number on the machine, by PCI bus id, as NVML counts in every process
//   ordinal    number in one process, after CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, as CUDA
//              counts
//
// Pure functions, used by both the driver and NVML, so that they agree.
#ifndef TESTS_SIMCUDA_DEVICE_IDENTITY_H_
#define TESTS_SIMCUDA_DEVICE_IDENTITY_H_

#include <array>
#include <string>
#include <vector>

namespace sim {

inline constexpr const char* kDeviceName = "Simulated CUDA device";

std::array<char, 16> UuidOf(int physical);
// "GPU-302d7369-6d75-6c61-7465-642d67707500"
std::string UuidText(int physical);
// "0000:01:00.0"
std::string PciBusIdOf(int physical);
// Returns the device of "domain:bus:device.function", whose domain may have four or eight digits;
// -1: none.
int PhysicalOfPciBusId(const std::string& id, int devices);

// Returns CUDA's order without CUDA_VISIBLE_DEVICES: `fastest_first` ("2,0,1"; devices not listed
// follow), unless `device_order` is "PCI_BUS_ID".
std::vector<int> CudaOrder(const std::string& fastest_first, const std::string& device_order,
                           int devices);

// Returns the part of `order` that CUDA_VISIBLE_DEVICES=`list` selects: numbers in that order, or
// unambiguous prefixes of UUIDs. The first entry that names no device, or one named before, ends
// the list.
std::vector<int> VisibleDevices(const std::string& list, const std::vector<int>& order);

}  // namespace sim

#endif  // TESTS_SIMCUDA_DEVICE_IDENTITY_H_
