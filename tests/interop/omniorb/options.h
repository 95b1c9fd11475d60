// Command line and ORB set-up of servers and clients.
#pragma once
#include <cstdlib>
#include <cstring>
#include <omniORB4/CORBA.h>
#include <string>
#include <unistd.h>
#include <vector>

inline std::string opt(int argc, char** argv, const char* name, const char* dflt) {
  for (int i = 1; i + 1 < argc; i++)
    if (!strcmp(argv[i], name)) return argv[i + 1];
  return dflt;
}

inline bool flag(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], name)) return true;
  return false;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

inline CORBA::ORB_ptr initOrb(int& argc, char** argv, const Settings& set) {
  std::vector<const char*> flat;
  for (auto& s : set) {
    flat.push_back(s.first.c_str());
    flat.push_back(s.second.c_str());
  }
  flat.push_back(0);
  flat.push_back(0);
  return CORBA::ORB_init(argc, argv, "omniORB4", reinterpret_cast<const char* (*)[2]>(flat.data()));
}

// Ends the process, so that nothing is left behind when the test that started it dies.
inline void exitAfter(const std::string& seconds) { alarm(atoi(seconds.c_str())); }
