/* Both sides of the ONC RPC peer. */
#ifndef COMMON_H
#define COMMON_H
#include "../c/peer.h"
#include "ttcp.h"

/* The numbers of Packed. */
static const char *const kinds[] = {"octet", "char", "short", "long", "double", "struct", "struct32"};
enum { KINDS = 7 };

static inline Record record(size_t i) {
  Record r;
  memset(&r, 0, sizeof r);
  r.s = i; r.c = pattern(i); r.l = i; r.o = i; r.d = i * 0.5;
  return r;
}

/* Elements of a kind, n of them, as they lie in memory. */
static inline void fill(unsigned kind, char *at, size_t n) {
  size_t each = width(kinds[kind]);
  for (size_t i = 0; i < n; i++, at += each) {
    int16_t s = pattern(i); int32_t l = pattern(i); double d = pattern(i); Record r = record(i);
    switch (kind) {
      case 0: case 1: *at = pattern(i); break;
      case 2: memcpy(at, &s, sizeof s); break;
      case 3: memcpy(at, &l, sizeof l); break;
      case 4: memcpy(at, &d, sizeof d); break;
      default: memset(at, 0, each); memcpy(at, &r, sizeof r);
    }
  }
}
#endif
