/* client ttcp|ping|echo|demux|pipeline [--type T] [--size BYTES] [--total BYTES] [--n N] [--depth D]
 *        [--host ADDRESS] [--port P] [--sockbuf BYTES] [--samples FILE] [--opaque]
 * Oneways are batched calls: no reply is waited for, and the library gathers what its buffer holds.
 * --opaque: elements as they lie in memory in place of XDR.
 * pipeline: D threads that share one connection, which takes one call at a time. */
#include "common.h"

static CLIENT *c;
static const char *peer = "rpc";
static const struct timeval batched = {0, 0}, patient = {600, 0};

static void failed(void) { clnt_perror(c, "call"); exit(1); }

static void twoway(CLIENT *to, u_long procedure, void *in, xdrproc_t takes, void *out, xdrproc_t gives) {
  if (clnt_call(to, procedure, takes, in, gives, out, patient) != RPC_SUCCESS) failed();
}

/* What is sent: an argument, its procedure and its code. */
static struct { u_long procedure; void *argument; xdrproc_t code; } sent;

static void prepare(unsigned kind, size_t n, int opaque) {
  static union { ShortSeq s; LongSeq l; DoubleSeq d; CharSeq c; OctetSeq o; StructSeq r; Packed p; } a;
  size_t bytes = n * width(kinds[kind]);
  char *memory = malloc(bytes);
  if (!memory) die("malloc");
  fill(kind, memory, n);
  sent.argument = &a;
#define SENT(member, Seq, P) a.member.Seq##_len = n; a.member.Seq##_val = (void *)memory; sent.procedure = P; sent.code = (xdrproc_t)xdr_##Seq
  if (opaque) {
    a.p.kind = kind;
    a.p.data.data_len = bytes;
    a.p.data.data_val = memory;
    sent.procedure = SEND_PACKED;
    sent.code = (xdrproc_t)xdr_Packed;
  } else switch (kind) {
    case 0: SENT(o, OctetSeq, SEND_OCTET); break;
    case 1: SENT(c, CharSeq, SEND_CHAR); break;
    case 2: SENT(s, ShortSeq, SEND_SHORT); break;
    case 3: SENT(l, LongSeq, SEND_LONG); break;
    case 4: SENT(d, DoubleSeq, SEND_DOUBLE); break;
    /* The layouts are the same: rpcgen's int and this machine's are of 32 bits. */
    default: SENT(r, StructSeq, SEND_STRUCT);
  }
}

static double flood(size_t size, uint64_t total) {
  uint64_t went = 0;
  double t = now();
  for (; went < total; went += size)
    if (clnt_call(c, sent.procedure, sent.code, sent.argument, (xdrproc_t)NULL, NULL, batched) != RPC_SUCCESS) failed();
  u_quad_t got = 0;
  twoway(c, SYNC, NULL, (xdrproc_t)xdr_void, &got, (xdrproc_t)xdr_u_quad_t);
  t = now() - t;
  if (got != went) { fprintf(stderr, "sent %lu, got %lu\n", went, got); exit(1); }
  return t;
}

static void ping(void) { twoway(c, PING, NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void); }
static void m099(void) { twoway(c, M099, NULL, (xdrproc_t)xdr_void, NULL, (xdrproc_t)xdr_void); }

static u_long echoes;
/* The first echo is compared, none of those that are timed. */
static size_t compared;

/* The reply in a sequence of its own, given back. */
static void echo(void) {
  static union { OctetSeq o; StructSeq r; Packed p; } back;
  memset(&back, 0, sizeof back);
  twoway(c, echoes, sent.argument, sent.code, &back, sent.code);
  if (compared) {
    const Packed *p = sent.argument;
    const OctetSeq *o = sent.argument;
    int same = echoes == ECHO_PACKED
      ? back.p.data.data_len == p->data.data_len && !memcmp(back.p.data.data_val, p->data.data_val, compared)
      : back.o.OctetSeq_len == o->OctetSeq_len && !memcmp(back.o.OctetSeq_val, o->OctetSeq_val, compared);
    if (!same) { fprintf(stderr, "echo differs\n"); exit(1); }
    compared = 0;
  }
  xdr_free(sent.code, (char *)&back);
}

