/*-------------------------------------------------------------------------
 *
 * external_faults.c
 *	  Sorts that do not fit the memory and cannot be done: cancelled, of files that are
 *	  damaged, of space or rows that are not what they should be.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "external_case.h"

/* Cancels a sort after a while. */
typedef struct Canceller
{
	pthread_t thread;
	Sort *sort;
	uint32_t after; /* microseconds */
	double when;    /* processor time */
} Canceller;

static void *
canceller_main(void *arg)
{
	Canceller *canceller = arg;

	usleep(canceller->after);
	canceller->when = processor_ms(0);
	__atomic_store_n(&canceller->sort->cancelled, 1, __ATOMIC_RELAXED);
	return NULL;
}

void
test_cancel(void)
{
	GpuSortEngine *engine = open_engine(16 * MIB);
	Rows rows;
	double longest = 0;
	int descriptors;
	int wrong = 0;
	int early = 0;
	int late = 0;

	rows_make(&rows, 300000, 1, KEYS_SKEWED, 80, 140, 20);
	(void) test_directory();
	descriptors = count_descriptors(getpid());
	for (int round = 0; round < 6 * ROUNDS; round++)
	{
		Sort sort;
		Canceller canceller = {.sort = &sort, .after = random64() % 300000};
		const char *problem;
		double ended;
		bool sorted;

		external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
		pthread_create(&canceller.thread, NULL, canceller_main, &canceller);
		problem = sort_rows(&sort, &rows);
		sorted = problem == NULL;
		while (problem == NULL && !__atomic_load_n(&sort.cancelled, __ATOMIC_RELAXED))
			problem = read_rows(&sort, &rows, 0, rows.n);
		external_end(&sort);
		ended = processor_ms(0);
		pthread_join(canceller.thread, NULL);
		if (ended - canceller.when > longest)
			longest = ended - canceller.when;
		if (problem != NULL && strstr(problem, "cancelled") == NULL)
		{
			diag("%s", problem);
			wrong++;
		}
		*(sorted ? &late : &early) += 1;
		if (!is_idle(engine))
			wrong++;
	}
	ok(wrong == 0, "sorts are cancelled, %d while rows are put, %d while they are read", early, late);
	ok(longest < QUICK_MS, "and have ended after little work: %.0f ms", longest);
	ok(count_descriptors(getpid()) == descriptors, "no descriptor is left");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* What goes wrong with a file. */
typedef enum Damage
{
	CANNOT_WRITE,
	TOO_LARGE,
	CANNOT_READ,
	CUT_OFF,
	FLIPPED,
} Damage;

/* Changes bytes of a sort's files. */
static void
damage_files(const Sort *sort, Damage damage)
{
	for (int i = 0; i < OWNERS; i++)
	{
		const SpaceFile *file = &sort->files[i];
		struct stat status;
		uint64_t at;
		char byte;

		if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0 || status.st_size == 0)
			continue;
		at = random64() % (uint64_t) status.st_size;
		if (damage == CUT_OFF && ftruncate(file->descriptor, (off_t) at) != 0)
			bail("ftruncate: %s", strerror(errno));
		if (damage == FLIPPED)
		{
			if (pread(file->descriptor, &byte, 1, (off_t) at) != 1)
				bail("pread: %s", strerror(errno));
			byte ^= (char) (1 << random64() % 8);
			if (pwrite(file->descriptor, &byte, 1, (off_t) at) != 1)
				bail("pwrite: %s", strerror(errno));
		}
	}
}

static void
test_damage(Damage damage, const char *name, int system_error, Keys keys)
{
	GpuSortEngine *engine = open_engine(16 * MIB);
	struct rlimit unlimited;
	Sort sort;
	Rows rows;
	const char *problem;

	getrlimit(RLIMIT_FSIZE, &unlimited);
	rows_make(&rows, 250000, 1, keys, 80, 140, 20);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1, .may_tie = 1});
	if (damage == CANNOT_WRITE)
		sort.flags = O_RDONLY;
	if (damage == CANNOT_READ)
		sort.flags = O_WRONLY;
	if (damage == TOO_LARGE)
	{
		struct rlimit limit = unlimited;

		signal(SIGXFSZ, SIG_IGN);
		limit.rlim_cur = 1 * MIB;
		setrlimit(RLIMIT_FSIZE, &limit);
	}
	problem = sort_rows(&sort, &rows);
	setrlimit(RLIMIT_FSIZE, &unlimited);
	if (problem == NULL && damage <= TOO_LARGE)
		problem = "it was written";
	if (problem == NULL)
	{
		damage_files(&sort, damage);
		problem = read_rows(&sort, &rows, 0, rows.n);
	}
	ok(problem == sort.error.text && sort.error.reason == GPUSORT_REASON_STORAGE &&
		   sort.error.system_error == system_error,
	   "%s: reason %d, %s: %s", name, sort.error.reason, strerror(sort.error.system_error), told(problem));
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

void
test_damages(void)
{
	int descriptors = count_descriptors(getpid());

	test_damage(CANNOT_WRITE, "a file that cannot be written", EBADF, KEYS_RANDOM);
	test_damage(TOO_LARGE, "a file that may not grow", EFBIG, KEYS_RANDOM);
	test_damage(CANNOT_READ, "a file that cannot be read", EBADF, KEYS_RANDOM);
	test_damage(CUT_OFF, "files that were cut off", 0, KEYS_RANDOM);
	test_damage(CUT_OFF, "files that were cut off, equal keys", 0, KEYS_EQUAL);
	for (int i = 0; i < 3; i++)
		test_damage(FLIPPED, "files of which a bit was flipped", 0, i == 2 ? KEYS_EQUAL : KEYS_RANDOM);
	ok(count_descriptors(getpid()) == descriptors, "no descriptor is left");
}

