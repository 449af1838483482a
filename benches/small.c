/* The calls of `rehome bench --suite small`, without anything around them: what the loop costs at best.
 *
 *   small DIR FILES SIZE DIRS ROUNDS
 *
 * prints one line a round: the seconds of create, read, stat and delete. Names, contents and buffers are made before
 * the clock runs, as rehome does. benches/against-c compares the two.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH (8u << 20)
#define DISTINCT 4096u
#define NAME 48

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void die(const char *what) {
    fprintf(stderr, "small: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: small DIR FILES SIZE DIRS ROUNDS\n");
        return 2;
    }
    size_t files = strtoul(argv[2], 0, 10), size = strtoul(argv[3], 0, 10), dirs = strtoul(argv[4], 0, 10);
    size_t rounds = strtoul(argv[5], 0, 10), per_dir = (files + dirs - 1) / dirs, room = size + 1;
    size_t length = room > BATCH ? room : BATCH;
    char (*names)[NAME] = malloc(files * NAME), (*dir_names)[NAME] = malloc(dirs * NAME);
    unsigned char *pool = malloc(size + DISTINCT), *buffer = malloc(length);
    if (!names || !dir_names || !pool || !buffer) die("malloc");
    for (size_t i = 0; i < dirs; i++) snprintf(dir_names[i], NAME, "d%02zu", i);
    for (size_t i = 0; i < files; i++) snprintf(names[i], NAME, "d%02zu/f%05zu", i / per_dir, i);
    for (size_t i = 0; i < size + DISTINCT; i++) pool[i] = (unsigned char)(i * 2654435761u >> 13);
    memset(buffer, 255, length);
    int root = open(argv[1], O_DIRECTORY | O_CLOEXEC);
    if (root < 0) die(argv[1]);

    for (size_t round = 0; round < rounds; round++) {
        double t0 = now();
        for (size_t i = 0; i < dirs; i++)
            if (mkdirat(root, dir_names[i], 0700)) die("mkdir");
        for (size_t i = 0; i < files; i++) {
            int fd = openat(root, names[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
            if (fd < 0) die("create");
            if (size && write(fd, pool + i % DISTINCT, size) != (ssize_t)size) die("write");
            close(fd);
        }
        double t1 = now();
        size_t used = 0, bytes = 0;
        for (size_t i = 0; i < files; i++) {
            if (length - used < room) used = 0;
            int fd = openat(root, names[i], O_RDONLY | O_CLOEXEC);
            if (fd < 0) die("open");
            size_t limit = used + room;
            while (used < limit) {
                ssize_t got = read(fd, buffer + used, limit - used);
                if (got < 0) die("read");
                if (got == 0) break;
                used += (size_t)got;
                bytes += (size_t)got;
            }
            close(fd);
        }
        double t2 = now();
        size_t sum = 0;
        for (size_t i = 0; i < files; i++) {
            struct stat st;
            if (fstatat(root, names[i], &st, AT_SYMLINK_NOFOLLOW)) die("stat");
            sum += (size_t)st.st_size;
        }
        double t3 = now();
        for (size_t i = 0; i < files; i++)
            if (unlinkat(root, names[i], 0)) die("unlink");
        for (size_t i = 0; i < dirs; i++)
            if (unlinkat(root, dir_names[i], AT_REMOVEDIR)) die("rmdir");
        double t4 = now();
        if (bytes != files * size || sum != files * size) {
            fprintf(stderr, "small: read %zu bytes and stat %zu instead of %zu\n", bytes, sum, files * size);
            return 1;
        }
        printf("%.9f %.9f %.9f %.9f\n", t1 - t0, t2 - t1, t3 - t2, t4 - t3);
    }
    return 0;
}
