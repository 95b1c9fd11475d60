/* client ttcp|ping|echo|demux|pipeline|series|last|clients [--type T] [--size BYTES] [--total BYTES]
 *        [--n N] [--depth D] [--host ADDRESS] [--port P] [--sockbuf BYTES] [--batch] [--samples FILE]
 *        [--zerocopy] [--kind octets] [--mode call|oneway] [--units N] [--frame MICROSECONDS]
 * clients: D at once, each in a thread of its own.
 *        [--operations 100|1000] [--oneway] [--iterations I]
 * last: the last of so many operations, 100 times an iteration, which the server counts.
 * --zerocopy (ttcp): the kernel takes buffers from where they are (MSG_ZEROCOPY); the line says how many it copied all the same.
 * --batch (pipeline): one write for all the requests that become due at once. */
#include "series.h"
#include "clients.h"
#include <linux/errqueue.h>
#include <poll.h>
#include <signal.h>

static Conn *c;

static void call(uint32_t type, uint32_t id, const void *in, size_t n, void *out) {
  Call q = {{type, n}, id}, r;
  if (!put(c->fd, &q, sizeof q, in, n) || !get(c, &r, sizeof r)) die("call");
  if (r.id != id || (r.h.len && !get(c, out, r.h.len))) die("reply");
}

static int zerocopy;
static uint32_t lent, returned, copied;

/* Takes in which buffers the kernel is done with; waits for all with wait. */
static void settle(int wait) {
  while (returned < lent) {
    char control[128];
    struct msghdr m = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(c->fd, &m, MSG_ERRQUEUE) < 0) {
      if (errno != EAGAIN && errno != EINTR) die("error queue");
      if (!wait) return;
      struct pollfd p = {c->fd, 0, 0};
      if (poll(&p, 1, 1000) < 0 && errno != EINTR) die("poll");
      continue;
    }
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
      struct sock_extended_err e;
      memcpy(&e, CMSG_DATA(h), sizeof e);
      if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
      uint32_t n = e.ee_data - e.ee_info + 1;
      returned += n;
      if (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) copied += n;
    }
  }
}

/* Header by value, payload lent to the kernel. */
static int lend(const Hdr *h, const char *buf, size_t n) {
  if (!put(c->fd, h, sizeof *h, NULL, 0)) return 0;
  while (n) {
    ssize_t r = send(c->fd, buf, n, MSG_ZEROCOPY);
    if (r < 0 && (errno == EINTR || errno == ENOBUFS)) { settle(errno == ENOBUFS); continue; }
    if (r < 0) return 0;
    buf += r; n -= r; lent++;
    settle(0);
  }
  return 1;
}

static double ttcp(const char *buf, size_t size, uint64_t total) {
  Hdr h = {ONEWAY, size};
  uint64_t sent = 0, got = 0;
  double t = now();
  for (; sent < total; sent += size)
    if (!(zerocopy ? lend(&h, buf, size) : put(c->fd, &h, sizeof h, buf, size))) die("send");
  if (zerocopy) settle(1);
  call(SYNC, 1, NULL, 0, &got);
  t = now() - t;
  if (got != sent) { fprintf(stderr, "sent %lu, got %lu\n", sent, got); exit(1); }
  return t;
}

static double pipeline(uint32_t depth, uint32_t n, int batch) {
  Call *q = calloc(depth, sizeof *q), r;
  for (uint32_t i = 0; i < depth; i++) q[i].h.type = PING;
  double t = now();
  uint32_t sent = depth < n ? depth : n, done = 0, due = 0;
  for (uint32_t i = 0; i < sent; i++) q[i].id = i;
  if (!put(c->fd, q, sent * sizeof *q, NULL, 0)) die("send");
  while (done < n) {
    if (!get(c, &r, sizeof r) || r.id != done++) die("reply");
    if (sent < n) q[due++].id = sent++;
    if (due && (!batch || c->pos == c->end || due == depth)) {
      if (!put(c->fd, q, due * sizeof *q, NULL, 0)) die("send");
      due = 0;
    }
  }
  free(q);
  return now() - t;
}

/* The call that is timed, and the bytes that it takes there and back. */
static uint32_t timed;
static const char *there;
static char *back;
static size_t length;

static void once(void) {
  call(timed, 1, there, length, back);
}

static void calls(const char *test, const char *more, uint32_t type, const char *buf, size_t size, int n, const char *samples) {
  timed = type; there = buf; length = size;
  back = malloc(size + 8);
  once();
  if (memcmp(buf, back, size)) { fprintf(stderr, "echo differs\n"); exit(1); }
  latency("c", test, more, n, samples, once);
}