/* Space that is not what it should be. */
void
test_bad_space(void)
{
	static const char *const names[] = {"without a file", "in a pipe", "of no bytes", "beyond what there is",
										"given before",
										"in a second file", "in a file that is added to"};
	int descriptors = count_descriptors(getpid());
	GpuSortEngine *engine = open_engine(16 * MIB);
	Rows rows;

	rows_make(&rows, 300000, 1, KEYS_RANDOM, 80, 140, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		Sort sort;
		uint64_t next = 0;
		uint64_t lacking = 0;
		GpuSortProgress progress = GPUSORT_PROGRESS_DONE;
		int pipes[2] = {-1, -1};
		int file = open(test_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC | (i == 6 ? O_APPEND : 0), 0600);
		int rc = -2;

		external_begin(&sort, engine, (GpuSortRequest){.key_words = 1});
		while (progress == GPUSORT_PROGRESS_DONE && next < rows.n)
		{
			uint32_t count;
			uint32_t bytes;

			next = rows_fill(&rows, next, 40000, sort.chunk, &count, &bytes);
			progress = gpusort_external_put(sort.external, sort.chunk, count, bytes, count, &lacking, &sort.error);
		}
		if (progress != GPUSORT_PROGRESS_LACKS_SPACE || file < 0 || pipe(pipes) != 0)
			bail("no space is lacking");
		switch (i)
		{
			case 0:
				rc = gpusort_external_add_space(sort.external, 1, -1, 0, lacking, &sort.error);
				break;
			case 1:
				rc = gpusort_external_add_space(sort.external, 1, dup(pipes[1]), 0, lacking, &sort.error);
				break;
			case 2:
				rc = gpusort_external_add_space(sort.external, 1, dup(file), 0, 0, &sort.error);
				break;
			case 3:
				rc = gpusort_external_add_space(sort.external, 1, dup(file), UINT64_MAX - 5, lacking, &sort.error);
				break;
			case 4:
			case 5:
				if (gpusort_external_add_space(sort.external, 1, dup(file), 4096, MIB, &sort.error) != 0)
					bail("%s", sort.error.text);
				rc = gpusort_external_add_space(sort.external, 1, i == 5 ? dup(file) : -1, MIB, lacking, &sort.error);
				break;
			case 6:
				rc = gpusort_external_add_space(sort.external, 1, dup(file), 0, lacking, &sort.error);
				break;
		}
		ok(rc == -1 && sort.error.reason == GPUSORT_REASON_INTERNAL, "space %s is refused: %s", names[i],
		   rc == -1 ? sort.error.text : "it was not");
		external_end(&sort);
		close(file);
		close(pipes[0]);
		close(pipes[1]);
	}
	ok(count_descriptors(getpid()) == descriptors && is_idle(engine), "no descriptor is left, and no memory");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* Rows that share their bytes are more than the chunk they came in. */
void
test_overlapping_rows(void)
{
	GpuSortEngine *engine = open_engine(16 * MIB);
	Sort sort;
	Rows rows;
	GpuSortProgress progress = GPUSORT_PROGRESS_DONE;
	uint64_t lacking;
	uint32_t count;
	uint32_t bytes;

	rows_make(&rows, 1, 1, KEYS_RANDOM, 100000, 100000, 0);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1});
	(void) rows_fill(&rows, 0, 1, sort.chunk, &count, &bytes);
	for (uint32_t i = 1; i < 2000; i++)
		*gpusort_chunk_offset(sort.chunk, i) = 0;
	for (int i = 0; i < 1000 && progress != GPUSORT_PROGRESS_FAILED; i++)
	{
		progress = gpusort_external_put(sort.external, sort.chunk, 2000, bytes, 2000, &lacking, &sort.error);
		if (progress == GPUSORT_PROGRESS_LACKS_SPACE && give_space(&sort, lacking) != 0)
			break;
	}
	ok(progress == GPUSORT_PROGRESS_FAILED && sort.error.reason != GPUSORT_REASON_NONE,
	   "rows that overlap fail the sort: %s",
	   sort.error.text);
	external_end(&sort);
	ok(is_idle(engine), "all memory is back");
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}

/* Memory that not even one chunk fits is told at once. */
void
test_too_little_memory(void)
{
	GpuSortEngine *engine = open_engine(10 * MIB);
	Sort sort;
	Rows rows;
	const char *problem;
	double start;

	rows_make(&rows, 400000, 1, KEYS_RANDOM, 8, 8, 0);
	start = processor_ms(0);
	external_begin(&sort, engine, (GpuSortRequest){.key_words = 1});
	problem = NULL;
	for (uint64_t next = 0; problem == NULL && next < rows.n;)
	{
		uint64_t lacking;
		uint32_t count;
		uint32_t bytes;
		GpuSortProgress progress;

		next = rows_fill(&rows, next, UINT32_MAX, sort.chunk, &count, &bytes);
		while ((progress = gpusort_external_put(sort.external, sort.chunk, count, bytes, count, &lacking, &sort.error)) ==
			   GPUSORT_PROGRESS_LACKS_SPACE)
			give_space(&sort, lacking);
		if (progress == GPUSORT_PROGRESS_FAILED)
			problem = sort.error.text;
	}
	ok(problem != NULL && sort.error.reason == GPUSORT_REASON_MEMORY_LIMIT && processor_ms(0) - start < 3 * QUICK_MS,
	   "memory that not even a chunk fits is told at once, after %.0f ms of work: %s", processor_ms(0) - start,
	   told(problem));
	external_end(&sort);
	rows_free(&rows);
	gpusort_host_engine.close(engine);
}
