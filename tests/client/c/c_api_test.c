/* The C interface, compiled as C, against a broker in another process. */
#define _GNU_SOURCE
#include "gmb/c_api.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

#define CHECK_OK(call)                                              \
  do {                                                              \
    gmb_error* check_error = (call);                                \
    if (check_error != NULL) {                                      \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
              gmb_error_message(check_error));                      \
      exit(1);                                                      \
    }                                                               \
  } while (0)

/* Frees the error. */
#define CHECK_FAILS(call, wanted_code, wanted_reason)              \
  do {                                                             \
    gmb_error* check_error = (call);                               \
    CHECK(gmb_error_code(check_error) == (wanted_code));           \
    CHECK(gmb_error_reason(check_error) == (wanted_reason));       \
    CHECK(check_error == NULL || *gmb_error_message(check_error)); \
    gmb_error_free(check_error);                                   \
  } while (0)

static char dir[] = "/tmp/gmb-c-XXXXXX";
static pid_t broker;
static FILE* to_broker;
static FILE* from_broker;

static void ExpectLine(const char* wanted) {
  char line[64];
  CHECK(fgets(line, sizeof(line), from_broker) != NULL);
  CHECK(strcmp(line, wanted) == 0);
}

static void Tell(const char* word) {
  fprintf(to_broker, "%s\n", word);
  fflush(to_broker);
  ExpectLine("done\n");
}

static void StopBroker(void) {
  if (broker > 0) kill(broker, SIGKILL);
}

static void StartBroker(const char* program) {
  int in[2];
  int out[2];
  CHECK(mkdtemp(dir) != NULL);
  CHECK(pipe(in) == 0 && pipe(out) == 0);
  broker = fork();
  CHECK(broker >= 0);
  if (broker == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    execl(program, program, dir, (char*)NULL);
    _exit(127);
  }
  atexit(StopBroker);
  close(in[0]);
  close(out[1]);
  to_broker = fdopen(in[1], "w");
  from_broker = fdopen(out[0], "r");
  ExpectLine("ready\n");
}

static gmb_client* Connect(void) {
  gmb_client_options options;
  gmb_client_options_init(&options, sizeof(options));
  options.socket_dir = dir;
  options.program = "c_api_test";
  options.tenant_token = "team-c";
  options.tenant_token_bytes = 6;
  gmb_client* client = NULL;
  CHECK_OK(gmb_client_connect(&options, &client));
  CHECK(client != NULL);
  return client;
}

static void TestVersions(void) {
  uint32_t major = 99;
  uint32_t minor = 99;
  gmb_abi_version(&major, &minor);
  CHECK(major == GMB_ABI_MAJOR && minor == GMB_ABI_MINOR);
  CHECK(strcmp(gmb_version(), GMB_VERSION_STRING) == 0);
}

static void TestNullIsHarmless(void) {
  CHECK(gmb_error_code(NULL) == GMB_CODE_OK);
  CHECK(gmb_error_reason(NULL) == GMB_REASON_NONE);
  CHECK(*gmb_error_message(NULL) == '\0' && *gmb_error_field(NULL) == '\0');
  CHECK(gmb_error_deficit_bytes(NULL) == 0 &&
        gmb_error_retry_after_ms(NULL) == 0);
  gmb_error_free(NULL);
  gmb_client_close(NULL);
  gmb_canceller_free(NULL);
  CHECK(gmb_lease_release(NULL) == NULL);
  gmb_lease_release_soon(NULL);
}

static void TestConnectFails(void) {
  gmb_client_options options;
  gmb_client* client = (gmb_client*)&options;
  gmb_client_options_init(&options, sizeof(options));
  options.socket_dir = "/nonexistent";
  CHECK_FAILS(gmb_client_connect(&options, &client), GMB_CODE_UNAVAILABLE,
              GMB_REASON_NONE);
  CHECK(client == NULL);
  options.connect_timeout_ms = -1;
  CHECK_FAILS(gmb_client_connect(&options, &client), GMB_CODE_INVALID_ARGUMENT,
              GMB_REASON_NONE);
}