/* Sends one; how long it took, and when it began and arrived (0: not answered). */
static uint64_t message(int oneway, char *buf, size_t len, uint32_t number, uint64_t *sent, uint64_t *arrived) {
  Head head = {monotonic(), number, len - sizeof head};
  memcpy(buf, &head, sizeof head);
  *arrived = 0;
  if (oneway) {
    Hdr h = {SEND, len};
    if (!put(c->fd, &h, sizeof h, buf, len)) die("send");
  } else call(CALL, 1, buf, len, arrived);
  *sent = head.sent;
  return monotonic() - head.sent;
}

/* What the server had of n messages, in a buffer of its own. */
static Arrival *arrivals(uint32_t n, const uint64_t *sent, const uint64_t *arrived, uint32_t *bad) {
  Call q = {{ARRIVALS, 0}, 1}, r;
  if (!put(c->fd, &q, sizeof q, NULL, 0) || !get(c, &r, sizeof r)) die("call");
  char *reply = malloc(r.h.len + 1);
  if (r.id != 1 || r.h.len < 8 || !reply || !get(c, reply, r.h.len)) die("reply");
  uint32_t have = (r.h.len - 8) / sizeof(Arrival);
  if (have != n) { fprintf(stderr, "%u messages were sent, %u arrived\n", n, have); exit(1); }
  Arrival *all = malloc(n * sizeof *all);
  memcpy(bad, reply, sizeof *bad);
  memcpy(all, reply + 8, n * sizeof *all);
  for (uint32_t i = 0; i < n; i++)
    if (all[i].number != i || all[i].sent != sent[i] || all[i].arrived < sent[i] || (arrived[i] && arrived[i] != all[i].arrived)) {
      fprintf(stderr, "message %u came otherwise than it left\n", i);
      exit(1);
    }
  free(reply);
  return all;
}

static void list(const char *name, const uint64_t *all, int n) {
  printf(",\"%s\":[", name);
  for (int i = 0; i < n; i++) printf(i ? ",%lu" : "%lu", all[i]);
  putchar(']');
}

