// Numbers that look drawn, and are the same in every peer.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

class Draws {
  uint64_t x = 0x5eed;
public:
  uint64_t below(uint64_t end) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    return (x >> 33) % end;
  }
};

// Which of so many objects are called, in their order: all, or one out of each thousandth.
inline std::vector<uint32_t> drawn(uint64_t objects) {
  uint64_t parts = std::min<uint64_t>(objects, 1000);
  Draws draws;
  std::vector<uint32_t> all;
  for (uint64_t part = 0; part < parts; part++) {
    uint64_t from = part * objects / parts, to = (part + 1) * objects / parts;
    all.push_back(uint32_t(from + draws.below(to - from)));
  }
  return all;
}
