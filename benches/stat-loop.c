/* The `stat` workload as a C program: how long lstat takes for the paths on standard input, each ended by a NUL.
 *
 *     cc -O2 -o stat-loop benches/stat-loop.c && git -C REPO ls-files -z | ./stat-loop REPO ROUNDS
 *
 * Prints the median of the rounds in nanoseconds a call. Paths are relative to the open worktree, as git's are.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int ascending(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;
	return (a > b) - (a < b);
}

int main(int count, char **arguments)
{
	static char text[1 << 26];
	int rounds = count > 2 ? atoi(arguments[2]) : 11;
	int worktree = open(count > 1 ? arguments[1] : ".", O_RDONLY | O_DIRECTORY);
	size_t length = fread(text, 1, sizeof text - 1, stdin);
	double *times = calloc(rounds, sizeof *times);
	if (worktree < 0 || !times)
		return 1;
	for (int round = -1; round < rounds; round++) {
		struct timespec start, end;
		long calls = 0, missing = 0;
		clock_gettime(CLOCK_MONOTONIC, &start);
		for (char *path = text; path < text + length; path += strlen(path) + 1) {
			struct stat found;
			missing += fstatat(worktree, path, &found, AT_SYMLINK_NOFOLLOW) != 0;
			calls++;
		}
		clock_gettime(CLOCK_MONOTONIC, &end);
		if (missing)
			fprintf(stderr, "%ld of %ld are missing\n", missing, calls);
		if (round >= 0)
			times[round] = ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / calls;
	}
	qsort(times, rounds, sizeof *times, ascending);
	printf("%.1f\n", times[rounds / 2]);
	return 0;
}