static void series(int oneway, uint32_t units, int n, uint64_t frame_us) {
  enum { LOOKED_AT = 3 };
  uint32_t octets = 32 * units, none = 0, bad;
  size_t len = sizeof(Head) + octets, most = n > LOOKED_AT ? n : LOOKED_AT;
  char *buf = malloc(len);
  uint64_t *sent = calloc(most, 8), *arrived = calloc(most, 8), *took = calloc(most, 8), *start = calloc(most, 8), sum = 0;
  for (uint32_t i = 0; i < octets; i++) buf[sizeof(Head) + i] = pattern(i);
  call(BEGIN, 1, &octets, sizeof octets, NULL);
  for (int i = 0; i < LOOKED_AT; i++) message(oneway, buf, len, i, &sent[i], &arrived[i]);
  free(arrivals(LOOKED_AT, sent, arrived, &bad));
  if (bad) { fprintf(stderr, "%u of %d messages came with other contents than they left\n", bad, LOOKED_AT); exit(1); }

  call(BEGIN, 1, &none, sizeof none, NULL);
  uint64_t origin = monotonic(), due = origin, frame = frame_us * 1000;
  for (int i = 0; i < n; i++) {
    struct timespec t = {due / 1000000000, due % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
    took[i] = message(oneway, buf, len, i, &sent[i], &arrived[i]);
    due = origin + (sent[i] + took[i] - origin + frame - 1) / frame * frame;
    start[i] = sent[i] - origin;
    sum += took[i];
  }
  Arrival *all = arrivals(n, sent, arrived, &bad);
  printf("{\"peer\":\"c\",\"test\":\"series\",\"kind\":\"octets\",\"mode\":\"%s\",\"units\":%u,\"size\":%zu,\"n\":%d,\"frame_us\":%lu,"
         "\"checked\":%d,\"arrived\":%d,\"mean_us\":%.3f",
         oneway ? "oneway" : "call", units, len, n, frame_us, LOOKED_AT, n, sum / 1e3 / n);
  list("start_ns", start, n);
  list("time_ns", took, n);
  for (int i = 0; i < n; i++) arrived[i] = all[i].arrived - sent[i];
  list("latency_ns", arrived, n);
  puts("}");
}

/* So many calls of an operation, and the seconds until they are counted. */
static double count(uint32_t type, int n, double *counted) {
  uint64_t tally[2];
  double start = now();
  for (int i = 0; i < n; i++) {
    Hdr h = {type, 0};
    if (!is_oneway(type)) call(type, i, NULL, 0, NULL);
    else if (!put(c->fd, &h, sizeof h, NULL, 0)) die("send");
  }
  double secs = now() - start;
  call(TALLY, 1, NULL, 0, tally);
  *counted = now() - start;
  if (tally[0] != (uint64_t)n || tally[1]) {
    fprintf(stderr, "the last operation was called %d times: the server counted %lu calls of it and %lu of others\n", n, tally[0], tally[1]);
    exit(1);
  }
  return secs;
}

static void last(int operations, int oneway, int iterations) {
  if ((operations != 100 && operations != 1000) || iterations < 1) {
    fprintf(stderr, "bad arguments\n");
    exit(2);
  }
  uint32_t type = wide(operations, oneway) + operations - 1;
  int n = 100 * iterations;
  double counted;
  count(type, n / 10, &counted);
  double secs = count(type, n, &counted);
  printf("{\"peer\":\"c\",\"test\":\"last\",\"operations\":%d,\"oneway\":%s,\"iterations\":%d,\"counted\":%d,\"secs\":%.9f,\"counted_secs\":%.9f}\n",
         operations, oneway ? "true" : "false", iterations, n, secs, counted);
}

int main(int argc, char **argv) {
  const char *test = argc > 1 ? argv[1] : "";
  const char *type = opt(argc, argv, "--type", "octet");
  size_t size = strtoull(opt(argc, argv, "--size", "65536"), NULL, 10);
  uint64_t total = strtoull(opt(argc, argv, "--total", "268435456"), NULL, 10);
  int echo = !strcmp(test, "echo"), pipe = !strcmp(test, "pipeline");
  int is_series = !strcmp(test, "series"), many = !strcmp(test, "clients");
  int n = atoi(opt(argc, argv, "--n", echo ? "5000" : many ? "50000" : pipe ? "100000" : is_series ? "50" : "20000"));
  zerocopy = flag(argc, argv, "--zerocopy");
  const char *samples = opt(argc, argv, "--samples", "");
  int depth = atoi(opt(argc, argv, "--depth", "16")), batch = flag(argc, argv, "--batch");
  size_t elem = width(type);
  if (!elem || n < 1 || depth < 1) { fprintf(stderr, "bad arguments\n"); return 2; }
  size_t len = size < elem ? elem : size / elem * elem;
  char *buf = malloc(len), more[128];
  for (size_t i = 0; i < len; i++) buf[i] = pattern(i);

  signal(SIGPIPE, SIG_IGN);
  if (many) {
    double *us = malloc(n * sizeof *us), secs = clients(depth, n, argc, argv, us);
    snprintf(more, sizeof more, "\"depth\":%d,\"calls_s\":%.3f,\"secs\":%.6f,", depth, n / secs, secs);
    told("c", test, more, us, n, samples);
    return 0;
  }
  c = calloc(1, sizeof *c);
  c->fd = connected(argc, argv);
  int on = 1;
  if (zerocopy && setsockopt(c->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on)) die("SO_ZEROCOPY");

  if (!strcmp(test, "ttcp")) {
    ttcp(buf, len, total / 10);
    double secs = ttcp(buf, len, total);
    uint64_t bytes = (total + len - 1) / len * len;
    printf("{\"peer\":\"c\",\"test\":\"ttcp\",\"type\":\"%s\",\"size\":%zu,\"mbit_s\":%.6f,\"secs\":%.6f",
           type, size, bytes * 8 / secs / 1e6, secs);
    if (zerocopy) printf(",\"lent\":%u,\"copied\":%u", lent, copied);
    puts("}");
  } else if (echo) {
    snprintf(more, sizeof more, "\"type\":\"%s\",\"size\":%zu,", type, size);
    calls(test, more, ECHO, buf, len, n, samples);
  } else if (pipe) {
    pipeline(depth, n / 10, batch);
    double secs = pipeline(depth, n, batch);
    printf("{\"peer\":\"c\",\"test\":\"pipeline\",\"depth\":%d,\"n\":%d,\"threads\":1,\"batch\":%d,\"calls_s\":%.3f,\"secs\":%.6f}\n",
           depth, n, batch, n / secs, secs);
  } else if (is_series) {
    const char *mode = opt(argc, argv, "--mode", "call");
    long units = atol(opt(argc, argv, "--units", "4")), frame = atol(opt(argc, argv, "--frame", "70000"));
    if (strcmp(opt(argc, argv, "--kind", "octets"), "octets") || units < 1 || units > 1 << 20 || frame < 1) {
      fprintf(stderr, "bad arguments: sockets take --kind octets\n");
      return 2;
    }
    series(!strcmp(mode, "oneway"), units, n, frame);
  } else if (!strcmp(test, "ping")) calls(test, "", PING, buf, 0, n, samples);
  else if (!strcmp(test, "demux")) calls(test, "", wide(100, 0) + 99, buf, 0, n, samples);
  else if (!strcmp(test, "last"))
    last(atoi(opt(argc, argv, "--operations", "100")), flag(argc, argv, "--oneway"), atoi(opt(argc, argv, "--iterations", "100")));
  else { fprintf(stderr, "unknown test '%s'\n", test); return 2; }
  return 0;
}
