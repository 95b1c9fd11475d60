/* The test series: messages of 16 bytes and units of 32, one a frame, as calls or oneways. The server notes when it had each, by
 * the monotonic clock, which both sides share.
 * A message: when it was sent (8 bytes), its number (4), how many octets follow (4), these. The reply of a call: when it arrived (8).
 * ARRIVALS: how many had other contents (4), 4 of nothing, and an Arrival each. */
#ifndef SERIES_H
#define SERIES_H
#include "common.h"
#include <time.h>

typedef struct { uint64_t sent; uint32_t number, octets; } Head;
typedef struct { uint64_t sent, arrived; uint32_t number, nothing; } Arrival;
_Static_assert(sizeof(Head) == 16 && sizeof(Arrival) == 24, "layout");

static inline uint64_t monotonic(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* What a server notes. */
enum { MOST = 1 << 16 };
typedef struct { uint32_t wanted, n, bad; Arrival *all; } Notes;

static inline void begin(Notes *notes, uint32_t wanted) {
  notes->wanted = wanted;
  notes->n = notes->bad = 0;
  if (!notes->all && !(notes->all = malloc(MOST * sizeof *notes->all))) die("malloc");
}

static inline uint64_t note(Notes *notes, const char *message, uint32_t len) {
  uint64_t arrived = monotonic();
  Head head = {0};
  if (len >= sizeof head) memcpy(&head, message, sizeof head);
  if (notes->n < MOST && notes->all) notes->all[notes->n++] = (Arrival){head.sent, arrived, head.number, 0};
  if (notes->wanted) {
    int right = len == sizeof head + notes->wanted && head.octets == notes->wanted;
    for (uint32_t i = 0; right && i < notes->wanted; i++) right = message[sizeof head + i] == pattern(i);
    if (!right) notes->bad++;
  }
  return arrived;
}

static inline int tell(Notes *notes, int fd, Call *call) {
  size_t n = notes->n * sizeof *notes->all;
  char *reply = malloc(8 + n);
  if (!reply) die("malloc");
  memset(reply, 0, 8);
  memcpy(reply, &notes->bad, sizeof notes->bad);
  if (n) memcpy(reply + 8, notes->all, n);
  call->h.len = 8 + n;
  int ok = put(fd, call, sizeof *call, reply, call->h.len);
  free(reply);
  return ok;
}
#endif
