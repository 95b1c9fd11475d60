/* server [--host ADDRESS] [--port P] [--sockbuf BYTES] [--fresh] [--batch] [--check] [--lifeline]
 * --fresh: a new buffer per message (an owned sequence), instead of one reused.
 * --batch: hold replies back while more requests are already read in.
 * --check: compare each octet with what clients send, and end with 4 where one differs. */
#include "series.h"

static int fresh, batch, check;

/* Calls of the last operations of all interfaces, and of their others, since they were asked for. */
typedef struct { uint64_t last, others; } Tally;
static void last(Tally *t) { t->last++; }
static void other(Tally *t) { t->others++; }
static void (*operations[KINDS])(Tally *);

static void demand(const char *buf, size_t n) {
  for (size_t i = 0; i < n; i++) if (buf[i] != pattern(i)) differs("octet", i, n);
}

static void *serve(void *arg) {
  Conn *c = arg;
  Hdr h;
  size_t cap = 0, nout = 0;
  char *buf = NULL, out[16384];
  uint64_t count = 0, arrived;
  Notes notes = {0};
  Tally tally = {0, 0};
  while (get(c, &h, sizeof h)) {
    Call call = {h, 0};
    if (!is_oneway(h.type) && !get(c, &call.id, sizeof call.id)) break;
    if (fresh || h.len > cap) {
      free(buf);
      buf = malloc(cap = h.len ? h.len : 1);
      if (!buf) die("malloc");
    }
    if (h.len && !get(c, buf, h.len)) break;
    if (h.type == ONEWAY) {
      if (check) demand(buf, h.len);
      count += h.len;
      continue;
    }
    if (h.type == SEND) { note(&notes, buf, h.len); continue; }
    if (h.type == ARRIVALS) { if (!tell(&notes, c->fd, &call)) break; continue; }
    if (h.type < KINDS && operations[h.type]) operations[h.type](&tally);
    if (is_oneway(h.type)) continue;
    const void *body = buf;
    if (h.type == SYNC) { body = &count; call.h.len = sizeof count; }
    if (h.type == CALL) { arrived = note(&notes, buf, h.len); body = &arrived; call.h.len = sizeof arrived; }
    if (h.type == BEGIN) {
      uint32_t wanted = 0;
      memcpy(&wanted, buf, h.len < sizeof wanted ? h.len : sizeof wanted);
      begin(&notes, wanted);
      call.h.len = 0;
    }
    if (h.type == TALLY) { body = &tally; call.h.len = sizeof tally; }
    if (h.type == PING && batch) {
      memcpy(out + nout, &call, sizeof call);
      nout += sizeof call;
      if (c->pos == c->end || nout + sizeof call > sizeof out) {
        if (!put(c->fd, out, nout, NULL, 0)) break;
        nout = 0;
      }
    } else if (!put(c->fd, &call, sizeof call, body, call.h.len)) break;
    if (h.type == SYNC) count = 0;
    if (h.type == TALLY) tally = (Tally){0, 0};
  }
  close(c->fd);
  free(notes.all);
  free(buf);
  free(c);
  return NULL;
}

int main(int argc, char **argv) {
  fresh = flag(argc, argv, "--fresh");
  batch = flag(argc, argv, "--batch");
  check = flag(argc, argv, "--check");
  for (int many = 0; many < 2; many++)
    for (int oneway = 0; oneway < 2; oneway++) {
      int n = many ? 1000 : 100, first = wide(n, oneway);
      for (int i = 0; i < n; i++) operations[first + i] = i + 1 < n ? other : last;
    }
  lifeline(argc, argv);
  int l = listener(argc, argv);
  ready(l);
  for (;;) {
    Conn *c = calloc(1, sizeof *c);
    if ((c->fd = accept(l, NULL, NULL)) < 0) die("accept");
    tune(c->fd, 0, 1);
    pthread_t t;
    pthread_create(&t, NULL, serve, c);
    pthread_detach(t);
  }
}