static int share, calls;

static void *pings(void *first) {
  for (intptr_t k = (intptr_t)first; k < calls; k += share) ping();
  return NULL;
}

static double pipeline(int depth, int n) {
  pthread_t *threads = calloc(depth, sizeof *threads);
  share = depth; calls = n;
  double t = now();
  for (intptr_t i = 0; i < depth; i++) if (pthread_create(&threads[i], NULL, pings, (void *)i)) die("thread");
  for (int i = 0; i < depth; i++) pthread_join(threads[i], NULL);
  free(threads);
  return now() - t;
}

int main(int argc, char **argv) {
  const char *test = argc > 1 ? argv[1] : "", *type = opt(argc, argv, "--type", "octet"), *samples = opt(argc, argv, "--samples", "");
  size_t size = strtoull(opt(argc, argv, "--size", "65536"), NULL, 10), each = width(type);
  uint64_t total = strtoull(opt(argc, argv, "--total", "268435456"), NULL, 10);
  int echoing = !strcmp(test, "echo"), pipe = !strcmp(test, "pipeline"), opaque = flag(argc, argv, "--opaque");
  int n = atoi(opt(argc, argv, "--n", echoing ? "5000" : pipe ? "100000" : "20000")), depth = atoi(opt(argc, argv, "--depth", "16"));
  unsigned kind = 0;
  char more[128];
  while (kind + 1 < KINDS && strcmp(type, kinds[kind])) kind++;
  if (!each || (each == 32 && !opaque) || n < 1 || depth < 1) { fprintf(stderr, "bad arguments\n"); return 2; }
  if (opaque) peer = "rpc-opaque";
  size_t elements = size < each ? 1 : size / each;
  prepare(kind, elements, opaque);

  int fd = connected(argc, argv), wide = !strcmp(test, "demux");
  struct sockaddr_in a = address(argc, argv);
  c = wide ? clnttcp_create(&a, WIDE, WIDE_1, &fd, 0, 0) : clnttcp_create(&a, TTCP, TTCP_1, &fd, 0, 0);
  if (!c) { clnt_pcreateerror("client"); return 1; }

  if (!strcmp(test, "ttcp")) {
    uint64_t bytes = elements * each;
    flood(bytes, total / 10);
    double secs = flood(bytes, total);
    printf("{\"peer\":\"%s\",\"test\":\"ttcp\",\"type\":\"%s\",\"size\":%zu,\"mbit_s\":%.6f,\"secs\":%.6f}\n",
           peer, type, size, (total + bytes - 1) / bytes * bytes * 8 / secs / 1e6, secs);
  } else if (echoing) {
    echoes = opaque ? ECHO_PACKED : kind == 0 ? ECHO_OCTETS : ECHO_STRUCTS;
    if (kind != 0 && kind != 5) { fprintf(stderr, "echo takes octet or struct\n"); return 2; }
    snprintf(more, sizeof more, "\"type\":\"%s\",\"size\":%zu,", type, size);
    compared = elements * each;
    echo();
    latency(peer, test, more, n, samples, echo);
  } else if (pipe) {
    pipeline(depth, n / 10);
    double secs = pipeline(depth, n);
    printf("{\"peer\":\"%s\",\"test\":\"pipeline\",\"depth\":%d,\"n\":%d,\"threads\":%d,\"calls_s\":%.3f,\"secs\":%.6f}\n",
           peer, depth, n, depth, n / secs, secs);
  } else if (!strcmp(test, "ping")) latency(peer, test, "", n, samples, ping);
  else if (wide) latency(peer, test, "", n, samples, m099);
  else { fprintf(stderr, "unknown test '%s'\n", test); return 2; }
  return 0;
}
