// Command line and ORB set-up of server and client.
#pragma once
#include <cstdlib>
#include <cstring>
#include <omniORB4/CORBA.h>
#include <omniORB4/internal/giopStream.h>
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

// -ORB options on the command line override the ones chosen here.
inline CORBA::ORB_ptr initOrb(int& argc, char** argv, Settings set) {
  std::string sockbuf = opt(argc, argv, "--sockbuf", ""), giopbuf = opt(argc, argv, "--giopbuf", "");
  set.push_back({"giopMaxMsgSize", "1073741824"});
  set.push_back({"traceLevel", "0"});
  if (!sockbuf.empty()) set.push_back({"socketSendBuffer", sockbuf});
  std::vector<const char*> flat;
  for (auto& s : set) {
    flat.push_back(s.first.c_str());
    flat.push_back(s.second.c_str());
  }
  flat.push_back(0);
  flat.push_back(0);
  CORBA::ORB_ptr orb = CORBA::ORB_init(argc, argv, "omniORB4", reinterpret_cast<const char* (*)[2]>(flat.data()));
  // Not a documented setting: the size of the ORB's marshalling buffers (8192).
  if (!giopbuf.empty()) omni::giopStream::bufferSize = atoi(giopbuf.c_str());
  return orb;
}

// Ends the process, so that nothing is left behind when what started it dies.
inline void exitAfter(const std::string& seconds) { alarm(atoi(seconds.c_str())); }
