/*
 * A Quick-Queue with one writer, as a loop over its two mapped pages: what the format itself costs.
 *
 *   quick-queue append|read DIR PAGE_BYTES SIZE DISTINCT WARM_UP COUNT
 *
 * Messages are their number as i64 and each byte's place, as all benchmarks have them; everything
 * lies in the first page of each kind. Prints one JSON object.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define COMPLETE ((uint64_t)0x7f << 56)

struct entry {
    _Atomic uint64_t address;
    _Atomic uint64_t stamp; /* length, and COMPLETE; stored last */
};

struct queue {
    char *data;
    struct entry *index;
    size_t size, distinct;
    char *message;
    uint64_t next, end; /* entry, and address of its message */
};

static int64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *map(const char *directory, const char *name, size_t bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int file = open(path, O_RDWR | O_CREAT, 0666);
    if (file < 0 || ftruncate(file, bytes) != 0)
        fail(path);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        fail(path);
    close(file);
    return memory;
}

static uint64_t append(struct queue *queue, uint64_t count)
{
    uint64_t checksum = 0;
    for (uint64_t done = 0; done < count; done++) {
        uint64_t number = queue->next % queue->distinct;
        memcpy(queue->message, &number, sizeof number);
        memcpy(queue->data + queue->end, queue->message, queue->size);
        struct entry *entry = &queue->index[queue->next++];
        atomic_store_explicit(&entry->address, queue->end, memory_order_relaxed);
        atomic_store_explicit(&entry->stamp, COMPLETE | queue->size, memory_order_release);
        queue->end += queue->size;
        checksum += number;
    }
    return checksum;
}

static uint64_t take(struct queue *queue, uint64_t count)
{
    uint64_t checksum = 0;
    for (uint64_t done = 0; done < count; done++) {
        struct entry *entry = &queue->index[queue->next++];
        uint64_t stamp = atomic_load_explicit(&entry->stamp, memory_order_acquire);
        uint32_t length = (uint32_t)stamp;
        if (stamp < COMPLETE || length > queue->size) {
            fprintf(stderr, "the queue ended early: done=%lu\n", (unsigned long)done);
            exit(1);
        }
        uint64_t address = atomic_load_explicit(&entry->address, memory_order_relaxed);
        memcpy(queue->message, queue->data + address, length);
        uint64_t number;
        memcpy(&number, queue->message, sizeof number);
        checksum += number;
    }
    return checksum;
}

int main(int count, char **arguments)
{
    if (count != 8) {
        fprintf(stderr, "quick-queue append|read DIR PAGE_BYTES SIZE DISTINCT WARM_UP COUNT\n");
        return 2;
    }
    size_t page = strtoull(arguments[3], NULL, 10);
    struct queue queue = {
        .data = map(arguments[2], "0.qd", page),
        .index = map(arguments[2], "0.qx", page),
        .size = strtoull(arguments[4], NULL, 10),
        .distinct = strtoull(arguments[5], NULL, 10),
    };
    queue.message = malloc(queue.size);
    if (queue.message == NULL)
        fail("malloc");
    for (size_t place = 0; place < queue.size; place++)
        queue.message[place] = (char)place;
    uint64_t warm_up = strtoull(arguments[6], NULL, 10), measured = strtoull(arguments[7], NULL, 10);
    if (page < (warm_up + measured) * (queue.size > sizeof(struct entry) ? queue.size : sizeof(struct entry))) {
        fprintf(stderr, "a page is too small for that many messages\n");
        return 2;
    }

    uint64_t (*loop)(struct queue *, uint64_t) = strcmp(arguments[1], "append") == 0 ? append : take;
    loop(&queue, warm_up);
    int64_t cpu_begin = now(CLOCK_PROCESS_CPUTIME_ID), begin = now(CLOCK_MONOTONIC);
    uint64_t checksum = loop(&queue, measured);
    int64_t nanos = now(CLOCK_MONOTONIC) - begin, cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
    printf("{\"nanos\": %lld, \"cpu_nanos\": %lld, \"count\": %llu, \"checksum\": %llu}\n", (long long)nanos,
           (long long)cpu, (unsigned long long)measured, (unsigned long long)checksum);
    return 0;
}
