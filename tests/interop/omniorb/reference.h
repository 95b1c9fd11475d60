// References as text: which address, key and GIOP version they name, and the same
// reference at another port (the recorder's relay).
#pragma once
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Reference {
  std::string text;               // IOR:... or corbaloc:...
  int minor = 2;                  // IIOP 1.minor
  int port = 0;
  std::vector<uint8_t> key;
  bool code_sets = false;         // it may carry code sets: an IOR above 1.0
  std::vector<uint8_t> profile;   // of an IOR: its first profile's encapsulation
  std::vector<uint8_t> ior;       // the octets of an IOR

  // text: an IOR, a corbaloc of one address (without a version: of 1.`minor`; without
  // a key: /`key`), or a path to a file with one of them.
  Reference(std::string text, const std::string& version, const std::string& key);
  std::string at_port(int port) const;
  // Of an IOR, with tabs between: byte order, version, type id, host, port, key in hex.
  std::string description() const;

private:
  void parse_ior();
  void parse_corbaloc(const std::string& version, const std::string& key);
  size_t port_at = 0;             // where the port stands: octet of the IOR, character of the corbaloc
  size_t port_size = 2;
  bool little = false;            // its profile
};

inline Reference::Reference(std::string given, const std::string& version, const std::string& key) : text(std::move(given)) {
  if (text.compare(0, 4, "IOR:") && text.compare(0, 9, "corbaloc:")) {
    std::ifstream file(text);
    if (!(file >> text)) throw std::runtime_error("no reference in " + text);
  }
  if (!text.compare(0, 4, "IOR:")) parse_ior();
  else parse_corbaloc(version, key);
}

inline void Reference::parse_ior() {
  for (size_t i = 4; i + 1 < text.size(); i += 2) ior.push_back(std::stoi(text.substr(i, 2), nullptr, 16));
  auto number = [&](size_t at, bool le, int n) {
    uint32_t v = 0;
    for (int i = 0; i < n; i++) v |= uint32_t(ior.at(at + i)) << 8 * (le ? i : n - 1 - i);
    return v;
  };
  bool le = ior.at(0);
  size_t at = (8 + number(4, le, 4) + 3) / 4 * 4;           // behind the type id
  size_t at_profile = at + 12;
  if (number(at, le, 4) < 1 || number(at + 4, le, 4) != 0) throw std::runtime_error("the IOR does not start with an IIOP profile");
  little = ior.at(at_profile);
  minor = ior.at(at_profile + 2);
  port_at = (8 + number(at_profile + 4, little, 4) + 1) / 2 * 2 + at_profile;
  port = number(port_at, little, 2);
  size_t key_at = (port_at - at_profile + 2 + 3) / 4 * 4 + at_profile;
  size_t size = number(key_at, little, 4);
  key.assign(ior.begin() + key_at + 4, ior.begin() + key_at + 4 + size);
  code_sets = minor > 0;
  profile.assign(ior.begin() + at_profile, ior.begin() + at_profile + number(at + 8, le, 4));
}

inline void Reference::parse_corbaloc(const std::string& version, const std::string& plain_key) {
  if (text.find('/') == std::string::npos) text += "/" + plain_key;
  size_t host = text.find(':', 9) + 1, at = text.find('@');
  if (at == std::string::npos) text.insert(host, version + "@"), at = text.find('@');
  minor = text[at - 1] - '0';
  size_t slash = text.find('/');
  port_at = text.rfind(':', slash) + 1;
  port_size = slash - port_at;
  port = std::stoi(text.substr(port_at, port_size));
  key.assign(text.begin() + slash + 1, text.end());         // the keys of these peers need no escapes
}

inline std::string Reference::at_port(int other) const {
  std::string out = text;
  if (ior.empty()) return out.replace(port_at, port_size, std::to_string(other));
  char hex[5];
  snprintf(hex, sizeof hex, "%02x%02x", little ? other & 255 : other >> 8, little ? other >> 8 : other & 255);
  return out.replace(4 + 2 * port_at, 4, hex);
}

inline std::string Reference::description() const {
  std::string hex, id(ior.begin() + 8, ior.begin() + 8 + ior[ior[0] ? 4 : 7] - 1);
  std::string host(profile.begin() + 8, profile.begin() + 8 + profile[little ? 4 : 7] - 1);
  for (auto k : key) {
    char two[3];
    snprintf(two, sizeof two, "%02x", k);
    hex += two;
  }
  return std::string(ior[0] ? "LE" : "BE") + "\t1." + std::to_string(minor) + '\t' + id + '\t' + host + '\t' + std::to_string(port) + '\t' + hex;
}
