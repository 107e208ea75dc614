/* Ping-pong, message rate and a stream whose receiver reads the data, between two ranks, by plain MPI
 * point-to-point calls: `cargo xtask bench` measures Open MPI with this program.
 * Usage: mpirun -n 2 pingpong lat|rate|stream. Rank 0 prints a number for each batch: half a round
 * trip of 8 B in ns, messages of 8 B per second, or bytes per second in messages of 1 MiB. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Printed batches, after one warm-up batch. */
enum { BATCHES = 40 };
/* Round trips, small messages and large messages of a batch, which takes about 1 ms. */
enum { ROUND_TRIPS = 2000, SMALL = 8192, LARGE = 16 };
/* The windows: of small messages as in the OSU Micro-Benchmarks, of large messages as in `baseline`. */
enum { WINDOW = 64, LARGE_WINDOW = 4 };
enum { BYTES = 1 << 20, WORDS = BYTES / 8 };

static int rank;

static void acknowledge(void) {
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static double latency(void) {
    char word[8] = {0};
    double start = MPI_Wtime();
    for (int i = 0; i < ROUND_TRIPS; i++) {
        if (rank == 0) {
            MPI_Send(word, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(word, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(word, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(word, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / (2.0 * ROUND_TRIPS) * 1e9;
}

static double rate(void) {
    static char words[WINDOW][8];
    MPI_Request requests[WINDOW];
    double start = MPI_Wtime();
    for (int done = 0; done < SMALL; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank == 0) {
                MPI_Isend(words[i], 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(words[i], 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    acknowledge();
    return SMALL / (MPI_Wtime() - start);
}

/* Reads every word of a message. */
static uint64_t sum(const uint64_t *words) {
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) {
        sum += words[i];
    }
    return sum;
}

static double stream(uint64_t *buffers[LARGE_WINDOW]) {
    MPI_Request requests[LARGE_WINDOW];
    int peer = 1 - rank;
    double start = MPI_Wtime();
    for (int i = 0; i < LARGE + LARGE_WINDOW; i++) {
        int at = i % LARGE_WINDOW;
        if (i >= LARGE_WINDOW) {
            MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
            if (rank == 1 && sum(buffers[at]) != (uint64_t)WORDS) {
                fprintf(stderr, "rank 1: a received message differs from the sent message\n");
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (i < LARGE && rank == 0) {
            /* Always from the same buffer, as in `baseline`. */
            MPI_Isend(buffers[0], BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[at]);
        } else if (i < LARGE) {
            MPI_Irecv(buffers[at], BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[at]);
        }
    }
    acknowledge();
    return (double)LARGE * BYTES / (MPI_Wtime() - start);
}

int main(int count, char **words) {
    uint64_t *buffers[LARGE_WINDOW];
    int size;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count != 2 || size != 2) {
        fprintf(stderr, "usage: mpirun -n 2 pingpong lat|rate|stream\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < LARGE_WINDOW; i++) {
        if (posix_memalign((void **)&buffers[i], 4096, BYTES) != 0) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        for (int word = 0; word < WORDS; word++) {
            buffers[i][word] = rank == 0;
        }
    }
    for (int batch = 0; batch <= BATCHES; batch++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double value = strcmp(words[1], "lat") == 0    ? latency()
                       : strcmp(words[1], "rate") == 0 ? rate()
                                                       : stream(buffers);
        if (rank == 0 && batch > 0) {
            printf("%.3f\n", value);
        }
    }
    MPI_Finalize();
    return 0;
}
