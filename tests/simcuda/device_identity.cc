#include "tests/simcuda/device_identity.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sim {
namespace {

bool Contains(const std::vector<int>& list, int device) {
  return std::find(list.begin(), list.end(), device) != list.end();
}

// Returns the element of `order` named by an entry of CUDA_VISIBLE_DEVICES; -1: none, or ambiguous.
int Named(const std::string& entry, const std::vector<int>& order) {
  if (!entry.empty() && entry.find_first_not_of("0123456789") == std::string::npos) {
    const unsigned long number = std::strtoul(entry.c_str(), nullptr, 10);
    return number < order.size() ? order[number] : -1;
  }
  if (entry.rfind("GPU-", 0) != 0) return -1;
  int found = -1;
  for (int physical : order) {
    if (UuidText(physical).rfind(entry, 0) != 0) continue;
    if (found >= 0) return -1;
    found = physical;
  }
  return found;
}

template <typename Visit>
void ForEachEntry(const std::string& list, Visit visit) {
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    std::string entry = list.substr(begin, end - begin);
    entry.erase(0, entry.find_first_not_of(' '));
    entry.erase(entry.find_last_not_of(' ') + 1);
    if (!visit(entry)) return;
    begin = end + 1;
  }
}

}  // namespace

std::array<char, 16> UuidOf(int physical) {
  std::array<char, 16> uuid = {};
  std::memcpy(uuid.data(), "0-simulated-gpu", 15);
  uuid[0] = static_cast<char>('0' + physical);  // first, so that prefixes are unambiguous
  return uuid;
}

std::string UuidText(int physical) {
  std::string text = "GPU";
  const std::array<char, 16> uuid = UuidOf(physical);
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(uuid[i]));
    text += digits;
  }
  return text;
}

std::string PciBusIdOf(int physical) {
  char id[16];
  std::snprintf(id, sizeof(id), "0000:%02x:00.0", static_cast<unsigned>(physical + 1) & 0xff);
  return id;
}

int PhysicalOfPciBusId(const std::string& id, int devices) {
  const size_t colon = id.find(':');
  if (colon == std::string::npos) return -1;
  const long bus = std::strtol(id.c_str() + colon + 1, nullptr, 16);
  return bus >= 1 && bus <= devices ? static_cast<int>(bus - 1) : -1;
}

std::vector<int> CudaOrder(const std::string& fastest_first, const std::string& device_order,
                           int devices) {
  std::vector<int> order;
  if (device_order != "PCI_BUS_ID") {
    ForEachEntry(fastest_first, [&](const std::string& entry) {
      const int device = std::atoi(entry.c_str());
      if (device >= 0 && device < devices && !Contains(order, device)) order.push_back(device);
      return true;
    });
  }
  for (int device = 0; device < devices; ++device) {
    if (!Contains(order, device)) order.push_back(device);
  }
  return order;
}

std::vector<int> VisibleDevices(const std::string& list, const std::vector<int>& order) {
  std::vector<int> visible;
  ForEachEntry(list, [&](const std::string& entry) {
    const int device = Named(entry, order);
    if (device < 0 || Contains(visible, device)) return false;
    visible.push_back(device);
    return true;
  });
  return visible;
}

}  // namespace sim
