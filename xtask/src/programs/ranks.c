/* An MPI program that `cargo xtask programs` runs on softdev. Two or more ranks verify messages of
 * sizes from 0 to a rendezvous between all pairs at once, collective operations with known results,
 * and one-sided access with fences and locks. Rank 0 prints `verified` at the end; a wrong value ends
 * all ranks with status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, MOST_WORDS = 1 << 16, WINDOW_WORDS = 4096, ROUNDS = 20 };

static const int sizes[] = {0, 1, 2, 15, 256, 1000, 2048, 5000, 16384, MOST_WORDS};

static int rank;
static int ranks;

static void expect(long long is, long long should_be, const char *what) {
    if (is != should_be) {
        fprintf(stderr, "rank %d: %s: %lld instead of %lld\n", rank, what, is, should_be);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Word i of the message from one rank to another in a round. */
static int word_of(int from, int to, int round, int i) {
    return from * 1000003 + to * 10007 + round * 101 + i;
}

static int *words_for(int count) {
    int *words = malloc((count + 1) * sizeof *words);
    if (words == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return words;
}

/* All ranks send to all ranks at once, and no rank receives in the order of sending. */
static void exchange(int count, int round) {
    MPI_Request requests[2 * MOST_RANKS];
    MPI_Status statuses[2 * MOST_RANKS];
    int *sent[MOST_RANKS];
    int *received[MOST_RANKS];
    for (int to = 0; to < ranks; to++) {
        sent[to] = words_for(count);
        for (int i = 0; i < count; i++) {
            sent[to][i] = word_of(rank, to, round, i);
        }
        MPI_Isend(sent[to], count, MPI_INT, to, round, MPI_COMM_WORLD, &requests[ranks + to]);
    }
    for (int from = ranks - 1; from >= 0; from--) {
        received[from] = words_for(count);
        MPI_Irecv(received[from], count, MPI_INT, from, round, MPI_COMM_WORLD, &requests[from]);
    }
    MPI_Waitall(2 * ranks, requests, statuses);
    for (int from = 0; from < ranks; from++) {
        int length;
        MPI_Get_count(&statuses[from], MPI_INT, &length);
        expect(length, count, "length of a message");
        for (int i = 0; i < count; i++) {
            expect(received[from][i], word_of(from, rank, round, i), "word of a message");
        }
        free(sent[from]);
        free(received[from]);
    }
}

/* Receives with wildcards: each message arrives once, and the messages of a rank in order. */
static void unexpected(void) {
    if (rank != 0) {
        for (int n = 0; n < ROUNDS; n++) {
            MPI_Send(&n, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int next[MOST_RANKS] = {0};
    for (int n = 0; rank == 0 && n < ROUNDS * (ranks - 1); n++) {
        MPI_Status status;
        int got;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        expect(got, next[status.MPI_SOURCE]++, "order of messages");
    }
}

static void broadcast_and_sum(int count) {
    long long total = (long long)ranks * (ranks + 1) / 2;
    int *words = words_for(count);
    int *sums = words_for(count);
    for (int root = 0; root < ranks; root++) {
        for (int i = 0; i < count; i++) {
            words[i] = rank == root ? word_of(root, 0, 3, i) : -1;
        }
        MPI_Bcast(words, count, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++) {
            expect(words[i], word_of(root, 0, 3, i), "word of a broadcast");
        }
    }
    for (int i = 0; i < count; i++) {
        words[i] = (rank + 1) * (i % 1000);
    }
    MPI_Allreduce(words, sums, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        expect(sums[i], total * (i % 1000), "sum");
    }
    memset(sums, 0, count * sizeof *sums);
    MPI_Reduce(words, sums, count, MPI_INT, MPI_MAX, ranks - 1, MPI_COMM_WORLD);
    for (int i = 0; rank == ranks - 1 && i < count; i++) {
        expect(sums[i], ranks * (i % 1000), "maximum");
    }
    free(words);
    free(sums);
}

static void gather_and_transpose(int count) {
    int *sent = words_for(count * ranks);
    int *received = words_for(count * ranks);
    for (int i = 0; i < count * ranks; i++) {
        sent[i] = word_of(rank, i / (count ? count : 1), 5, i % (count ? count : 1));
    }
    MPI_Alltoall(sent, count, MPI_INT, received, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * ranks; i++) {
        expect(received[i], word_of(i / count, rank, 5, i % count), "word of an alltoall");
    }
    MPI_Allgather(sent, count, MPI_INT, received, count, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < count * ranks; i++) {
        expect(received[i], word_of(i / count, 0, 5, i % count), "word of an allgather");
    }
    free(sent);
    free(received);
}

/* Each window has a part for each rank, and two counters at its end. The rank allocates the memory:
 * MPI might allocate memory that the ranks of a host share, and would then not use the device. */
static void one_sided(void) {
    MPI_Win window;
    int bytes = (WINDOW_WORDS + 2) * sizeof(int);
    int part = WINDOW_WORDS / ranks;
    int *own = words_for(WINDOW_WORDS);
    int *window_words = words_for(WINDOW_WORDS + 2);
    memset(window_words, 0, bytes);
    MPI_Win_create(window_words, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    for (int to = 0; to < ranks; to++) {
        for (int i = 0; i < part; i++) {
            own[to * part + i] = word_of(rank, to, 9, i);
        }
        MPI_Put(own + to * part, part, MPI_INT, to, rank * part, part, MPI_INT, window);
    }
    MPI_Win_fence(0, window);
    for (int i = 0; i < part * ranks; i++) {
        expect(window_words[i], word_of(i / part, rank, 9, i % part), "word of a put");
    }
    memset(own, 0, WINDOW_WORDS * sizeof *own);
    MPI_Win_fence(0, window);
    for (int from = 0; from < ranks; from++) {
        MPI_Get(own + from * part, part, MPI_INT, from, rank * part, part, MPI_INT, window);
    }
    MPI_Win_fence(0, window);
    for (int i = 0; i < part * ranks; i++) {
        expect(own[i], word_of(rank, i / part, 9, i % part), "word of a get");
    }
    int one = 1;
    for (int n = 0; n < ROUNDS; n++) {
        for (int to = 0; to < ranks; to++) {
            MPI_Accumulate(&one, 1, MPI_INT, to, WINDOW_WORDS, 1, MPI_INT, MPI_SUM, window);
        }
    }
    MPI_Win_fence(0, window);
    expect(window_words[WINDOW_WORDS], ROUNDS * ranks, "accumulated sum");
    MPI_Win_fence(0, window);
    long long taken = 0;
    for (int n = 0; n < ROUNDS; n++) {
        int before;
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Fetch_and_op(&one, &before, MPI_INT, 0, WINDOW_WORDS + 1, MPI_SUM, window);
        MPI_Win_unlock(0, window);
        taken += before;
    }
    long long all;
    long long tickets = (long long)ROUNDS * ranks;
    MPI_Allreduce(&taken, &all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    expect(all, tickets * (tickets - 1) / 2, "sum of the fetched numbers");
    MPI_Win_free(&window);
    free(window_words);
    free(own);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(ranks >= 2 && ranks <= MOST_RANKS, 1, "number of ranks");
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        for (int round = 0; round < 3; round++) {
            exchange(sizes[i], round);
        }
    }
    unexpected();
    for (int i = 1; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        broadcast_and_sum(sizes[i]);
        gather_and_transpose(sizes[i] > 4096 ? 4096 : sizes[i]);
    }
    one_sided();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("verified\n");
    }
    MPI_Finalize();
    return 0;
}
