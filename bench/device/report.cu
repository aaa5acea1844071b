/*-------------------------------------------------------------------------
 *
 * report.cu
 *	  The CSV file and the tables of the device benchmark; see bench.h.
 *
 *-------------------------------------------------------------------------
 */
#include "bench.h"

#include <string.h>

#include <string>
#include <vector>

FILE *bench_csv;

typedef struct Mark
{
	std::string work;
	std::string mark;
	std::string got;
	double ratio;
	double wanted;
	std::string note;
} Mark;

static std::vector<Mark> marks;

const char *
bench_duration(double ms, char *text)
{
	snprintf(text, 32, ms < 10 ? "%.2f ms" : ms < 100 ? "%.1f ms"
													  : "%.0f ms",
			 ms);
	return text;
}

void
bench_record_head(void)
{
	if (bench_csv == NULL)
		return;
	fprintf(bench_csv, "# copy from device to device: %.0f GB/s read and written\n", bench_copy_bandwidth() / 1e9);
	fprintf(bench_csv, "section,algorithm,ids,key,distribution,rows,devices,ms,min_ms,max_ms,repeats,rows_per_second,"
					   "bytes_per_row,dram_share,detail\n");
	fflush(bench_csv);
}

void
bench_record(const BenchResult *result, const BenchTimes *times)
{
	double rate = times->median > 0 ? (double) result->rows / times->median * 1e3 : 0;
	double bandwidth = bench_copy_bandwidth();
	double share = bandwidth > 0 ? result->bytes_per_row * rate / bandwidth : 0;

	printf("%-18s %-9s %-9s %11llu rows %2d GPUs %10.3f ms  %7.2f G/s", result->algorithm, result->key,
		   result->distribution, (unsigned long long) result->rows, result->devices, times->median, rate / 1e9);
	if (result->bytes_per_row > 0)
		printf("  %6.1f B/row %3.0f%% of DRAM", result->bytes_per_row, 100 * share);
	if (result->detail != NULL)
		printf("  %s", result->detail);
	printf("\n");
	fflush(stdout);
	if (bench_csv == NULL)
		return;
	fprintf(bench_csv, "%s,%s,%s,%s,%s,%llu,%d,%.4f,%.4f,%.4f,%d,%.4g,", result->section, result->algorithm,
			result->with_ids ? "yes" : "no", result->key, result->distribution, (unsigned long long) result->rows,
			result->devices, times->median, times->least, times->most, times->count, rate);
	if (result->bytes_per_row > 0)
		fprintf(bench_csv, "%.2f,%.3f", result->bytes_per_row, share);
	else
		fprintf(bench_csv, ",");
	fprintf(bench_csv, ",\"%s\"\n", result->detail != NULL ? result->detail : "");
	fflush(bench_csv);
}

void
bench_mark(const char *work, const char *mark, const char *got, double ratio, double wanted, const char *note)
{
	marks.push_back({work, mark, got, ratio, wanted, note != NULL ? note : ""});
}

void
bench_print_marks(void)
{
	if (marks.empty())
		return;
	printf("\n| work | mark | got | ratio | |\n|---|---|---|---|---|\n");
	for (const Mark &mark : marks)
	{
		printf("| %s | %s | %s | ", mark.work.c_str(), mark.mark.c_str(),
			   mark.got.empty() ? "not measured" : mark.got.c_str());
		if (mark.ratio > 0)
			printf("%.2f", mark.ratio);
		if (mark.ratio > 0 && mark.wanted > 0)
			printf(" (%s)", mark.ratio >= mark.wanted ? "reached" : "not reached");
		printf(" | %s |\n", mark.note.c_str());
	}
	fflush(stdout);
}
