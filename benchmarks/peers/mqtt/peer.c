// Runs a publisher and a subscriber on libmosquitto, with which the client is compared. Messages are 1 KiB of random
// bytes. At most WINDOW are in flight. RATE is per second; 0 has no limit. Prints one line of JSON.
#include <errno.h>
#include <mosquitto.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SIZE = 1024, POOL = 16 << 20, KEEPALIVE = 60, TIMEOUT_SECONDS = 10 };
static const char *const TOPIC = "bench/peer";

static int qos, messages, window, rate;
static int64_t *sent, *round_trips, last_received;
static int received;
static sem_t credits, arrived, ready;

static void check(int code, const char *what)
{
	if (code != MOSQ_ERR_SUCCESS) {
		fprintf(stderr, "peer: %s: %s\n", what, mosquitto_strerror(code));
		exit(1);
	}
}

static int64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void wait_for(sem_t *semaphore, const char *what)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TIMEOUT_SECONDS;
	while (sem_timedwait(semaphore, &until) != 0) {
		if (errno != EINTR) {
			fprintf(stderr, "peer: %s did not arrive within %d s\n", what, TIMEOUT_SECONDS);
			exit(1);
		}
	}
}

static void on_connect(struct mosquitto *client, void *data, int code)
{
	(void)data;
	check(code, "connect");
	check(mosquitto_subscribe(client, NULL, TOPIC, qos), "subscribe");
}

static void on_subscribe(struct mosquitto *client, void *data, int id, int count, const int *granted)
{
	(void)client, (void)data, (void)id, (void)count, (void)granted;
	sem_post(&ready);
}

static void on_message(struct mosquitto *client, void *data, const struct mosquitto_message *message)
{
	(void)client, (void)data;
	int64_t time = now();
	uint64_t number;
	memcpy(&number, message->payload, sizeof number);
	round_trips[received] = time - sent[number];
	last_received = time;
	if (++received == messages)
		sem_post(&arrived);
	sem_post(&credits);
}

static struct mosquitto *connected(const char *name, const char *host, int port, int subscribes)
{
	struct mosquitto *client = mosquitto_new(name, true, NULL);
	if (client == NULL)
		exit(1);
	mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
	mosquitto_max_inflight_messages_set(client, 0);
	if (subscribes) {
		mosquitto_connect_callback_set(client, on_connect);
		mosquitto_subscribe_callback_set(client, on_subscribe);
		mosquitto_message_callback_set(client, on_message);
	}
	check(mosquitto_connect(client, host, port, KEEPALIVE), name);
	check(mosquitto_loop_start(client), "thread");
	return client;
}

static void sleep_until(int64_t moment)
{
	struct timespec time = {moment / 1000000000, moment % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

// Bytes that no compressor shrinks: xorshift64* (Vigna, ACM Transactions on Mathematical Software 42, 2016).
static void fill(unsigned char *pool)
{
	uint64_t state = 1;
	for (size_t place = 0; place < POOL; place += sizeof state) {
		state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
		uint64_t word = state * UINT64_C(2685821657736338717);
		memcpy(pool + place, &word, sizeof word);
	}
}

static void publish_all(struct mosquitto *client, const unsigned char *pool, int64_t started)
{
	unsigned char payload[SIZE];
	for (uint64_t number = 0; number < (uint64_t)messages; number++) {
		memcpy(payload, pool + number * SIZE % POOL, SIZE);
		if (rate > 0)
			sleep_until(started + (int64_t)number * 1000000000 / rate);
		wait_for(&credits, "a message");
		memcpy(payload, &number, sizeof number);
		sent[number] = now();
		check(mosquitto_publish(client, NULL, TOPIC, SIZE, payload, qos, false), "publish");
	}
}

static double cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int ascending(const void *left, const void *right)
{
	int64_t one = *(const int64_t *)left, other = *(const int64_t *)right;
	return (one > other) - (one < other);
}

int main(int count, char **arguments)
{
	if (count != 7) {
		fprintf(stderr, "usage: peer HOST PORT QOS MESSAGES WINDOW RATE (0: as fast as possible)\n");
		return 2;
	}
	qos = atoi(arguments[3]), messages = atoi(arguments[4]), window = atoi(arguments[5]), rate = atoi(arguments[6]);
	sent = calloc((size_t)messages, sizeof *sent);
	round_trips = calloc((size_t)messages, sizeof *round_trips);
	unsigned char *pool = malloc(POOL);
	if (messages < 1 || sent == NULL || round_trips == NULL || pool == NULL)
		return 1;
	fill(pool);
	sem_init(&credits, 0, (unsigned)window), sem_init(&arrived, 0, 0), sem_init(&ready, 0, 0);
	mosquitto_lib_init();
	struct mosquitto *subscriber = connected("subscriber", arguments[1], atoi(arguments[2]), 1);
	wait_for(&ready, "the subscription");
	struct mosquitto *publisher = connected("publisher", arguments[1], atoi(arguments[2]), 0);
	double cpu = cpu_seconds();
	int64_t started = now();
	publish_all(publisher, pool, started);
	wait_for(&arrived, "the last message");
	cpu = cpu_seconds() - cpu;
	qsort(round_trips, (size_t)messages, sizeof *round_trips, ascending);
	printf("{\"messagesPerSecond\": %.1f, \"cpuNanosecondsPerMessage\": %.0f, \"roundTripP50Nanoseconds\": %lld, "
	       "\"roundTripP99Nanoseconds\": %lld}\n",
	       messages / ((double)(last_received - started) / 1e9), cpu * 1e9 / messages,
	       (long long)round_trips[messages / 2], (long long)round_trips[messages * INT64_C(99) / 100]);
	mosquitto_disconnect(publisher), mosquitto_disconnect(subscriber);
	return 0;
}