/* Programs that were built with other versions of the header. */
static void TestOptionSizes(void) {
  struct {
    gmb_client_options options;
    uint64_t newer_field;
  } newer;
  gmb_client* client = NULL;
  gmb_client_options_init(&newer.options, sizeof(newer));
  newer.options.socket_dir = dir;
  CHECK_OK(gmb_client_connect(&newer.options, &client));
  gmb_client_close(client);
  newer.newer_field = 1;
  CHECK_FAILS(gmb_client_connect(&newer.options, &client),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  newer.options.struct_size = 8;
  CHECK_FAILS(gmb_client_connect(&newer.options, &client),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  newer.options.struct_size = 0;
  CHECK_FAILS(gmb_client_connect(&newer.options, &client),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
}

static void TestSession(void) {
  gmb_client* client = Connect();
  CHECK(strcmp(gmb_client_tenant(client), "team-c") == 0);
  CHECK(gmb_client_session_id(client) > 0);
  CHECK(strcmp(gmb_client_warning(client, 0), "this is a fake") == 0);
  CHECK(gmb_client_warning(client, 1) == NULL);
  CHECK_OK(gmb_client_status(client));

  gmb_device devices[2];
  size_t count = 0;
  CHECK_OK(gmb_client_devices(client, devices, sizeof(devices[0]), 2, &count));
  CHECK(count == 1);
  CHECK(strcmp(devices[0].uuid, "host-0") == 0);
  CHECK(devices[0].kind == GMB_DEVICE_HOST);
  CHECK(devices[0].granularity_bytes == 2 * MIB);
  CHECK_OK(gmb_client_devices(client, NULL, 0, 0, &count));
  CHECK(count == 1);
  CHECK_FAILS(gmb_client_devices(client, devices, 0, 2, &count),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  gmb_client_close(client);
}

/* The only gRPC channel of the process comes and goes, and its threads with it.
 */
static void TestManySessions(void) {
  for (int i = 0; i < 60; ++i) {
    gmb_client* client = Connect();
    gmb_lease* lease = NULL;
    CHECK_OK(gmb_acquire(client, 2 * MIB, NULL, &lease));
    gmb_client_close(client);
    CHECK_OK(gmb_lease_release(lease));
  }
}

static void TestReleaseSoon(void) {
  gmb_client* client = Connect();
  gmb_lease* leases[8] = {NULL};
  gmb_quota quota;
  size_t count = 0;
  for (size_t i = 0; i < 8; ++i)
    CHECK_OK(gmb_acquire(client, 2 * MIB, NULL, &leases[i]));
  for (size_t i = 0; i < 8; ++i) gmb_lease_release_soon(leases[i]);
  CHECK_OK(gmb_client_quota(client, &quota, sizeof(quota), 1, &count));
  CHECK(quota.leased_bytes == 0);
  gmb_client_close(client);
}

static void TestQuotaOfOtherVersions(void) {
  gmb_client* client = Connect();
  size_t count = 0;
  struct {
    gmb_quota quota;
    uint64_t newer_field;
  } newer;
  memset(&newer, 0xFF, sizeof(newer));
  CHECK_OK(gmb_client_quota(client, &newer.quota, sizeof(newer), 1, &count));
  CHECK(count == 1 && newer.quota.pool_bytes == 256 * MIB &&
        newer.newer_field == 0);
  CHECK(strcmp(newer.quota.device, "host-0") == 0);
  struct {
    char device[64];
    uint64_t guarantee_bytes;
    uint64_t canary;
  } older = {{0}, 1, 42};
  CHECK_OK(gmb_client_quota(client, (gmb_quota*)&older, 72, 1, &count));
  CHECK(older.guarantee_bytes == 0 && older.canary == 42);
  gmb_client_close(client);
}

static void TestLease(void) {
  gmb_client* client = Connect();
  gmb_acquire_options options;
  gmb_acquire_options_init(&options, sizeof(options));
  options.device = "host-0";
  options.contents = GMB_CONTENTS_DISCARD;
  options.wait_ms = GMB_WAIT_LONGEST;
  gmb_lease* lease = NULL;
  CHECK_OK(gmb_acquire(client, 40 * MIB - 1, &options, &lease));
  CHECK(gmb_lease_size_bytes(lease) == 40 * MIB);
  CHECK(gmb_lease_id(lease) > 0);
  CHECK(strcmp(gmb_lease_device(lease), "host-0") == 0);
  memset(gmb_lease_data(lease), 1, 40 * MIB);

  unsigned char bytes[3] = {0, 0, 0};
  CHECK_OK(gmb_lease_fill(lease, 0, 0xA5, 2));
  CHECK_OK(gmb_lease_copy_from_host(lease, 1, "z", 1));
  CHECK_OK(gmb_lease_copy_to_host(lease, bytes, 0, 3));
  CHECK(bytes[0] == 0xA5 && bytes[1] == 'z' && bytes[2] == 1);
  CHECK_FAILS(gmb_lease_copy_to_host(lease, bytes, 40 * MIB, 1),
              GMB_CODE_OUT_OF_RANGE, GMB_REASON_NONE);

  options.contents = 9;
  gmb_lease* none = lease;
  CHECK_FAILS(gmb_acquire(client, MIB, &options, &none),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  CHECK(none == NULL);

  gmb_client_close(client); /* the lease outlives it */
  CHECK_OK(gmb_lease_release(lease));
}

static void TestShared(void) {
  gmb_client* client = Connect();
  gmb_acquire_options options;
  gmb_acquire_options_init(&options, sizeof(options));
  options.share_as = "weights";
  options.keep = 1;
  gmb_lease* lease = NULL;
  CHECK_OK(gmb_acquire(client, MIB, &options, &lease));
  CHECK(gmb_lease_attached(lease) == 0);
  CHECK_OK(gmb_lease_seal(lease));

  gmb_attach_options how;
  gmb_attach_options_init(&how, sizeof(how));
  how.wait_ms = GMB_WAIT_LONGEST;
  gmb_lease* attached = NULL;
  CHECK_OK(gmb_attach(client, "weights", &how, &attached));
  CHECK(gmb_lease_attached(attached) == 1);
  char byte = 0;
  CHECK_OK(gmb_lease_copy_to_host(attached, &byte, 0, 1));
  CHECK(byte == 's');
  CHECK_FAILS(gmb_lease_fill(attached, 0, 1, 1), GMB_CODE_FAILED_PRECONDITION,
              GMB_REASON_NONE);
  CHECK_FAILS(gmb_lease_seal(attached), GMB_CODE_FAILED_PRECONDITION,
              GMB_REASON_NONE);
  CHECK_OK(gmb_lease_release(attached));
  CHECK_OK(gmb_attach(client, "weights", NULL, &attached));
  CHECK_OK(gmb_lease_release(attached));

  how.struct_size = 8;
  CHECK_FAILS(gmb_attach(client, "weights", &how, &attached),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  CHECK(attached == NULL);
  CHECK_OK(gmb_drop(client, "weights"));
  CHECK_OK(gmb_lease_release(lease));
  gmb_client_close(client);
}

/* As with 0: what may wait takes memory from others. */
static void TestWaitNone(void) {
  gmb_client* client = Connect();
  gmb_acquire_options options;
  gmb_acquire_options_init(&options, sizeof(options));
  options.wait_ms = 1;
  gmb_lease* lease = NULL;
  Tell("refuse-waits");
  CHECK_FAILS(gmb_acquire(client, MIB, &options, &lease),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_BAD_REQUEST);
  options.wait_ms = GMB_WAIT_NONE;
  CHECK_OK(gmb_acquire(client, MIB, &options, &lease));
  CHECK_OK(gmb_lease_release(lease));
  gmb_attach_options how;
  gmb_attach_options_init(&how, sizeof(how));
  how.wait_ms = GMB_WAIT_NONE;
  CHECK_OK(gmb_attach(client, "weights", &how, &lease));
  CHECK_OK(gmb_lease_release(lease));
  Tell("serve");
  gmb_client_close(client);
}

static void TestRefusal(void) {
  gmb_client* client = Connect();
  gmb_lease* lease = NULL;
  gmb_error* error = gmb_acquire(client, (uint64_t)1 << 40, NULL, &lease);
  CHECK(error != NULL && lease == NULL);
  CHECK(gmb_error_code(error) == GMB_CODE_RESOURCE_EXHAUSTED);
  CHECK(gmb_error_reason(error) == GMB_REASON_POOL_EXHAUSTED);
  CHECK(gmb_error_deficit_bytes(error) == (uint64_t)1 << 40);
  CHECK(gmb_error_retry_after_ms(error) == 1500);
  CHECK(strcmp(gmb_error_field(error), "bytes") == 0);
  CHECK(strstr(gmb_error_message(error), "ask for other bytes") != NULL);
  gmb_error_free(error);
  CHECK_FAILS(gmb_acquire(client, 0, NULL, &lease), GMB_CODE_INVALID_ARGUMENT,
              GMB_REASON_BAD_REQUEST);
  gmb_client_close(client);
}

struct notices {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t limit_bytes;
  int64_t remaining_ms;
};

static void OnBudget(const gmb_quota* quota, void* user) {
  struct notices* notices = user;
  pthread_mutex_lock(&notices->mutex);
  notices->limit_bytes = quota->limit_bytes;
  pthread_cond_signal(&notices->changed);
  pthread_mutex_unlock(&notices->mutex);
}

static void OnDraining(int64_t remaining_ms, void* user) {
  struct notices* notices = user;
  pthread_mutex_lock(&notices->mutex);
  notices->remaining_ms = remaining_ms;
  pthread_cond_signal(&notices->changed);
  pthread_mutex_unlock(&notices->mutex);
}

static void TestNotices(void) {
  struct notices notices = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                            0, 0};
  gmb_client_options options;
  gmb_client_options_init(&options, sizeof(options));
  options.socket_dir = dir;
  options.on_budget_changed = OnBudget;
  options.on_draining = OnDraining;
  options.user = &notices;
  gmb_client* client = NULL;
  CHECK_OK(gmb_client_connect(&options, &client));
  Tell("budget");
  Tell("drain");
  pthread_mutex_lock(&notices.mutex);
  while (notices.limit_bytes == 0 || notices.remaining_ms == 0) {
    pthread_cond_wait(&notices.changed, &notices.mutex);
  }
  pthread_mutex_unlock(&notices.mutex);
  CHECK(notices.limit_bytes == 4711 && notices.remaining_ms == 3000);
  gmb_client_close(client);
}

static void TestGate(void) {
  gmb_client* client = Connect();
  gmb_lease* lease = NULL;
  CHECK_OK(gmb_acquire(client, 4 * MIB, NULL, &lease));
  CHECK_FAILS(gmb_leave(client), GMB_CODE_FAILED_PRECONDITION, GMB_REASON_NONE);
  CHECK_FAILS(gmb_gate_on(client, -1, NULL), GMB_CODE_INVALID_ARGUMENT,
              GMB_REASON_NONE);
  CHECK_OK(gmb_gate_on(client, 1, "ranks"));
  CHECK_OK(gmb_enter(client, 0));
  CHECK_OK(gmb_enter_capture(client, 10000));
  memset(gmb_lease_data(lease), 5, 4 * MIB);
  CHECK_OK(gmb_leave(client));
  CHECK_OK(gmb_leave(client));
  CHECK_FAILS(gmb_leave(client), GMB_CODE_FAILED_PRECONDITION, GMB_REASON_NONE);
  Tell("close");
  CHECK_FAILS(gmb_enter(client, 0), GMB_CODE_DEADLINE_EXCEEDED,
              GMB_REASON_NONE);
  CHECK_FAILS(gmb_enter(client, GMB_WAIT_NONE), GMB_CODE_DEADLINE_EXCEEDED,
              GMB_REASON_NONE);
  CHECK_FAILS(gmb_enter_capture(client, GMB_WAIT_NONE),
              GMB_CODE_DEADLINE_EXCEEDED, GMB_REASON_NONE);
  CHECK_FAILS(gmb_gate_off(client, GMB_WAIT_NONE), GMB_CODE_DEADLINE_EXCEEDED,
              GMB_REASON_NONE);
  CHECK_OK(gmb_enter(client, GMB_WAIT_LONGEST));
  CHECK_OK(gmb_leave(client));
  CHECK_OK(gmb_lease_seal(lease));
  CHECK_OK(gmb_gate_off(client, 10000));
  CHECK_OK(gmb_lease_release(lease));
  gmb_client_close(client);
}

static void OnTrim(const char* device, uint64_t bytes, int64_t within_ms,
                   void* user) {
  struct notices* notices = user;
  pthread_mutex_lock(&notices->mutex);
  CHECK(strcmp(device, "host-0") == 0);
  CHECK(within_ms > 30000 && within_ms <= 60000);
  notices->limit_bytes = bytes;
  pthread_cond_signal(&notices->changed);
  pthread_mutex_unlock(&notices->mutex);
}

static void TestTrim(void) {
  struct notices notices = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                            0, 0};
  gmb_client_options options;
  gmb_client_options_init(&options, sizeof(options));
  options.socket_dir = dir;
  options.on_trim = OnTrim;
  options.user = &notices;
  gmb_client* client = NULL;
  CHECK_OK(gmb_client_connect(&options, &client));
  CHECK_OK(gmb_set_trimmable(client, NULL, 4 * MIB));
  CHECK_OK(gmb_set_trimmable(client, "host-0", 2 * MIB));
  CHECK_FAILS(gmb_set_trimmable(client, "host-7", 1), GMB_CODE_NOT_FOUND,
              GMB_REASON_NONE);
  Tell("trim");
  pthread_mutex_lock(&notices.mutex);
  while (notices.limit_bytes == 0) {
    pthread_cond_wait(&notices.changed, &notices.mutex);
  }
  pthread_mutex_unlock(&notices.mutex);
  CHECK(notices.limit_bytes == 815);
  gmb_client_close(client);

  /* A program built before on_trim was there. */
  struct {
    char bytes[offsetof(gmb_client_options, on_trim)];
    gmb_trim_callback garbage;
  } older;
  gmb_client_options_init((gmb_client_options*)&older, sizeof(older.bytes));
  ((gmb_client_options*)&older)->socket_dir = dir;
  memset(&older.garbage, 0xFF, sizeof(older.garbage));
  CHECK_OK(gmb_client_connect((gmb_client_options*)&older, &client));
  gmb_client_close(client);
}

static void TestHeap(void) {
  gmb_client* client = Connect();
  gmb_heap_options options;
  gmb_heap_options_init(&options, sizeof(options));
  options.device = "host-0";
  options.least_growth_bytes = 4 * MIB;
  options.wait_ms = GMB_WAIT_NONE;
  options.contents = GMB_CONTENTS_DISCARD;
  gmb_heap* heap = NULL;
  CHECK_OK(gmb_heap_create(client, &options, &heap));
  void* block = &options;
  CHECK_OK(gmb_heap_allocate(heap, 0, NULL, &block));
  CHECK(block == NULL);
  CHECK_OK(gmb_heap_free(heap, block));
  CHECK_OK(gmb_heap_allocate(heap, MIB, NULL, &block));
  memset(block, 3, MIB);
  CHECK_FAILS(gmb_heap_free(heap, &options), GMB_CODE_INVALID_ARGUMENT,
              GMB_REASON_NONE);
  CHECK_OK(gmb_heap_record_stream(heap, block, &options));
  CHECK_OK(gmb_heap_free_on(heap, block, &options));
  CHECK_FAILS(gmb_heap_free_on(heap, block, NULL), GMB_CODE_INVALID_ARGUMENT,
              GMB_REASON_NONE);
  CHECK_OK(gmb_heap_detach_stream(heap, &options));

  void* most = &options;
  CHECK_FAILS(gmb_heap_allocate(heap, (uint64_t)1 << 40, NULL, &most),
              GMB_CODE_RESOURCE_EXHAUSTED, GMB_REASON_POOL_EXHAUSTED);
  CHECK(most == NULL);
  CHECK_OK(gmb_heap_prepare(heap, 8 * MIB));

  gmb_graph_pool* pool = NULL;
  CHECK_OK(gmb_heap_prepare_graphs(heap, 2 * MIB, &pool));
  CHECK_OK(gmb_graph_pool_begin(pool, NULL));
  CHECK(gmb_heap_trim(heap, MIB) == 0);
  CHECK_OK(gmb_heap_allocate(heap, 2 * MIB, NULL, &block));
  CHECK_OK(gmb_graph_pool_end(pool, NULL));
  CHECK_FAILS(gmb_graph_pool_end(pool, NULL), GMB_CODE_FAILED_PRECONDITION,
              GMB_REASON_NONE);
  CHECK_OK(gmb_heap_free(heap, block));
  gmb_graph_pool_free(pool);
  CHECK_FAILS(gmb_heap_prepare_graphs(heap, 0, &pool),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  CHECK(pool == NULL);

  gmb_heap_stats stats;
  gmb_heap_statistics(heap, &stats, sizeof(stats));
  CHECK(stats.blocks == 0 && stats.allocations == 2 && stats.frees == 2);
  CHECK(stats.leased_bytes > 0 && stats.leased_bytes == stats.empty_bytes);
  struct {
    uint64_t allocated_bytes;
    uint64_t canary;
  } older = {1, 42};
  gmb_heap_statistics(heap, (gmb_heap_stats*)&older, 8);
  CHECK(older.allocated_bytes == 0 && older.canary == 42);
  CHECK(gmb_heap_trim(heap, UINT64_MAX) == stats.leased_bytes);
  gmb_heap_destroy(heap);

  options.most_growth_bytes = (uint64_t)1 << 47;
  gmb_error* error = gmb_heap_create(client, &options, &heap);
  CHECK(gmb_error_code(error) == GMB_CODE_INVALID_ARGUMENT && heap == NULL);
  CHECK(strstr(gmb_error_message(error), "64 TiB") != NULL);
  gmb_error_free(error);
  options.most_growth_bytes = 0;
  options.contents = 9;
  CHECK_FAILS(gmb_heap_create(client, &options, &heap),
              GMB_CODE_INVALID_ARGUMENT, GMB_REASON_NONE);
  CHECK(heap == NULL);
  gmb_heap_destroy(NULL);
  gmb_graph_pool_free(NULL);
  gmb_client_close(client);
}

static void TestForkedChild(void) {
  gmb_client* client = Connect();
  gmb_lease* lease = NULL;
  CHECK_OK(gmb_acquire(client, 4 * MIB, NULL, &lease));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    gmb_lease* another = NULL;
    size_t count = 0;
    CHECK_FAILS(gmb_acquire(client, MIB, NULL, &another),
                GMB_CODE_FAILED_PRECONDITION, GMB_REASON_NONE);
    CHECK_FAILS(gmb_client_quota(client, NULL, 0, 0, &count),
                GMB_CODE_FAILED_PRECONDITION, GMB_REASON_NONE);
    CHECK_FAILS(gmb_client_status(client), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    CHECK_FAILS(gmb_gate_on(client, 0, NULL), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    CHECK_FAILS(gmb_gate_off(client, 0), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    CHECK_FAILS(gmb_enter(client, 0), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    CHECK_FAILS(gmb_leave(client), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    CHECK_FAILS(gmb_lease_seal(lease), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    CHECK_FAILS(gmb_set_trimmable(client, NULL, 1),
                GMB_CODE_FAILED_PRECONDITION, GMB_REASON_NONE);
    CHECK_FAILS(gmb_lease_release(lease), GMB_CODE_FAILED_PRECONDITION,
                GMB_REASON_NONE);
    gmb_client_close(client);
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  memset(gmb_lease_data(lease), 7, 4 * MIB);
  CHECK_OK(gmb_lease_release(lease));
  gmb_client_close(client);
}

/* Last: the broker says nothing any more afterwards. */
static void TestCancelAndHangUp(void) {
  gmb_client* client = Connect();
  gmb_canceller* canceller = NULL;
  gmb_lease* lease = NULL;
  CHECK_OK(gmb_canceller_create(&canceller));
  gmb_canceller_cancel(canceller);
  gmb_acquire_options options;
  gmb_acquire_options_init(&options, sizeof(options));
  options.canceller = canceller;
  options.wait_ms = GMB_WAIT_LONGEST;
  Tell("silence");
  CHECK_FAILS(gmb_acquire(client, MIB, &options, &lease), GMB_CODE_CANCELLED,
              GMB_REASON_NONE);
  gmb_canceller_free(canceller);
  options.canceller = NULL;
  Tell("hangup");
  CHECK_FAILS(gmb_acquire(client, MIB, &options, &lease), GMB_CODE_UNAVAILABLE,
              GMB_REASON_NONE);
  gmb_client_close(client);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  alarm(100);
  TestVersions();
  TestNullIsHarmless();
  TestConnectFails();
  StartBroker(argv[1]);
  TestOptionSizes();
  TestSession();
  TestManySessions();
  TestReleaseSoon();
  TestQuotaOfOtherVersions();
  TestLease();
  TestShared();
  TestWaitNone();
  TestRefusal();
  TestNotices();
  TestTrim();
  TestGate();
  TestHeap();
  TestForkedChild();
  TestCancelAndHangUp();
  fclose(to_broker);
  int status = 1;
  CHECK(waitpid(broker, &status, 0) == broker);
  broker = 0;
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(rmdir(dir) == 0); /* the broker removed its sockets */
  puts("c_api_test: all passed");
  return 0;
}
